/*
 * A command of this file checks its words, makes a lock_request, and gives it to the session and
 * then to the broker, which finishes it at once or later. The reply is written when it leaves, so
 * that the validity in it is what is left then.
 */
#include "command/handlers.h"

#include <string.h>

#include "base/pool.h"
#include "base/util.h"
#include "lock/broker.h"
#include "lock/multilock.h"
#include "lock/view.h"

/* ---- words ---- */

/* A name or an owner: 1 to `max` bytes, none of them NUL, CR or LF. */
static bool check_id(struct cmd_call *c, const char *what, const struct resp_arg *arg, size_t max)
{
    if (arg->len == 0 || arg->len > max) {
        cmd_reply_error(c, "ERR the %s has %zu bytes, it must have 1 to %zu", what, arg->len, max);
        return false;
    }
    if (memchr(arg->ptr, '\0', arg->len) || memchr(arg->ptr, '\r', arg->len) ||
        memchr(arg->ptr, '\n', arg->len)) {
        cmd_reply_error(c, "ERR the %s has a NUL, CR or LF in it", what);
        return false;
    }
    return true;
}

static bool check_owner(struct cmd_call *c, const struct resp_arg *arg)
{
    if (!check_id(c, "owner", arg, LOCK_OWNER_MAX))
        return false;
    if (!owner_is_drop_in(arg->ptr, arg->len))
        return true;
    cmd_reply_error(c, "ERR an owner must not begin with '" LOCK_DROP_IN
                       "', as those of locks that are taken by commands of Redis do; choose "
                       "another one");
    return false;
}

/* `unit`: what stands behind "number", or "". */
static bool take_number(struct cmd_call *c, const char *what, const char *unit,
                        const struct resp_arg *arg, int64_t min, int64_t max, int64_t *out)
{
    if (util_parse_int(arg->ptr, arg->len, min, max, out) == 0)
        return true;
    cmd_reply_error(c, "ERR %s '%.*s' is not a number%s from %lld to %lld", what,
                    (int)(arg->len < 32 ? arg->len : 32), arg->ptr, unit, (long long)min,
                    (long long)max);
    return false;
}

static bool take_ms(struct cmd_call *c, const char *option, const struct resp_arg *arg, int64_t min,
                    int64_t max, int64_t *out)
{
    return take_number(c, option, " of milliseconds", arg, min, max, out);
}

enum {
    WITH_OWNER = 1,
    WITH_WAIT = 2,
    WITH_LEASE = 4,
    WITH_MAXHOLD = 8,
    WITH_TELL = 16,
    WITH_FAIR = 32,
    WITH_SHARED = 64,
    WITH_LIMIT = 128,
    WITH_ID = 256,
    WITH_ASYNC = 512,
    WITH_ALL = 1023
};

static const struct {
    const char *word;
    unsigned bit;
} options[] = {
    {"OWNER", WITH_OWNER},     {"WAIT", WITH_WAIT},   {"LEASE", WITH_LEASE},
    {"MAXHOLD", WITH_MAXHOLD}, {"TELL", WITH_TELL},   {"FAIR", WITH_FAIR},
    {"SHARED", WITH_SHARED},   {"LIMIT", WITH_LIMIT}, {"ID", WITH_ID},
    {"ASYNC", WITH_ASYNC},
};

static unsigned find_option(const struct resp_arg *arg)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (cmd_word_is(arg, options[i].word))
            return options[i].bit;
    }
    return 0;
}

/* A year: times beyond it are mistakes, and sums of two stay far from overflow. */
enum { YEAR_MS_SHIFT = 35 };
static const int64_t time_max_ms = INT64_C(1) << YEAR_MS_SHIFT;

/* Takes the value of one option. 0, or -1 when an error has been replied. */
static int take_lock_option(struct cmd_call *c, struct lock_request *r, unsigned option,
                            const struct resp_arg *value)
{
    int64_t ms, max_lease_ms;
    switch (option) {
    case WITH_OWNER:
        if (!check_owner(c, value))
            return -1;
        owner_unref(r->owner);
        r->owner = owner_get(value->ptr, value->len);
        r->unnamed = false;
        return 0;
    case WITH_ID:
        if (!check_id(c, "ID", value, LOCK_ID_MAX))
            return -1;
        r->id = owner_get(value->ptr, value->len);
        return 0;
    case WITH_WAIT:
        if (!take_ms(c, "WAIT", value, 0, time_max_ms, &ms))
            return -1;
        r->wait_until_ms = ms ? c->now_ms + ms : INT64_MAX;
        return 0;
    case WITH_LEASE:
        if (!take_ms(c, "LEASE", value, view_min_lease_ms(r->broker), time_max_ms, &r->lease_ms))
            return -1;
        max_lease_ms = view_max_lease_ms(r->broker);
        if (r->lease_ms <= max_lease_ms)
            return 0;
        cmd_reply_error(c, "LIMIT LEASE %lld is more than max_lease, %lld ms",
                        (long long)r->lease_ms, (long long)max_lease_ms);
        return -1;
    case WITH_LIMIT:
        if (!take_number(c, "LIMIT", "", value, 1, LOCK_PERMITS_MAX, &ms))
            return -1;
        r->want = (struct lock_part){LOCK_LIMIT, (uint16_t)ms, 0};
        return 0;
    default:
        return take_ms(c, "MAXHOLD", value, 1, time_max_ms, &r->maxhold_ms) ? 0 : -1;
    }
}

/* Returns how many bytes of a word an error shows. */
static int shown(const struct resp_arg *word)
{
    return (int)(word->len < 64 ? word->len : 64);
}

/* From word `first` on. *tag: of ASYNC; left alone without. */
static int take_options(struct cmd_call *c, struct lock_request *r, unsigned allowed, int first,
                        const struct resp_arg **tag)
{
    unsigned seen = 0;
    for (int i = first; i < c->argc; i++) {
        unsigned option = find_option(&c->argv[i]) & allowed;
        if (!option || (seen & option)) {
            cmd_reply_error(c, "ERR syntax error: %s'%.*s'%s", option ? "" : "unknown option ",
                            shown(&c->argv[i]), c->argv[i].ptr,
                            option ? " stands there twice" : "");
            return -1;
        }
        seen |= option;
        if ((seen & WITH_SHARED) && (seen & WITH_LIMIT)) {
            cmd_reply_error(c, "ERR syntax error: SHARED and LIMIT cannot go together");
            return -1;
        }
        if (option == WITH_SHARED) {
            r->want.kind = LOCK_SHARED;
        } else if (option == WITH_TELL) {
            r->tell = true;
        } else if (option == WITH_FAIR) {
            r->fair = true;
        } else if (++i == c->argc) {
            cmd_reply_error(c, "ERR syntax error: '%.*s' needs a value", (int)c->argv[i - 1].len,
                            c->argv[i - 1].ptr);
            return -1;
        } else if (option == WITH_ASYNC) {
            if (!check_id(c, "tag", &c->argv[i], SESSION_TAG_MAX))
                return -1;
            *tag = &c->argv[i];
        } else if (take_lock_option(c, r, option, &c->argv[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- commands ---- */

/* Remembers the owner that a connection spoke for last, so that two connections that act for the
 * same one are noticed. */
static void remember_owner(struct session *s, struct owner *owner)
{
    if (owner == s->acted_for)
        return;
    owner_unref(s->acted_for);
    s->acted_for = owner_ref(owner);
    owner_used(owner, s->id);
}

/* The n names stand from word `first` on, the options behind them. */
static void ask_broker(struct cmd_call *c, enum lock_verb verb, unsigned allowed, int first, int n)
{
    const struct resp_arg *tag = NULL;
    for (int i = first; i < first + n; i++) {
        if (!check_id(c, "name", &c->argv[i], LOCK_NAME_MAX))
            return;
    }
    struct lock_request *r = pool_get(sizeof *r);
    r->base.type = &cmd_lock_request_type;
    r->broker = cmd_hooks()->broker;
    r->owner = owner_ref(c->session->owner);
    r->unnamed = !c->session->owner_named;
    r->tell = c->session->tell;
    r->verb = (uint8_t)verb;
    if (take_options(c, r, allowed, first + n, &tag) != 0) {
        lock_request_free(r);
        return;
    }
    remember_owner(c->session, r->owner);
    if (tag) {
        cmd_async_ask(c, r, tag, &c->argv[first], n);
        return;
    }
    r->base.may_wait = r->wait_until_ms != 0;
    session_ask(c->session, &r->base);
    broker_submit(r->broker, r, &c->argv[first], n, c->now_ms);
}

static void ask_one(struct cmd_call *c, enum lock_verb verb, unsigned allowed)
{
    ask_broker(c, verb, allowed, 1, 1);
}

/* numnames name [name ...] options */
static void ask_many(struct cmd_call *c, enum lock_verb verb, unsigned allowed)
{
    const struct resp_arg *twice;
    int64_t n;
    if (!take_number(c, "numnames", "", &c->argv[1], 1, MULTILOCK_NAMES_MAX, &n))
        return;
    if (n > c->argc - 2)
        cmd_reply_error(c, "ERR numnames is %d, but %d names follow", (int)n, c->argc - 2);
    else if ((twice = cmd_name_twice(&c->argv[2], (int)n)))
        cmd_reply_error(c, "ERR the name '%.*s' stands there twice", shown(twice), twice->ptr);
    else
        ask_broker(c, verb, allowed, 2, (int)n);
}

/* What the verbs want: one name or several, and which options they take. */
static const struct {
    void (*ask)(struct cmd_call *, enum lock_verb, unsigned allowed);
    unsigned allowed;
} verbs[] = {
    [VERB_LOCK] = {ask_one, WITH_ALL},
    [VERB_UNLOCK] = {ask_one, WITH_OWNER},
    [VERB_RENEW] = {ask_one, WITH_OWNER | WITH_LEASE},
    [VERB_HOLDS] = {ask_one, WITH_OWNER},
    [VERB_INFO] = {ask_one, 0},
    [VERB_FORCE] = {ask_one, 0},
    [VERB_MLOCK] = {ask_many, WITH_ALL & ~(unsigned)WITH_FAIR},
    [VERB_MUNLOCK] = {ask_many, WITH_OWNER},
};

void cmd_lock_request(struct cmd_call *c)
{
    enum lock_verb verb = (enum lock_verb)c->cmd->verb;
    verbs[verb].ask(c, verb, verbs[verb].allowed);
}

void cmd_lock_owner(struct cmd_call *c)
{
    if (c->argc > 2) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'owner' command");
        return;
    }
    if (c->argc > 1) {
        if (!check_owner(c, &c->argv[1]))
            return;
        owner_unref(c->session->owner);
        c->session->owner = owner_get(c->argv[1].ptr, c->argv[1].len);
        c->session->owner_named = true;
        owner_used(c->session->owner, c->session->id);
        cmd_reply_ok(c);
        return;
    }
    resp_bulk(cmd_reply(c), c->session->owner->text, c->session->owner->len);
}
