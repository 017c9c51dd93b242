/*
 * What an exchange asks of the masters: the arguments of exchange.lua, in the order in which that
 * script reads them, and who is asked for what when it is undone or made good.
 */
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "dropin/exchange_private.h"
#include "lock/release.h"
#include "redis/args.h"

/* Texts under construction, in memory that is used again. */
static struct buf hold, wish;

static bool is_held(const struct truth *t)
{
    return t->kind == TRUTH_DROPIN || t->kind == TRUTH_NATIVE;
}

static const char *expected(const struct exchange_part *p)
{
    return is_held(&p->guess) ? p->guess.op : "free";
}

void exchange_name_op(struct exchange_part *p)
{
    if (!p->op[0])
        broker_op_text(p->exchange->broker, p->op_number, p->op);
}

bool exchange_is_superseded(const struct exchange_part *p)
{
    return p->n_changes != p->lock->n_changes;
}

/* Returns for how long the masters remember the operation that was guessed as gone: that of
 * another broker; or one that ends in a group, as it may have to be put back. */
static int64_t exchange_tomb_ms(const struct exchange_part *p)
{
    if (p->what == EXCHANGE_LOOK || !is_held(&p->guess))
        return 0;
    bool may_come_back = p->what == EXCHANGE_END && p->exchange->n > 1;
    return p->guess_is_own && !may_come_back ? 0 : broker_tomb_ms(p->exchange->broker);
}

static struct args *begin_exchange_args(const struct exchange_part *p, int64_t now_ms)
{
    struct rounds *r = &p->exchange->broker->rounds;
    struct args *it = args_begin(p->lock->name, p->lock->name_len);
    it->bucket = rounds_bucket(r, p->lock->name, p->lock->name_len);
    if (p->what == EXCHANGE_NEW || it->bucket >= 0)
        it->floor = rounds_floor(r, now_ms);
    return it;
}

enum { VERSION_MAX = 2 * 20 + 2 + DROPIN_OP_MAX + 1 };

/* Writes a version: which hold it is of is said where its operation is not the one that took it. */
static void write_version(char out[VERSION_MAX], int64_t token, int64_t number, const char *birth)
{
    char *p = util_put_digits(out, (uint64_t)token);
    *p = '\0';
    if (number > 0)
        stpcpy(stpcpy(util_put_digits(stpcpy(p, "."), (uint64_t)number), "/"), birth);
}

enum { NUMBER_MAX = 20 + 1 };

static void write_plain_number(char out[NUMBER_MAX], int64_t n)
{
    *util_put_digits(out, (uint64_t)n) = '\0';
}

/* Returns the highest number of a version of the hold that was guessed, over which it is made
 * good. What a look has seen may have been put back by now, and another version with its number
 * been confirmed. */
static int64_t missed_number(const struct exchange_part *p)
{
    switch ((enum exchange_what)p->what) {
    case EXCHANGE_LOOK:
        return p->guess.number - 1;
    case EXCHANGE_IN_PLACE:
        return p->guess.number + 1;
    default:
        return p->guess.number;
    }
}

/* Returns the number of the version of the hold that was guessed, once it is done. */
static int64_t new_number(const struct exchange_part *p)
{
    return p->guess.number + (p->what == EXCHANGE_IN_PLACE);
}

static void write_new_version(const struct exchange_part *p, char out[VERSION_MAX])
{
    if (p->what == EXCHANGE_NEW)
        write_version(out, p->floor, 0, p->op);
    else
        write_version(out, p->guess.token, new_number(p), p->guess.birth);
}

/* Bytes of a hold beside its state: two numbers, an operation, a version, and what stands between.
 */
enum { HOLD_HEAD_MAX = 2 * 20 + DROPIN_OP_MAX + VERSION_MAX + 64 };

static void write_hold(const char *op, const char *fence, const char *version, const char *lease,
                       const struct truth_text *state)
{
    buf_clear(&hold);
    char *head = buf_reserve(&hold, HOLD_HEAD_MAX), *p = head;
    p = stpcpy(stpcpy(p, "op="), op);
    p = stpcpy(stpcpy(p, " token="), fence);
    p = stpcpy(stpcpy(p, " count=1 seq="), version);
    p = stpcpy(stpcpy(p, " lease="), lease);
    p = stpcpy(p, " end=0 taken=0 owner=");
    buf_commit(&hold, (size_t)(p - head));
    if (state)
        buf_append(&hold, state->bytes, state->len);
}

/* Writes the hold as it stands when this is done: "" for a look, "-" for an end. */
static void write_new_hold(const struct exchange_part *p, const char *lease)
{
    char version[VERSION_MAX], fence[NUMBER_MAX];
    buf_clear(&hold);
    if (p->what == EXCHANGE_END) {
        buf_append(&hold, "-", 1);
    } else if (p->what != EXCHANGE_LOOK) {
        write_new_version(p, version);
        if (p->what == EXCHANGE_IN_PLACE)
            write_plain_number(fence, p->guess.fence);
        /* A new one asks for the floor, which is its version too. */
        write_hold(p->op, p->what == EXCHANGE_NEW ? version : fence, version, lease, p->text);
    }
}

static void add_text(struct args *it, const struct buf *b)
{
    args_text(it, buf_len(b) > 0 ? buf_head(b) : "", buf_len(b));
}

/* ---- votes ---- */

static bool is_usual(const struct exchange_part *p)
{
    return p->exchange->n == 1 && exchange_tomb_ms(p) == 0 &&
           !(p->what == EXCHANGE_NEW && is_held(&p->guess));
}

static void write_usual_wish(const struct exchange_part *p, const char *lease)
{
    if (p->what == EXCHANGE_NEW) {
        buf_append_str(&wish, lease);
        return;
    }
    if (!is_held(&p->guess)) {
        buf_append_str(&wish, "free");
        return;
    }
    if (p->what == EXCHANGE_IN_PLACE) {
        buf_append_str(&wish, "lease=");
        buf_append_str(&wish, p->keeps_time ? "0" : lease);
        buf_append_str(&wish, " ");
    } else if (p->wants_time) {
        buf_append_str(&wish, "t ");
    }
    buf_append_str(&wish, "op=");
    buf_append_str(&wish, p->guess.op);
    buf_append_str(&wish, " ");
}

static void write_wish(const struct exchange_part *p, const char *lease)
{
    const struct exchange *x = p->exchange;
    buf_clear(&wish);
    if (is_usual(p)) {
        write_usual_wish(p, lease);
        return;
    }
    buf_printf(
        &wish,
        "expect=%s lease=%" PRId64 " token=%s tomb=%" PRId64 " by=%s as=vote seq=- time=%s group=",
        expected(p), p->keeps_time ? 0 : p->lease_ms, p->what == EXCHANGE_NEW ? "new" : "kept",
        exchange_tomb_ms(p), p->op, p->wants_time ? "t" : "-");
    if (x->n > 1)
        buf_printf(&wish, "%s.%" PRIu64 "/%d", x->broker->id, x->number, x->n);
    else
        buf_append(&wish, "-", 1);
}

struct round *exchange_ask(struct exchange_part *p, round_fn fn, int64_t now_ms)
{
    struct broker *b = p->exchange->broker;
    struct args *it = begin_exchange_args(p, now_ms);
    char lease[NUMBER_MAX];
    p->floor = it->floor;
    if (p->what == EXCHANGE_NEW)
        p->above = token_highest(&b->granted, p->lock->name, p->lock->name_len);
    if (!is_usual(p))
        exchange_name_op(p);
    write_plain_number(lease, p->lease_ms);
    write_new_hold(p, lease);
    write_wish(p, lease);
    add_text(it, &hold);
    add_text(it, &wish);
    return round_ask(&b->rounds, SCRIPT_EXCHANGE, it, false, fn, p, now_ms);
}

void exchange_commit(struct exchange_part *p, round_fn fn, int64_t now_ms)
{
    struct rounds *r = &p->exchange->broker->rounds;
    struct args *it = args_begin(p->lock->name, p->lock->name_len);
    char counter[TOKEN_COUNTER_MAX + 1];
    rounds_counter(r, p->lock->name, p->lock->name_len, counter);
    args_str(it, p->op);
    args_int(it, p->fence);
    args_str(it, counter);
    args_str(it, "-");
    round_ask(r, SCRIPT_COMMIT, it, false, fn, p, now_ms);
}

/* ---- undone ---- */

static void release_op(struct exchange_part *p, const char *op, int64_t lease_ms, int64_t now_ms)
{
    struct broker *b = p->exchange->broker;
    const struct release_what what = {op,
                                      {LOCK_EXCLUSIVE, 0, 0},
                                      NULL,
                                      lease_ms,
                                      broker_has_op(b, op) ? RELEASE_ASKED : RELEASE_FOREIGN};
    release_hold(b, p->lock, &what, NULL, NULL, NULL, now_ms);
}

/* Returns when a hold that ends at this time of ours ends by the clock of master i: rather later
 * than sooner, but little, as it may be put back again and again. */
static int64_t ends_there_ms(const struct exchange_part *p, int i, int64_t expires_ms,
                             int64_t now_ms)
{
    enum { CLOCK_ERROR_MS = 2 };
    struct rounds *r = &p->exchange->broker->rounds;
    int first = rounds_first(r, p->lock->name, p->lock->name_len);
    return rounds_master_ms(r, first + i, expires_ms, now_ms) + CLOCK_ERROR_MS;
}

/* Asks master i to put back what was guessed, for as long as it would have lived. What it put there
 * itself ends no later than its lease. */
static void put_back(struct exchange_part *p, int i, int64_t now_ms)
{
    struct args *it = begin_exchange_args(p, now_ms);
    it->undoes = true;
    const struct truth *old = &p->guess;
    char version[VERSION_MAX], fence[NUMBER_MAX], lease[NUMBER_MAX];
    int64_t left_ms = truth_over_ms(old) - now_ms;
    int64_t kept_ms = left_ms > p->lease_ms ? left_ms : p->lease_ms;
    if (left_ms > 0) {
        write_version(version, old->token, old->number, old->birth);
        write_plain_number(fence, old->fence);
        write_plain_number(lease, left_ms);
        write_hold(old->op, fence, version, lease, old->text);
    } else {
        buf_clear(&hold);
        buf_append(&hold, "-", 1);
    }
    buf_clear(&wish);
    buf_printf(&wish,
               "expect=%s lease=%" PRId64 " token=kept tomb=0 by=%s as=back seq=- time=- group=-",
               p->what == EXCHANGE_END ? "free" : p->op,
               ends_there_ms(p, i, truth_over_ms(old), now_ms), p->op);
    add_text(it, &hold);
    add_text(it, &wish);
    round_owe(&p->exchange->broker->rounds, i, SCRIPT_EXCHANGE, it, kept_ms, now_ms);
}

void exchange_undo(struct exchange_part *p, bool pursues, int64_t now_ms)
{
    int64_t left_ms = truth_over_ms(&p->guess) - now_ms;
    bool is_lone_end = p->what == EXCHANGE_END && p->exchange->n == 1;
    if (p->what == EXCHANGE_LOOK || exchange_count_may_have_done(p) == 0)
        return;
    exchange_name_op(p);
    if (is_lone_end && pursues && left_ms > 0)
        release_op(p, p->guess.op, left_ms, now_ms);
    else if (p->what == EXCHANGE_NEW && !is_held(&p->guess))
        release_op(p, p->op, p->lease_ms, now_ms);
    if (is_lone_end || !is_held(&p->guess) || (p->what == EXCHANGE_END && left_ms <= 0))
        return;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++) {
        if (exchange_may_have_done(p, i))
            put_back(p, i, now_ms);
    }
}

/* ---- made good ---- */

/* Returns when what was confirmed is over by its time. */
static int64_t over_ms(const struct exchange_part *p)
{
    bool is_kept = p->what == EXCHANGE_LOOK || p->what == EXCHANGE_END;
    return is_kept ? p->guess.expires_ms : p->exchange->sent_ms + p->lease_ms;
}

static const char *op_of(const struct exchange_part *p)
{
    return p->what == EXCHANGE_LOOK ? p->guess.op : p->op;
}

static const struct truth_text *text_of(const struct exchange_part *p)
{
    return p->what == EXCHANGE_LOOK ? p->guess.text : p->text;
}

/* Writes the hold that a majority has confirmed; "-" when it has ended. */
static void write_confirmed(const struct exchange_part *p, int64_t now_ms)
{
    char version[VERSION_MAX], fence[NUMBER_MAX], lease[NUMBER_MAX];
    buf_clear(&hold);
    if (p->what == EXCHANGE_END) {
        buf_append(&hold, "-", 1);
        return;
    }
    write_new_version(p, version);
    write_plain_number(fence, p->fence);
    write_plain_number(lease, over_ms(p) - now_ms);
    write_hold(op_of(p), fence, version, lease, text_of(p));
}

/* Puts what was confirmed over the hold of operation `expect`, or over versions of the same hold;
 * `tomb_ms`: that operation is remembered as gone. That an end arrives is seen to; all else is
 * asked for again as long as it is missing (exchange_repair.c). */
static void heal_over(struct exchange_part *p, int i, const char *expect, int64_t tomb_ms,
                      int64_t now_ms)
{
    struct rounds *r = &p->exchange->broker->rounds;
    struct args *it = begin_exchange_args(p, now_ms);
    write_confirmed(p, now_ms);
    buf_clear(&wish);
    buf_printf(&wish,
               "expect=%s lease=%" PRId64 " token=kept tomb=%" PRId64 " by=%s as=heal seq=", expect,
               ends_there_ms(p, i, over_ms(p), now_ms), tomb_ms, p->op);
    if (is_held(&p->guess) && missed_number(p) >= 0)
        buf_printf(&wish, "%" PRId64 ".%" PRId64 "/%s", p->guess.token, missed_number(p),
                   p->guess.birth);
    else
        buf_append(&wish, "-", 1);
    buf_printf(&wish, " time=- group=-");
    add_text(it, &hold);
    add_text(it, &wish);
    if (p->what == EXCHANGE_END)
        round_owe(r, i, SCRIPT_EXCHANGE, it, over_ms(p) - now_ms, now_ms);
    else
        round_tell(r, i, SCRIPT_EXCHANGE, it, now_ms);
}

void exchange_heal_over_rival(struct exchange_part *p, int i, const char *op, int64_t now_ms)
{
    exchange_name_op(p);
    heal_over(p, i, op, broker_tomb_ms(p->exchange->broker), now_ms);
}

static void plant_hold(struct exchange_part *p, int i, int64_t now_ms)
{
    struct rounds *r = &p->exchange->broker->rounds;
    struct args *it = args_begin(p->lock->name, p->lock->name_len);
    const struct truth_text *state = text_of(p);
    char counter[TOKEN_COUNTER_MAX + 1], version[VERSION_MAX];
    rounds_counter(r, p->lock->name, p->lock->name_len, counter);
    write_new_version(p, version);
    args_str(it, op_of(p));
    args_text(it, state ? state->bytes : "", state ? state->len : 0);
    args_int(it, p->fence);
    args_int(it, 1);
    args_str(it, version);
    args_int(it, over_ms(p) - now_ms);
    args_str(it, counter);
    args_str(it, "0");
    args_str(it, "-");
    round_tell(r, i, SCRIPT_PLANT, it, now_ms);
}

/* Owes a master that has not answered the release of what has ended; it can have no earlier
 * version of it. */
static void owe_end(struct exchange_part *p, int i, int64_t now_ms)
{
    struct rounds *r = &p->exchange->broker->rounds;
    struct args *it = args_begin(p->lock->name, p->lock->name_len);
    buf_clear(&wish);
    buf_printf(&wish, "%s tomb=%" PRId64 " ticket=- place=keep next=wait part=-", p->guess.op,
               exchange_tomb_ms(p));
    add_text(it, &wish);
    round_owe(r, i, SCRIPT_RELEASE, it, over_ms(p) - now_ms, now_ms);
}

static bool shows_nothing(const struct exchange_part *p, int i)
{
    const struct exchange_said *said = &p->said[i];
    return said->kind == SAID_OTHER ? said->truth->kind == TRUTH_FREE
                                    : said->kind == SAID_AS_GUESS && !is_held(&p->guess);
}

static void heal_change_at(struct exchange_part *p, int i, int64_t now_ms)
{
    const struct exchange_said *said = &p->said[i];
    bool is_silent = said->kind == SAID_NOTHING, ends = p->what == EXCHANGE_END;
    if (is_silent && ends && p->guess.number == 0)
        owe_end(p, i, now_ms);
    else if ((is_silent || shows_nothing(p, i)) && !ends)
        plant_hold(p, i, now_ms);
    else if (is_silent || said->kind == SAID_AS_GUESS || is_held(said->truth))
        heal_over(p, i, expected(p), exchange_tomb_ms(p), now_ms);
}

/* A hold is planted only by the broker that has made its last change: only of that it is known that
 * nothing of it comes behind its end (R2). A master that was not asked may be in quarantine. */
static void heal_looked_at(struct exchange_part *p, int i, int64_t now_ms)
{
    const struct exchange_said *said = &p->said[i];
    bool may_plant = broker_has_op(p->exchange->broker, p->guess.op);
    if (said->kind == SAID_OTHER && is_held(said->truth))
        heal_over(p, i, expected(p), 0, now_ms);
    else if (may_plant && (said->is_unasked || shows_nothing(p, i)))
        plant_hold(p, i, now_ms);
}

void exchange_heal(struct exchange_part *p, int64_t now_ms)
{
    bool looks = p->what == EXCHANGE_LOOK;
    if ((looks && p->guess.kind != TRUTH_DROPIN) || over_ms(p) <= now_ms ||
        (exchange_is_superseded(p) && p->what != EXCHANGE_END))
        return;
    exchange_name_op(p);
    for (int i = 0; i < p->exchange->broker->rounds.n; i++) {
        if (p->said[i].kind == SAID_DONE)
            continue;
        if (looks)
            heal_looked_at(p, i, now_ms);
        else
            heal_change_at(p, i, now_ms);
    }
}
