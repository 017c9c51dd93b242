/*
 * SUBSCRIBE and its family. Each name is answered by a message of its own; the messages of one
 * command are written as one reply, so that they keep their place among the replies.
 */
#include "command/handlers.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/glob.h"
#include "base/util.h"
#include "dropin/call.h"
#include "dropin/messages.h"
#include "session/channel.h"
#include "session/pubsub.h"

enum {
    LOOK_INSTRUCTIONS = 6,
    NAME_INSTRUCTIONS = 20,
    PATTERN_INSTRUCTIONS = 250,
    PUBLISH_INSTRUCTIONS = 20000
};

/* Writes one answer; name NULL: there was nothing to unsubscribe from. */
static void write_answer(struct resp_writer *w, const char *kind, const char *name, size_t len,
                         uint32_t count)
{
    resp_push(w, 3);
    resp_str(w, kind);
    if (name != NULL)
        resp_bulk(w, name, len);
    else
        resp_null(w);
    resp_int(w, count);
}

/* Returns -1 after an error if these names would break a limit: all or none are subscribed to. */
static int check_limits(struct cmd_call *c, int n, const struct resp_arg *names, bool is_pattern)
{
    uint32_t added = 0, fresh = 0;

    for (int i = 0; i < n; i++) {
        if (names[i].len > PUBSUB_NAME_MAX) {
            cmd_reply_error(c, "LIMIT the name of a channel or pattern has at most %d bytes",
                            PUBSUB_NAME_MAX);
            return -1;
        }
        added += !pubsub_is_subscribed(c->session, names[i].ptr, names[i].len, is_pattern);
        fresh += is_pattern && !pubsub_has_pattern(names[i].ptr, names[i].len);
    }
    if (c->session->n_subscriptions + added > PUBSUB_SUBSCRIPTIONS_MAX) {
        cmd_reply_error(c, "LIMIT a connection has at most %d subscriptions",
                        PUBSUB_SUBSCRIPTIONS_MAX);
        return -1;
    }
    if (is_pattern && pubsub_count_session(c->session, true) + added > PUBSUB_PATTERNS_MAX) {
        cmd_reply_error(c, "LIMIT a connection has at most %d patterns, and %d channels with them",
                        PUBSUB_PATTERNS_MAX, PUBSUB_SUBSCRIPTIONS_MAX);
        return -1;
    }
    if (pubsub_count_patterns() + fresh > PUBSUB_PATTERNS_ALL_MAX) {
        cmd_reply_error(c,
                        "LIMIT this broker has %" PRIu32 " patterns of all connections, at most %d",
                        pubsub_count_patterns(), PUBSUB_PATTERNS_ALL_MAX);
        return -1;
    }
    return 0;
}

/* To look for one may be to go through all that the session has. */
static void charge(const struct session *s, int n)
{
    cmd_charge((int64_t)n * s->n_subscriptions * LOOK_INSTRUCTIONS);
}

/* PSUBSCRIBE and PUNSUBSCRIBE mean patterns. */
static bool means_patterns(const struct cmd_call *c)
{
    return c->cmd->name[0] == 'P';
}

static void subscribe_all(struct session *s, int n, const struct resp_arg *names, bool is_pattern,
                          struct resp_writer *w)
{
    for (int i = 0; i < n; i++) {
        uint32_t count = pubsub_subscribe(s, names[i].ptr, names[i].len, is_pattern);
        write_answer(w, is_pattern ? "psubscribe" : "subscribe", names[i].ptr, names[i].len, count);
    }
}

/* ---- SUBSCRIBE that waits until this broker hears what is published at others ---- */

struct subscribing {
    struct request base; /* first */
    struct messages_wait wait;
    int n;
    struct resp_arg *names;
    bool is_pattern;
    struct buf answers;
};

static struct messages *all_messages(void)
{
    return dropin_messages(cmd_hooks()->dropin);
}

static void write_answers(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    const struct buf *answers = &((struct subscribing *)r)->answers;

    (void)now_ms;
    buf_append(w->out, buf_head(answers), buf_len(answers));
}

static void abandon_subscribing(struct request *r, int64_t now_ms)
{
    (void)now_ms;
    messages_stop_waiting(all_messages(), &((struct subscribing *)r)->wait);
    request_finish(r);
}

static void free_subscribing(struct request *r)
{
    struct subscribing *s = (struct subscribing *)r;

    buf_fini(&s->answers);
    free(s->names);
    free(s);
}

static const struct request_type subscribing_type = {
    .write = write_answers, .abandon = abandon_subscribing, .free = free_subscribing};

static void on_heard(struct messages_wait *wait, int64_t now_ms)
{
    struct subscribing *s =
        (struct subscribing *)((char *)wait - offsetof(struct subscribing, wait));
    struct resp_writer w = {.out = &s->answers, .proto = s->base.session->proto};

    (void)now_ms;
    subscribe_all(s->base.session, s->n, s->names, s->is_pattern, &w);
    request_finish(&s->base);
}

static void subscribe_when_heard(struct cmd_call *c, int n, const struct resp_arg *names)
{
    struct subscribing *s = util_alloc(sizeof(*s));

    s->base.type = &subscribing_type;
    s->wait.on_ready = on_heard;
    s->n = n;
    s->names = resp_copy_args(names, n);
    s->is_pattern = means_patterns(c);
    session_ask(c->session, &s->base);
    request_park(&s->base);
    messages_wait(all_messages(), &s->wait, c->now_ms);
}

/* Returns whether what clients publish can be meant, which takes hearing it at other brokers. */
static bool means_messages(int n, const struct resp_arg *names)
{
    int i = 0;

    while (i < n && channel_is_own(names[i].ptr, names[i].len))
        i++;
    return i < n && cmd_dropin_is_on();
}

void cmd_pubsub_subscribe(struct cmd_call *c)
{
    const struct resp_arg *names = c->argv + 1;
    bool is_pattern = means_patterns(c);
    int n = c->argc - 1;

    charge(c->session, 2 * c->argc);
    if (check_limits(c, n, names, is_pattern) != 0)
        return;
    for (int i = 0; i < n; i++)
        cmd_charge((int64_t)names[i].len * (is_pattern ? PATTERN_INSTRUCTIONS : NAME_INSTRUCTIONS));
    if (means_messages(n, names) && !messages_want(all_messages(), c->now_ms))
        subscribe_when_heard(c, n, names);
    else
        subscribe_all(c->session, n, names, is_pattern, cmd_reply(c));
}

/* ---- PUBLISH ---- */

void cmd_pubsub_publish(struct cmd_call *c)
{
    if (!channel_is_own(c->argv[1].ptr, c->argv[1].len)) {
        cmd_charge(PUBLISH_INSTRUCTIONS + (int64_t)c->argv[2].len);
        cmd_dropin_command(c);
        return;
    }
    cmd_multi_spoil(c->session);
    cmd_reply_error(c,
                    "ERR '%.*s' was not published to: the channels lost and lock:NAME are "
                    "holdfast's own; choose another name",
                    CMD_ARG(&c->argv[1]));
}

/* ---- the end of subscriptions ---- */

static void on_unsubscribed(void *arg, const char *name, size_t len, uint32_t left)
{
    write_answer(arg, "unsubscribe", name, len, left);
}

static void on_punsubscribed(void *arg, const char *name, size_t len, uint32_t left)
{
    write_answer(arg, "punsubscribe", name, len, left);
}

void cmd_pubsub_unsubscribe(struct cmd_call *c)
{
    bool is_pattern = means_patterns(c);
    const char *kind = is_pattern ? "punsubscribe" : "unsubscribe";
    struct resp_writer *w = cmd_reply(c);

    charge(c->session, c->argc);
    if (c->argc == 1 && pubsub_count_session(c->session, is_pattern) == 0)
        write_answer(w, kind, NULL, 0, c->session->n_subscriptions);
    else if (c->argc == 1)
        pubsub_unsubscribe_all(c->session, is_pattern,
                               is_pattern ? on_punsubscribed : on_unsubscribed, w);
    for (int i = 1; i < c->argc; i++) {
        uint32_t left = pubsub_unsubscribe(c->session, c->argv[i].ptr, c->argv[i].len, is_pattern);
        write_answer(w, kind, c->argv[i].ptr, c->argv[i].len, left);
    }
}

/* ---- PUBSUB ---- */

/* Steps of some 100 instructions that one look at all channels may take. */
enum { CHANNELS_STEPS = 25000, CHANNEL_STEPS = 2, MATCH_BYTES = 8 };

struct channels {
    int64_t steps;        /* done */
    struct glob *pattern; /* NULL: all */
    struct resp_writer w;
    size_t n;
};

/* The header needs their number: names go into a buffer first. False: that is enough. */
static bool on_channel(void *arg, const char *name, size_t len, uint32_t n_sessions)
{
    struct channels *c = arg;

    (void)n_sessions;
    c->steps += CHANNEL_STEPS;
    if (c->pattern != NULL)
        c->steps += (int64_t)glob_steps(c->pattern, len) / MATCH_BYTES;
    if (c->steps > CHANNELS_STEPS)
        return false;
    if (c->pattern != NULL && !glob_match(c->pattern, name, len))
        return true;
    resp_bulk(&c->w, name, len);
    c->n++;
    return true;
}

void cmd_pubsub_channels(struct cmd_call *c)
{
    struct buf names = {0};
    struct channels found = {.w = {.out = &names, .proto = c->session->proto}};

    if (c->argc > 3) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'pubsub|channels' command");
        return;
    }
    if (c->argc > 2 && (found.pattern = cmd_glob(c, &c->argv[2])) == NULL)
        return;
    pubsub_each_channel(on_channel, &found);
    cmd_charge(found.steps * 100);
    if (found.steps > CHANNELS_STEPS) {
        cmd_reply_error(c,
                        "LIMIT there are too many channels to look at (%" PRIu32
                        "): ask for some by name, PUBSUB NUMSUB",
                        pubsub_count_channels());
    } else {
        cmd_reply_elements(c, found.n, &names);
    }
    glob_free(found.pattern);
    buf_fini(&names);
}

void cmd_pubsub_numsub(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, 2 * (size_t)(c->argc - 2));
    for (int i = 2; i < c->argc; i++) {
        resp_bulk(w, c->argv[i].ptr, c->argv[i].len);
        resp_int(w, pubsub_count_channel(c->argv[i].ptr, c->argv[i].len));
    }
}

void cmd_pubsub_numpat(struct cmd_call *c)
{
    cmd_reply_int(c, pubsub_count_patterns());
}
