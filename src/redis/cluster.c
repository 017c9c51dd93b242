/*
 * The connections to the nodes of a Cluster that ask, and the links that its masters share.
 *
 * Invariants: a word is taken with the time at which it was asked for; a lost link takes no word
 * back, which becomes too old by itself.
 */
#include "redis/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/request.h"
#include "net/tls.h"
#include "redis/asker.h"
#include "redis/link.h"

enum { BEATS_PER_TIMEOUT = 5, HASTE_MS = 50, WORDS_MAX = 4000 };

struct cluster_node {
    TAILQ_ENTRY(cluster_node) next;
    struct cluster *all;
    bool is_seed; /* it is configured; else it goes when nobody tells of it any more */
    struct asker asker;
};

struct cluster_link {
    TAILQ_ENTRY(cluster_link) next;
    struct naming_address address;
    struct link *link;
    int users;
};

struct cluster {
    struct cluster_setup setup;
    char object[CONF_MASTER_NAME_MAX + 16];
    struct asker_set askers;
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

static void ask_node(void *arg, struct buf *out)
{
    (void)arg;
    request_words(out, "CLUSTER NODES");
}

void cluster_doubt(struct cluster *c)
{
    struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        asker_hasten(&n->asker);
}

static bool is_wanted(const struct cluster_node *n)
{
    const struct shards *s = &n->all->shards;

    for (int i = 0; i < NODES_MAX && !n->is_seed; i++)
        if (s->nodes[i].id[0] && naming_is_same(&s->nodes[i].address, &n->asker.address))
            return true;
    return n->is_seed;
}

static void free_node(struct cluster_node *n)
{
    TAILQ_REMOVE(&n->all->all, n, next);
    asker_fini(&n->asker);
    free(n);
}

static void free_link(struct cluster *c, struct cluster_link *l)
{
    TAILQ_REMOVE(&c->links, l, next);
    link_free(l->link);
    free(l);
}

/* In a turn of its own, as who has left may have done so in a callback of the link. */
static void free_unused_links(struct cluster *c)
{
    struct cluster_link *l, *after;

    for (l = TAILQ_FIRST(&c->links); l; l = after) {
        after = TAILQ_NEXT(l, next);
        if (!l->users)
            free_link(c, l);
    }
}

static bool on_node_beat(void *arg, int64_t now_ms)
{
    struct cluster_node *n = arg;
    struct cluster *c = n->all;

    free_unused_links(c);
    if (shards_pass(&c->shards, now_ms))
        tell_followers(c);
    if (is_wanted(n))
        return true;
    free_node(n);
    return false;
}

/* ---- what it says ---- */

static const struct asker_events asker_events;

static void add_node(struct cluster *c, const struct naming_address *at, bool is_seed)
{
    struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        if (naming_is_same(&n->asker.address, at))
            return;
    n = util_alloc(sizeof *n);
    n->all = c;
    n->is_seed = is_seed;
    TAILQ_INSERT_TAIL(&c->all, n, next);
    asker_init(&n->asker, &c->askers, at, n);
}

static void add_nodes_told(struct cluster *c)
{
    for (int i = 0; i < NODES_MAX; i++)
        if (c->shards.nodes[i].id[0] && c->shards.nodes[i].address.port)
            add_node(c, &c->shards.nodes[i].address, false);
}

static const char *on_node_reply(void *arg, const struct reply *r)
{
    struct cluster_node *n = arg;
    struct cluster *c = n->all;
    const struct reply_value *v = r->values;
    const char *why = "it does not answer as a node of a Redis Cluster does";

    if (!n->asker.is_asked || v->type != REPLY_TEXT ||
        nodes_read(&c->nodes, reply_text(r, v), v->len, &n->asker.address, &why) != 0)
        return why;
    if (n->asker.error[0])
        log_info(c->object, "node %s answers", n->asker.name);
    asker_heard(&n->asker);
    asker_done(&n->asker);
    (void)shards_take(&c->shards, &c->nodes, n->asker.since_ms, clock_ms());
    add_nodes_told(c);
    tell_followers(c);
    return NULL;
}

static void on_node_end(void *arg)
{
    cluster_doubt(((struct cluster_node *)arg)->all);
}

static const struct asker_events asker_events = {
    .on_beat = on_node_beat,
    .ask = ask_node,
    .on_reply = on_node_reply,
    .on_end = on_node_end,
};

/* ---- links ---- */

struct link *cluster_link(struct cluster *c, const char *host, int port)
{
    struct cluster_link *l;

    TAILQ_FOREACH(l, &c->links, next)
        if (l->address.port == port && strcmp(l->address.host, host) == 0) {
            l->users++;
            return l->link;
        }
    l = util_alloc(sizeof *l);
    snprintf(l->address.host, sizeof l->address.host, "%s", host);
    l->address.port = port;
    l->link = link_new(c->setup.base, true);
    l->users = 1;
    TAILQ_INSERT_TAIL(&c->links, l, next);
    return l->link;
}

void cluster_unlink(struct cluster *c, const struct link *link)
{
    struct cluster_link *l;

    TAILQ_FOREACH(l, &c->links, next)
        if (l->link == link)
            l->users--;
}

/* ---- for people ---- */

const char *cluster_words(struct cluster *c, int64_t now_ms)
{
    size_t len = shards_words(&c->shards, c->words, sizeof c->words);
    const struct cluster_node *n;

    (void)now_ms;
    TAILQ_FOREACH(n, &c->all, next) {
        const struct asker *a = &n->asker;
        if (len + 2 < sizeof c->words && (a->error[0] || !a->spoke))
            len += (size_t)snprintf(c->words + len, sizeof c->words - len, ", %s: %s", a->name,
                                    a->error[0] ? a->error : "has not answered");
    }
    return c->words;
}

bool cluster_has_spoken(const struct cluster *c)
{
    const struct cluster_node *n;

    TAILQ_FOREACH(n, &c->all, next)
        if (n->is_seed && !n->asker.spoke)
            return false;
    return true;
}

/* ---- life ---- */

void cluster_configure(struct cluster *c, const struct conf_master *conf)
{
    const struct tls_files files = {
        .certificate = conf->certificate, .key = conf->key, .ca = conf->ca};

    asker_set_login(&c->askers, conf->user, conf->password, &files, conf->server_name);
}

struct cluster *cluster_new(const struct cluster_setup *setup, const struct conf_master *conf)
{
    struct cluster *c = util_alloc(sizeof *c);
    struct conf_sentinel at[CONF_SENTINELS_MAX];
    int n = conf_cluster_nodes(conf, at);

    c->setup = *setup;
    snprintf(c->object, sizeof c->object, "cluster %s", conf->name);
    shards_init(&c->shards, setup->timeout_ms);
    TAILQ_INIT(&c->all);
    TAILQ_INIT(&c->links);
    c->askers = (struct asker_set){
        .base = setup->base,
        .dns = setup->dns,
        .beat_ms = setup->timeout_ms / BEATS_PER_TIMEOUT,
        .haste_ms = HASTE_MS,
        .max_reply = setup->max_reply,
        .object = c->object,
        .kind = "node",
        .events = &asker_events,
        .secure = conf->tls,
    };
    asker_set_init(&c->askers);
    cluster_configure(c, conf);
    for (int i = 0; i < n; i++) {
        const struct naming_address seed = asker_address(&at[i]);
        add_node(c, &seed, true);
    }
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
    while ((l = TAILQ_FIRST(&c->links)) != NULL)
        free_link(c, l); /* NOLINT(clang-analyzer-unix.Malloc): it is not in the list any more */
    asker_set_fini(&c->askers);
    free(c);
}
