/*
 * The connections to the Sentinels of one master.
 *
 * Invariants: a word is taken with the time at which its question was sent; a lost link takes no
 * word back, which becomes too old by itself.
 */
#include "redis/sentinel.h"

#include <ctype.h>
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
#include "net/tls.h"
#include "redis/asker.h"

enum { BEATS_PER_TIMEOUT = 5, WORDS_MAX = 1500, OLD_BEATS = 3 };

#define SWITCHES "+switch-master"

struct sentinel {
    struct sentinels *all;
    int index;
    struct asker asker;
};

struct sentinels {
    struct sentinels_setup setup;
    struct asker_set askers;
    char *call_it; /* the name that they have for the master */
    struct naming naming;
    char words[WORDS_MAX];
    int n;
    struct sentinel v[CONF_SENTINELS_MAX];
};

/* ---- asking ---- */

static void ask_sentinel(void *arg, struct buf *out)
{
    const struct sentinel *s = arg;

    request_strings(out, 2, (const char *const[]){"UNSUBSCRIBE", SWITCHES});
    request_strings(out, 3,
                    (const char *const[]){"SENTINEL", "get-master-addr-by-name", s->all->call_it});
    request_strings(out, 2, (const char *const[]){"SUBSCRIBE", SWITCHES});
}

static bool on_sentinel_beat(void *arg, int64_t now_ms)
{
    struct sentinels *all = ((struct sentinel *)arg)->all;

    if (naming_pass(&all->naming, now_ms))
        all->setup.on_word(all->setup.arg);
    return true;
}

/* ---- what it says ---- */

static void take_word(struct sentinel *s, const struct naming_address *address)
{
    struct sentinels *all = s->all;
    bool is_new = !naming_is_same(&all->naming.words[s->index].address, address);
    char text[NAMING_HOST_MAX + 16];

    asker_write_address(text, sizeof text, address);
    if (address->port && (is_new || s->asker.error[0]))
        log_info(all->setup.object, "Sentinel %s names %s", s->asker.name, text);
    if (!address->port && (is_new || !s->asker.spoke))
        log_warn(all->setup.object, "Sentinel %s knows no master \"%s\"", s->asker.name,
                 all->call_it);
    asker_heard(&s->asker);
    (void)naming_take(&all->naming, s->index, address, s->asker.since_ms, clock_ms());
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
static void take_push(struct sentinel *s, const struct reply *r)
{
    const struct reply_value *v = r->values;
    const char *call_it = s->all->call_it;
    size_t len = strlen(call_it);

    if (reply_is_text(r, &v[1], "subscribe"))
        asker_done(&s->asker);
    else if (reply_is_text(r, &v[1], "message") && v[3].type == REPLY_TEXT && v[3].len > len &&
             memcmp(reply_text(r, &v[3]), call_it, len) == 0 && reply_text(r, &v[3])[len] == ' ')
        asker_hasten(&s->asker);
}

static const char *on_sentinel_reply(void *arg, const struct reply *r)
{
    struct sentinel *s = arg;
    const struct reply_value *v = r->values;
    struct naming_address address;

    if (v->type == REPLY_ARRAY && v->integer == 3 && r->count == 4) {
        take_push(s, r);
        return NULL;
    }
    if (!s->asker.is_asked || (v->type != REPLY_NIL && v->type != REPLY_ARRAY) ||
        read_address(r, &address) != 0)
        return "it does not answer as a Sentinel does";
    take_word(s, &address);
    return NULL;
}

static const struct asker_events asker_events = {
    .on_beat = on_sentinel_beat,
    .ask = ask_sentinel,
    .on_reply = on_sentinel_reply,
};

/* ---- for people ---- */

const struct naming *sentinels_naming(const struct sentinels *s)
{
    return &s->naming;
}

bool sentinels_have_spoken(const struct sentinels *s)
{
    for (int i = 0; i < s->n; i++)
        if (!s->v[i].asker.spoke)
            return false;
    return true;
}

static size_t write_words(const struct sentinels *all, const struct sentinel *s, int64_t now_ms,
                          char *out, size_t size)
{
    const struct naming_word *w = &all->naming.words[s->index];
    const struct asker *a = &s->asker;
    int64_t age_ms = now_ms - w->asked_ms;
    char address[NAMING_HOST_MAX + 16], age[48] = "";
    int n;

    asker_write_address(address, sizeof address, &w->address);
    if (age_ms > OLD_BEATS * all->askers.beat_ms)
        snprintf(age, sizeof age, " %" PRId64 "s ago", age_ms / 1000);
    if (!a->spoke)
        n = snprintf(out, size, "%s has not answered", a->name);
    else if (a->error[0] && (!w->address.port || age[0]))
        n = snprintf(out, size, "%s: %s", a->name, a->error);
    else if (!w->address.port)
        n = snprintf(out, size, "%s knows no such master", a->name);
    else
        n = snprintf(out, size, "%s %s %s%s", a->name, age[0] ? "named" : "names", address, age);
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

static struct tls_files files_of(const struct conf_master *m)
{
    return (struct tls_files){
        .certificate = m->sentinel_certificate, .key = m->sentinel_key, .ca = m->sentinel_ca};
}

struct ssl_ctx_st *sentinels_tls_new(const struct conf_master *m, char *error, size_t error_size)
{
    const struct tls_files files = files_of(m);

    return tls_client_new(&files, error, error_size);
}

void sentinels_configure(struct sentinels *s, const struct conf_master *conf)
{
    const struct tls_files files = files_of(conf);

    asker_set_login(&s->askers, conf->sentinel_user, conf->sentinel_password, &files,
                    conf->sentinel_server_name);
}

struct sentinels *sentinels_new(const struct sentinels_setup *setup, const struct conf_master *conf)
{
    struct sentinels *s = util_alloc(sizeof *s);
    struct conf_sentinel at[CONF_SENTINELS_MAX];

    s->setup = *setup;
    s->n = conf_sentinels(conf, at);
    s->call_it = util_strdup(conf_sentinels_call_it(conf));
    s->askers = (struct asker_set){
        .base = setup->base,
        .dns = setup->dns,
        .beat_ms = setup->timeout_ms / BEATS_PER_TIMEOUT,
        .max_reply = setup->max_reply,
        .object = setup->object,
        .kind = "Sentinel",
        .events = &asker_events,
        .secure = conf->sentinel_tls,
    };
    asker_set_init(&s->askers);
    sentinels_configure(s, conf);
    naming_init(&s->naming, s->n, setup->timeout_ms);
    for (int i = 0; i < s->n; i++) {
        const struct naming_address address = asker_address(&at[i]);
        s->v[i].all = s;
        s->v[i].index = i;
        asker_init(&s->v[i].asker, &s->askers, &address, &s->v[i]);
    }
    return s;
}

void sentinels_free(struct sentinels *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        asker_fini(&s->v[i].asker);
    asker_set_fini(&s->askers);
    free(s->call_it);
    free(s);
}
