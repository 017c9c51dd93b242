/*
 * The connections to the nodes of a Cluster that ask, and the links that its masters share.
 *
 * Invariants: `beat` is always set; a word is taken with the time at which it was asked for; a lost
 * link takes no word back, which becomes too old by itself.
 */
#include "redis/cluster.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/reply.h"
#include "net/request.h"
#include "net/stream.h"
#include "net/tls.h"
#include "redis/link.h"

enum { BEATS_PER_TIMEOUT = 5, GIVE_UP_MS = 500, HASTE_MS = 50, WORDS_MAX = 4000 };

struct cluster_node {
    TAILQ_ENTRY(cluster_node) next;
    struct cluster *all;
    struct naming_address address;
    char name[NAMING_HOST_MAX + 16];
    bool is_seed; /* it is configured; else it goes when nobody tells of it any more */
    struct stream stream;
    struct reply reply;
    struct event beat;
    int64_t since_ms; /* it was asked, or the connect began; 0: neither */
    bool is_asked;
    bool hastens; /* the next beat comes early; or, while it is asked, another question follows */
    bool spoke;
    char error[REPLY_WORDS_MAX + 40]; /* of the last link; "": it is good */
};

struct cluster_link {
    TAILQ_ENTRY(cluster_link) next;
    struct naming_address address;
    struct link *link;
};

struct cluster {
    struct cluster_setup setup;
    char object[CONF_MASTER_NAME_MAX + 16];
    char *user, *password, *server_name;
    bool secure;
    struct ssl_ctx_st *tls; /* NULL: not secure, or its files are not good */
    struct shards shards;
    struct nodes nodes; /* as the last node said: too large for the stack */
    struct {
        void (*on_word)(void *arg);
        void *arg;
    } followers[PARTITIONS];
    char words[WORDS_MAX], logged[WORDS_MAX];
    TAILQ_HEAD(, cluster_node) all;
    TAILQ_HEAD(, cluster_link) links;
};

static void secure_node(struct cluster_node *n)
{
    const struct cluster *c = n->all;

    if (c->secure)
        stream_secure(&n->stream, c->tls, c->server_name ? c->server_name : n->address.host);
}

static int64_t beat_ms(const struct cluster *c)
{
    return c->setup.timeout_ms / BEATS_PER_TIMEOUT;
}

static void set_node_beat(struct cluster_node *n, int64_t ms)
{
    const struct timeval later = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    event_add(&n->beat, &later);
}

/* Ends the connection, which the next beat makes anew. */
static void lose_node(struct cluster_node *n, const char *why)
{
    stream_close(&n->stream);
    n->since_ms = 0;
    n->is_asked = n->hastens = false;
    n->spoke = true;
    if (strcmp(n->error, why) == 0)
        return;
    snprintf(n->error, sizeof n->error, "%s", why);
    log_warn(n->all->object, "node %s: %s", n->name, n->error);
}

/* ---- who keeps what ---- */

static void tell_followers(struct cluster *c)
{
    char text[WORDS_MAX];

    shards_words(&c->shards, text, sizeof text);
    if (strcmp(text, c->logged) != 0) {
        strcpy(c->logged, text);
        log_info(c->object, "of %d partitions %s", partitions(), text);
    }
    for (int p = 0; p < partitions(); p++)
        if (c->followers[p].on_word)
            c->followers[p].on_word(c->followers[p].arg);
}

void cluster_follow(struct cluster *c, int partition, void (*on_word)(void *arg), void *arg)
{
    c->followers[partition].on_word = on_word;
    c->followers[partition].arg = arg;
}

void cluster_leave(struct cluster *c, int partition)
{
    c->followers[partition].on_word = NULL;
}

const struct shards *cluster_shards(const struct cluster *c)
{
    return &c->shards;
}

/* ---- asking ---- */

static void ask_node(struct cluster_node *n, int64_t now_ms)
{
    n->since_ms = now_ms;
    n->is_asked = true;
    n->hastens = false;
    request_words(stream_out(&n->stream), "CLUSTER NODES");
    stream_flush(&n->stream);
}

static void on_node_open(void *arg)
{
    struct cluster_node *n = arg;
    const struct cluster *c = n->all;

    reply_start(&n->reply, (size_t)c->setup.max_reply);
    if (c->password)
        request_auth(stream_out(&n->stream), c->user, c->password);
    ask_node(n, clock_ms());
}

static void connect_node(struct cluster_node *n, int64_t now_ms)
{
    const struct cluster *c = n->all;

    if (c->secure && !c->tls) {
        lose_node(n, "the files for TLS are not good");
        return;
    }
    secure_node(n);
    n->since_ms = now_ms;
    stream_connect(&n->stream, c->setup.dns, n->address.host, n->address.port);
}

static void hasten_node(struct cluster_node *n, int64_t now_ms)
{
    int64_t early_ms = n->since_ms + HASTE_MS - now_ms;

    if (n->hastens || !stream_is_open(&n->stream))
        return;
    n->hastens = true;
    if (!n->is_asked)
        set_node_beat(n, early_ms > 0 ? early_ms : 0);
}

void cluster_doubt(struct cluster *c)
{
    struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        hasten_node(n, clock_ms());
}

static bool is_wanted(const struct cluster_node *n)
{
    const struct shards *s = &n->all->shards;

    for (int i = 0; i < NODES_MAX && !n->is_seed; i++)
        if (s->nodes[i].id[0] && naming_is_same(&s->nodes[i].address, &n->address))
            return true;
    return n->is_seed;
}

static void free_node(struct cluster_node *n)
{
    TAILQ_REMOVE(&n->all->all, n, next);
    event_del(&n->beat);
    stream_close(&n->stream);
    reply_fini(&n->reply);
    free(n);
}

static void on_node_beat(evutil_socket_t fd, short what, void *arg)
{
    struct cluster_node *n = arg;
    struct cluster *c = n->all;
    int64_t now_ms = clock_ms(), patience_ms = 2 * beat_ms(c);

    (void)fd, (void)what;
    if (shards_pass(&c->shards, now_ms))
        tell_followers(c);
    if (!is_wanted(n)) {
        free_node(n);
        return;
    }
    set_node_beat(n, beat_ms(c));
    if (patience_ms < GIVE_UP_MS)
        patience_ms = GIVE_UP_MS;
    if (!n->since_ms)
        connect_node(n, now_ms);
    else if (!n->is_asked && stream_is_open(&n->stream))
        ask_node(n, now_ms);
    else if (now_ms - n->since_ms > patience_ms)
        lose_node(n, n->is_asked ? "it does not answer" : "it cannot be reached");
}

/* ---- what it says ---- */

static const struct stream_events stream_events;

static void add_node(struct cluster *c, const struct naming_address *at, bool is_seed)
{
    struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        if (naming_is_same(&n->address, at))
            return;
    n = util_alloc(sizeof *n);
    n->all = c;
    n->address = *at;
    n->is_seed = is_seed;
    snprintf(n->name, sizeof n->name, strchr(at->host, ':') ? "[%s]:%d" : "%s:%d", at->host,
             at->port);
    stream_init(&n->stream, c->setup.base, &stream_events, n);
    event_assign(&n->beat, c->setup.base, -1, 0, on_node_beat, n);
    TAILQ_INSERT_TAIL(&c->all, n, next);
    set_node_beat(n, 0);
}

static void add_nodes_told(struct cluster *c)
{
    for (int i = 0; i < NODES_MAX; i++)
        if (c->shards.nodes[i].id[0] && c->shards.nodes[i].address.port)
            add_node(c, &c->shards.nodes[i].address, false);
}

/* Returns -1 when the connection is of no use; `why` says why. */
static int take_node_reply(struct cluster_node *n, char *why, size_t size)
{
    struct cluster *c = n->all;
    const struct reply *r = &n->reply;
    const struct reply_value *v = r->values;
    char words[REPLY_WORDS_MAX];
    const char *text = "it does not answer as a node of a Redis Cluster does";

    if (v->type == REPLY_ERROR) {
        snprintf(why, size, "it refuses: %s",
                 reply_words(words, sizeof words, reply_text(r, v), v->len));
        return -1;
    }
    if (v->type == REPLY_STATUS) /* of AUTH */
        return 0;
    if (!n->is_asked || v->type != REPLY_TEXT ||
        nodes_read(&c->nodes, reply_text(r, v), v->len, &n->address, &text) != 0) {
        snprintf(why, size, "%s", text);
        return -1;
    }
    n->is_asked = false;
    n->spoke = true;
    if (n->error[0])
        log_info(c->object, "node %s answers", n->name);
    n->error[0] = 0;
    int64_t asked_ms = n->since_ms;
    if (n->hastens)
        set_node_beat(n, HASTE_MS);
    (void)shards_take(&c->shards, &c->nodes, asked_ms, clock_ms());
    add_nodes_told(c);
    tell_followers(c);
    return 0;
}

static size_t on_node_bytes(void *arg, const char *data, size_t len)
{
    struct cluster_node *n = arg;
    enum reply_result result = REPLY_MORE;
    char why[REPLY_WORDS_MAX + 20] = "";

    for (size_t used = 0, part; used < len && !*why; used += part) {
        part = len - used < REPLY_FEED_MAX ? len - used : REPLY_FEED_MAX;
        reply_feed(&n->reply, data + used, part);
        while (!*why && (result = reply_next(&n->reply)) == REPLY_READY)
            (void)take_node_reply(n, why, sizeof why);
        if (result == REPLY_BROKEN)
            snprintf(why, sizeof why, "%s", n->reply.error);
    }
    if (*why)
        lose_node(n, why);
    return len;
}

static void on_node_end(void *arg, enum stream_end end, int err, const char *text)
{
    struct cluster_node *n = arg;

    (void)end, (void)err;
    lose_node(n, text);
    cluster_doubt(n->all);
}

static const struct stream_events stream_events = {
    .on_open = on_node_open,
    .on_bytes = on_node_bytes,
    .on_end = on_node_end,
};

/* ---- links ---- */

struct link *cluster_link(struct cluster *c, const char *host, int port)
{
    struct cluster_link *l;

    TAILQ_FOREACH(l, &c->links, next)
        if (l->address.port == port && strcmp(l->address.host, host) == 0)
            return l->link;
    l = util_alloc(sizeof *l);
    snprintf(l->address.host, sizeof l->address.host, "%s", host);
    l->address.port = port;
    l->link = link_new(c->setup.base, true);
    TAILQ_INSERT_TAIL(&c->links, l, next);
    return l->link;
}

/* ---- for people ---- */

const char *cluster_words(struct cluster *c, int64_t now_ms)
{
    size_t len = shards_words(&c->shards, c->words, sizeof c->words);
    const struct cluster_node *n;

    (void)now_ms;
    TAILQ_FOREACH(n, &c->all, next) {
        if (len + 2 < sizeof c->words && (n->error[0] || !n->spoke))
            len += (size_t)snprintf(c->words + len, sizeof c->words - len, ", %s: %s", n->name,
                                    n->error[0] ? n->error : "has not answered");
    }
    return c->words;
}

bool cluster_has_spoken(const struct cluster *c)
{
    const struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        if (n->is_seed && !n->spoke)
            return false;
    return true;
}

/* ---- life ---- */

void cluster_configure(struct cluster *c, const struct conf_master *conf)
{
    const struct tls_files files = {
        .certificate = conf->certificate, .key = conf->key, .ca = conf->ca};
    char error[TLS_REASON_MAX];
    struct ssl_ctx_st *fresh;
    struct cluster_node *n;

    free(c->user);
    free(c->password);
    c->user = util_strdup(conf->user);
    c->password = util_strdup(conf->password);
    if (!c->secure)
        return;
    if (!(fresh = tls_client_new(&files, error, sizeof error))) {
        log_error(c->object, "TLS: %s", error);
        return;
    }
    tls_context_free(c->tls);
    c->tls = fresh;
    free(c->server_name);
    c->server_name = util_strdup(conf->server_name);
    TAILQ_FOREACH(n, &c->all, next) /* what it is connected with stays until then */
        secure_node(n);
}

struct cluster *cluster_new(const struct cluster_setup *setup, const struct conf_master *conf)
{
    struct cluster *c = util_alloc(sizeof *c);
    struct conf_sentinel at[CONF_SENTINELS_MAX];
    int n = conf_cluster_nodes(conf, at);

    c->setup = *setup;
    c->secure = conf->tls;
    snprintf(c->object, sizeof c->object, "cluster %s", conf->name);
    shards_init(&c->shards, setup->timeout_ms);
    TAILQ_INIT(&c->all);
    TAILQ_INIT(&c->links);
    for (int i = 0; i < n; i++) {
        struct naming_address seed = {.port = at[i].port};
        _Static_assert(sizeof seed.host >= sizeof at[i].host, "a host that is configured fits");
        strcpy(seed.host, at[i].host);
        add_node(c, &seed, true);
    }
    cluster_configure(c, conf);
    return c;
}

void cluster_free(struct cluster *c)
{
    struct cluster_node *n;
    struct cluster_link *l;

    if (!c)
        return;
    while ((n = TAILQ_FIRST(&c->all)) != NULL)
        free_node(n); /* NOLINT(clang-analyzer-unix.Malloc): it is not in the list any more */
    while ((l = TAILQ_FIRST(&c->links)) != NULL) {
        TAILQ_REMOVE(&c->links, l, next);
        link_free(l->link);
        free(l);
    }
    free(c->user);
    free(c->password);
    free(c->server_name);
    tls_context_free(c->tls);
    free(c);
}
