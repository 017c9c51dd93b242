/*
 * The connections to the Sentinels of one master.
 *
 * Invariants: `beat` is always set; a word is taken with the time at which its question was sent; a
 * lost link takes no word back, which becomes too old by itself.
 */
#include "redis/sentinel.h"

#include <ctype.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/reply.h"
#include "net/request.h"
#include "net/stream.h"
#include "net/tls.h"

enum { BEATS_PER_TIMEOUT = 5, GIVE_UP_MS = 500, WORDS_MAX = 1500, OLD_BEATS = 3 };

#define SWITCHES "+switch-master"

struct sentinel {
    struct sentinels *all;
    int index;
    char name[CONF_HOST_MAX + 16], host[CONF_HOST_MAX + 1];
    int port;
    struct stream stream;
    struct reply reply;
    struct event beat;
    int64_t since_ms; /* it was asked, or the connect began; 0: neither */
    bool is_asked;    /* a round is under way */
    bool again;       /* then another one follows */
    bool spoke;
    char error[REPLY_WORDS_MAX + 40]; /* of the last link; "": it is good */
};

struct sentinels {
    struct sentinels_setup setup;
    char *call_it; /* the name that they have for the master */
    char *user, *password, *server_name;
    bool secure;
    struct ssl_ctx_st *tls; /* NULL: not secure, or its files are not good */
    struct naming naming;
    char words[WORDS_MAX];
    int n;
    struct sentinel v[CONF_SENTINELS_MAX];
};

static int64_t beat_ms(const struct sentinels *s)
{
    return s->setup.timeout_ms / BEATS_PER_TIMEOUT;
}

static void set_beat(struct sentinel *s, int64_t ms)
{
    const struct timeval later = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    event_add(&s->beat, &later);
}

/* Ends the link, which the next beat makes anew. */
static void lose_sentinel(struct sentinel *s, const char *why)
{
    stream_close(&s->stream);
    s->since_ms = 0;
    s->is_asked = s->again = false;
    s->spoke = true;
    if (strcmp(s->error, why) == 0)
        return;
    snprintf(s->error, sizeof s->error, "%s", why);
    log_warn(s->all->setup.object, "Sentinel %s: %s", s->name, s->error);
}

/* ---- asking ---- */

static void ask_sentinel(struct sentinel *s, int64_t now_ms)
{
    struct buf *out = stream_out(&s->stream);

    s->since_ms = now_ms;
    s->is_asked = true;
    request_strings(out, 2, (const char *const[]){"UNSUBSCRIBE", SWITCHES});
    request_strings(out, 3,
                    (const char *const[]){"SENTINEL", "get-master-addr-by-name", s->all->call_it});
    request_strings(out, 2, (const char *const[]){"SUBSCRIBE", SWITCHES});
    stream_flush(&s->stream);
}

static void on_sentinel_open(void *arg)
{
    struct sentinel *s = arg;
    struct sentinels *all = s->all;

    reply_start(&s->reply, (size_t)all->setup.max_reply);
    if (all->password)
        request_auth(stream_out(&s->stream), all->user, all->password);
    ask_sentinel(s, clock_ms());
}

static void connect_sentinel(struct sentinel *s, int64_t now_ms)
{
    struct sentinels *all = s->all;

    if (all->secure && !all->tls) {
        lose_sentinel(s, "the files for TLS to Sentinels are not good");
        return;
    }
    if (all->secure)
        stream_secure(&s->stream, all->tls, all->server_name ? all->server_name : s->host);
    s->since_ms = now_ms;
    stream_connect(&s->stream, all->setup.dns, s->host, s->port);
}

static void on_sentinel_beat(evutil_socket_t fd, short what, void *arg)
{
    struct sentinel *s = arg;
    struct sentinels *all = s->all;
    int64_t now_ms = clock_ms(), patience_ms = 2 * beat_ms(all);

    (void)fd, (void)what;
    set_beat(s, beat_ms(all));
    if (naming_pass(&all->naming, now_ms))
        all->setup.on_word(all->setup.arg);
    if (patience_ms < GIVE_UP_MS)
        patience_ms = GIVE_UP_MS;
    if (!s->since_ms)
        connect_sentinel(s, now_ms);
    else if (!s->is_asked && stream_is_open(&s->stream))
        ask_sentinel(s, now_ms);
    else if (now_ms - s->since_ms > patience_ms)
        lose_sentinel(s, s->is_asked ? "it does not answer" : "it cannot be reached");
}

/* ---- what it says ---- */

static void write_address(char *out, size_t size, const struct naming_address *a)
{
    snprintf(out, size, strchr(a->host, ':') ? "[%s]:%d" : "%s:%d", a->host, a->port);
}

static void take_word(struct sentinel *s, const struct naming_address *address)
{
    struct sentinels *all = s->all;
    bool is_new = !naming_is_same(&all->naming.words[s->index].address, address);
    char text[NAMING_HOST_MAX + 16];

    write_address(text, sizeof text, address);
    if (address->port && (is_new || s->error[0]))
        log_info(all->setup.object, "Sentinel %s names %s", s->name, text);
    if (!address->port && (is_new || !s->spoke))
        log_warn(all->setup.object, "Sentinel %s knows no master \"%s\"", s->name, all->call_it);
    s->error[0] = 0;
    s->spoke = true;
    (void)naming_take(&all->naming, s->index, address, s->since_ms, clock_ms());
    all->setup.on_word(all->setup.arg);
}

/* Reads {host, port}; nil: it has no master of this name. */
static int read_address(const struct reply *r, struct naming_address *out)
{
    const struct reply_value *v = r->values;
    int64_t port;

    *out = (struct naming_address){.port = 0};
    if (v->type == REPLY_NIL)
        return 0;
    if (r->count != 3 || v[1].type != REPLY_TEXT || v[2].type != REPLY_TEXT || v[1].len == 0 ||
        v[1].len > NAMING_HOST_MAX ||
        util_parse_int(reply_text(r, &v[2]), v[2].len, 1, 65535, &port) != 0)
        return -1;
    snprintf(out->host, sizeof out->host, "%s", reply_text(r, &v[1]));
    for (const char *p = out->host; *p; p++)
        if (!isgraph((unsigned char)*p))
            return -1;
    out->port = (int)port;
    return 0;
}

/* Takes ["message", channel, "<name> <old> <new>"], or the answer to SUBSCRIBE and UNSUBSCRIBE. */
static void take_push(struct sentinel *s)
{
    const struct reply *r = &s->reply;
    const struct reply_value *v = r->values;
    const char *call_it = s->all->call_it;
    size_t len = strlen(call_it);

    if (reply_is_text(r, &v[1], "subscribe")) {
        s->is_asked = false;
    } else if (reply_is_text(r, &v[1], "message") && v[3].type == REPLY_TEXT && v[3].len > len &&
               memcmp(reply_text(r, &v[3]), call_it, len) == 0 &&
               reply_text(r, &v[3])[len] == ' ') {
        s->again = true;
    }
    if (!s->again || s->is_asked)
        return;
    s->again = false;
    ask_sentinel(s, clock_ms());
}

/* Returns -1 when the link is of no use; `why` says why. */
static int take_sentinel_reply(struct sentinel *s, char *why, size_t size)
{
    const struct reply *r = &s->reply;
    const struct reply_value *v = r->values;
    struct naming_address address;
    char words[REPLY_WORDS_MAX];

    if (v->type == REPLY_ERROR) {
        snprintf(why, size, "it refuses: %s",
                 reply_words(words, sizeof words, reply_text(r, v), v->len));
        return -1;
    }
    if (v->type == REPLY_STATUS) /* of AUTH */
        return 0;
    if (v->type == REPLY_ARRAY && v->integer == 3 && r->count == 4) {
        take_push(s);
        return 0;
    }
    if (!s->is_asked || (v->type != REPLY_NIL && v->type != REPLY_ARRAY) ||
        read_address(r, &address) != 0) {
        snprintf(why, size, "it does not answer as a Sentinel does");
        return -1;
    }
    take_word(s, &address);
    return 0;
}

static size_t on_sentinel_bytes(void *arg, const char *data, size_t len)
{
    struct sentinel *s = arg;
    enum reply_result result = REPLY_MORE;
    char why[REPLY_WORDS_MAX + 20] = "";

    for (size_t used = 0, n; used < len && !*why; used += n) {
        n = len - used < REPLY_FEED_MAX ? len - used : REPLY_FEED_MAX;
        reply_feed(&s->reply, data + used, n);
        while (!*why && (result = reply_next(&s->reply)) == REPLY_READY)
            (void)take_sentinel_reply(s, why, sizeof why);
        if (result == REPLY_BROKEN)
            snprintf(why, sizeof why, "%s", s->reply.error);
    }
    if (*why)
        lose_sentinel(s, why);
    return len;
}

static void on_sentinel_end(void *arg, enum stream_end end, int err, const char *text)
{
    (void)end, (void)err;
    lose_sentinel(arg, text);
}

static const struct stream_events stream_events = {
    .on_open = on_sentinel_open,
    .on_bytes = on_sentinel_bytes,
    .on_end = on_sentinel_end,
};

/* ---- for people ---- */

const struct naming *sentinels_naming(const struct sentinels *s)
{
    return &s->naming;
}

bool sentinels_have_spoken(const struct sentinels *s)
{
    for (int i = 0; i < s->n; i++)
        if (!s->v[i].spoke)
            return false;
    return true;
}

static size_t write_words(const struct sentinels *all, const struct sentinel *s, int64_t now_ms,
                          char *out, size_t size)
{
    const struct naming_word *w = &all->naming.words[s->index];
    int64_t age_ms = now_ms - w->asked_ms;
    char address[NAMING_HOST_MAX + 16], age[48] = "";
    int n;

    write_address(address, sizeof address, &w->address);
    if (age_ms > OLD_BEATS * beat_ms(all))
        snprintf(age, sizeof age, " %" PRId64 "s ago", age_ms / 1000);
    if (!s->spoke)
        n = snprintf(out, size, "%s has not answered", s->name);
    else if (s->error[0] && (!w->address.port || age[0]))
        n = snprintf(out, size, "%s: %s", s->name, s->error);
    else if (!w->address.port)
        n = snprintf(out, size, "%s knows no such master", s->name);
    else
        n = snprintf(out, size, "%s %s %s%s", s->name, age[0] ? "named" : "names", address, age);
    return n < 0 ? 0 : (size_t)n;
}

const char *sentinels_words(struct sentinels *s, int64_t now_ms)
{
    size_t len = 0;

    for (int i = 0; i < s->n && len + 2 < sizeof s->words; i++) {
        if (i > 0)
            len += (size_t)snprintf(s->words + len, sizeof s->words - len, ", ");
        len += write_words(s, &s->v[i], now_ms, s->words + len, sizeof s->words - len);
    }
    return s->words;
}

/* ---- life ---- */

struct ssl_ctx_st *sentinels_tls_new(const struct conf_master *m, char *error, size_t error_size)
{
    const struct tls_files files = {
        .certificate = m->sentinel_certificate, .key = m->sentinel_key, .ca = m->sentinel_ca};

    return tls_client_new(&files, error, error_size);
}

void sentinels_configure(struct sentinels *s, const struct conf_master *conf)
{
    char error[TLS_REASON_MAX];
    struct ssl_ctx_st *fresh;

    free(s->user);
    free(s->password);
    s->user = util_strdup(conf->sentinel_user);
    s->password = util_strdup(conf->sentinel_password);
    if (!s->secure)
        return;
    if (!(fresh = sentinels_tls_new(conf, error, sizeof error))) {
        log_error(s->setup.object, "TLS to Sentinels: %s", error);
        return;
    }
    tls_context_free(s->tls);
    s->tls = fresh;
    free(s->server_name);
    s->server_name = util_strdup(conf->sentinel_server_name);
    for (int i = 0; i < s->n; i++) /* what it is connected with stays until then */
        stream_secure(&s->v[i].stream, s->tls, s->server_name ? s->server_name : s->v[i].host);
}

struct sentinels *sentinels_new(const struct sentinels_setup *setup, const struct conf_master *conf)
{
    struct sentinels *s = util_alloc(sizeof *s);
    struct conf_sentinel at[CONF_SENTINELS_MAX];

    s->setup = *setup;
    s->n = conf_sentinels(conf, at);
    s->call_it = util_strdup(conf_sentinels_call_it(conf));
    s->secure = conf->sentinel_tls;
    naming_init(&s->naming, s->n, setup->timeout_ms);
    for (int i = 0; i < s->n; i++) {
        struct sentinel *one = &s->v[i];
        one->all = s;
        one->index = i;
        one->port = at[i].port;
        strcpy(one->host, at[i].host);
        snprintf(one->name, sizeof one->name, strchr(one->host, ':') ? "[%s]:%d" : "%s:%d",
                 one->host, one->port);
        stream_init(&one->stream, setup->base, &stream_events, one);
        event_assign(&one->beat, setup->base, -1, 0, on_sentinel_beat, one);
        event_active(&one->beat, EV_TIMEOUT, 0);
    }
    sentinels_configure(s, conf);
    return s;
}

void sentinels_free(struct sentinels *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++) {
        event_del(&s->v[i].beat);
        stream_close(&s->v[i].stream);
        reply_fini(&s->v[i].reply);
    }
    free(s->call_it);
    free(s->user);
    free(s->password);
    free(s->server_name);
    tls_context_free(s->tls);
    free(s);
}
