/*
 * Invariants: `beat` is always set; since_ms is 0 exactly while there is no connection, nor one on
 * the way.
 */
#include "redis/asker.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/request.h"
#include "net/tls.h"

enum { GIVE_UP_MS = 500 };

struct naming_address asker_address(const struct conf_sentinel *at)
{
    struct naming_address address = {.port = at->port};

    _Static_assert(sizeof address.host >= sizeof at->host, "a host that is configured fits");
    strcpy(address.host, at->host);
    return address;
}

void asker_write_address(char *out, size_t size, const struct naming_address *a)
{
    snprintf(out, size, strchr(a->host, ':') ? "[%s]:%d" : "%s:%d", a->host, a->port);
}

static void set_asker_beat(struct asker *a, int64_t ms)
{
    const struct timeval later = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    event_add(&a->beat, &later);
}

/* Ends the connection, which the next beat makes anew. */
static void lose_asker(struct asker *a, const char *why)
{
    stream_close(&a->stream);
    a->since_ms = 0;
    a->is_asked = a->hastens = false;
    a->spoke = true;
    if (strcmp(a->error, why) == 0)
        return;
    snprintf(a->error, sizeof a->error, "%s", why);
    log_warn(a->set->object, "%s %s: %s", a->set->kind, a->name, a->error);
}

/* ---- asking ---- */

static void ask_again(struct asker *a, int64_t now_ms)
{
    a->since_ms = now_ms;
    a->is_asked = true;
    a->hastens = false;
    a->set->events->ask(a->arg, stream_out(&a->stream));
    stream_flush(&a->stream);
}

static void on_asker_open(void *arg)
{
    struct asker *a = arg;

    reply_start(&a->reply, (size_t)a->set->max_reply);
    if (a->set->password)
        request_auth(stream_out(&a->stream), a->set->user, a->set->password);
    ask_again(a, clock_ms());
}

/* The stream keeps no copy of the context and the name. */
static void secure_asker(struct asker *a)
{
    const struct asker_set *s = a->set;

    if (s->secure)
        stream_secure(&a->stream, s->tls, s->server_name ? s->server_name : a->address.host);
}

static void connect_asker(struct asker *a, int64_t now_ms)
{
    const struct asker_set *s = a->set;

    if (s->secure && !s->tls) {
        lose_asker(a, "the files for TLS are not good");
        return;
    }
    a->since_ms = now_ms;
    stream_connect(&a->stream, s->dns, a->address.host, a->address.port);
}

static void on_asker_beat(evutil_socket_t fd, short what, void *arg)
{
    struct asker *a = arg;
    const struct asker_set *s = a->set;
    int64_t now_ms = clock_ms(), patience_ms = 2 * s->beat_ms;

    (void)fd, (void)what;
    if (!s->events->on_beat(a->arg, now_ms))
        return;
    set_asker_beat(a, s->beat_ms);
    if (patience_ms < GIVE_UP_MS)
        patience_ms = GIVE_UP_MS;
    if (!a->since_ms)
        connect_asker(a, now_ms);
    else if (!a->is_asked && stream_is_open(&a->stream))
        ask_again(a, now_ms);
    else if (now_ms - a->since_ms > patience_ms)
        lose_asker(a, a->is_asked ? "it does not answer" : "it cannot be reached");
}

void asker_hasten(struct asker *a)
{
    int64_t early_ms = a->since_ms + a->set->haste_ms - clock_ms();

    if (a->hastens || !stream_is_open(&a->stream))
        return;
    a->hastens = true;
    if (!a->is_asked)
        set_asker_beat(a, early_ms > 0 ? early_ms : 0);
}

/* ---- what it says ---- */

void asker_heard(struct asker *a)
{
    a->spoke = true;
    a->error[0] = 0;
}

void asker_done(struct asker *a)
{
    a->is_asked = false;
    if (a->hastens)
        set_asker_beat(a, a->set->haste_ms);
}

/* Writes why the connection is of no use, if that is so. */
static void take_asker_reply(struct asker *a, char *why, size_t size)
{
    const struct reply_value *v = a->reply.values;
    char words[REPLY_WORDS_MAX];
    const char *text;

    if (v->type == REPLY_ERROR)
        snprintf(why, size, "it refuses: %s",
                 reply_words(words, sizeof words, reply_text(&a->reply, v), v->len));
    else if (v->type != REPLY_STATUS && /* of AUTH */
             (text = a->set->events->on_reply(a->arg, &a->reply)) != NULL)
        snprintf(why, size, "%s", text);
}

static size_t on_asker_bytes(void *arg, const char *data, size_t len)
{
    struct asker *a = arg;
    enum reply_result result = REPLY_MORE;
    char why[REPLY_WORDS_MAX + 20] = "";

    for (size_t used = 0, n; used < len && !*why; used += n) {
        n = len - used < REPLY_FEED_MAX ? len - used : REPLY_FEED_MAX;
        reply_feed(&a->reply, data + used, n);
        while (!*why && (result = reply_next(&a->reply)) == REPLY_READY)
            take_asker_reply(a, why, sizeof why);
        if (result == REPLY_BROKEN)
            snprintf(why, sizeof why, "%s", a->reply.error);
    }
    if (*why)
        lose_asker(a, why);
    return len;
}

static void on_asker_end(void *arg, enum stream_end end, int err, const char *text)
{
    struct asker *a = arg;

    (void)end, (void)err;
    lose_asker(a, text);
    if (a->set->events->on_end)
        a->set->events->on_end(a->arg);
}

static const struct stream_events stream_events = {
    .on_open = on_asker_open,
    .on_bytes = on_asker_bytes,
    .on_end = on_asker_end,
};

/* ---- life ---- */

void asker_set_init(struct asker_set *s)
{
    s->user = s->password = s->server_name = NULL;
    s->tls = NULL;
    TAILQ_INIT(&s->all);
}

void asker_set_login(struct asker_set *s, const char *user, const char *password,
                     const struct tls_files *files, const char *server_name)
{
    char error[TLS_REASON_MAX];
    struct ssl_ctx_st *fresh;
    struct asker *a;

    free(s->user);
    free(s->password);
    s->user = util_strdup(user);
    s->password = util_strdup(password);
    if (!s->secure)
        return;
    if (!(fresh = tls_client_new(files, error, sizeof error))) {
        log_error(s->object, "TLS to a %s: %s", s->kind, error);
        return;
    }
    tls_context_free(s->tls);
    s->tls = fresh;
    free(s->server_name);
    s->server_name = util_strdup(server_name);
    TAILQ_FOREACH(a, &s->all, next) /* what it is connected with stays until then */
        secure_asker(a);
}

void asker_set_fini(struct asker_set *s)
{
    free(s->user);
    free(s->password);
    free(s->server_name);
    tls_context_free(s->tls);
}

void asker_init(struct asker *a, struct asker_set *s, const struct naming_address *address,
                void *arg)
{
    *a = (struct asker){.set = s, .arg = arg, .address = *address};
    asker_write_address(a->name, sizeof a->name, address);
    stream_init(&a->stream, s->base, &stream_events, a);
    secure_asker(a);
    event_assign(&a->beat, s->base, -1, 0, on_asker_beat, a);
    TAILQ_INSERT_TAIL(&s->all, a, next);
    set_asker_beat(a, 0);
}

void asker_fini(struct asker *a)
{
    TAILQ_REMOVE(&a->set->all, a, next);
    event_del(&a->beat);
    stream_close(&a->stream);
    reply_fini(&a->reply);
}
