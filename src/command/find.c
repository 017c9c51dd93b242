/*
 * What clients ask Sentinels for: which server they are to use. A broker answers in the place of a
 * Sentinel: itself, or a peer when it cannot grant (session/peers).
 */
#include "command/handlers.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "session/peers.h"

static const struct peers *all_peers(void)
{
    return cmd_hooks()->peers;
}

/* Returns whether the brokers are called so; if not, the error has been answered. */
static bool knows_service(struct cmd_call *c)
{
    const struct resp_arg *name = &c->argv[2];

    c->session->asks_where = true;
    if (conf_lists_name(cmd_hooks()->conf->service, name->ptr, name->len))
        return true;
    cmd_reply_error(c, "ERR No such master with that name");
    return false;
}

/* Reads "127.0.0.1:5625" or "[::1]:5625"; -1: it is the path of a Unix socket. */
static int read_local(const char *text, struct peers_address *out)
{
    const char *colon = strrchr(text, ':'), *host = text;
    int64_t port;
    size_t len;

    if (colon == NULL || util_parse_int(colon + 1, strlen(colon + 1), 1, 65535, &port) != 0)
        return -1;
    len = (size_t)(colon - text);
    if (len > 2 && host[0] == '[') {
        host++;
        len -= 2;
    }
    if (len > PEERS_HOST_MAX)
        return -1;
    snprintf(out->host, sizeof out->host, "%.*s", (int)len, host);
    out->port = (int)port;
    return 0;
}

/* Finds where this client is to go; false: an error has been answered. */
static bool find_named(struct cmd_call *c, struct peers_address *out)
{
    const struct peers_address *named = peers_named(all_peers());

    if (named != NULL) {
        *out = *named;
        return true;
    }
    if (read_local(cmd_hooks()->local(c->session), out) == 0)
        return true;
    cmd_reply_error(c, "ERR this connection came through a Unix socket, which has no port: set "
                       "announce to where clients reach this broker");
    return false;
}

static void write_address(struct resp_writer *w, const struct peers_address *a)
{
    char port[16];

    snprintf(port, sizeof port, "%d", a->port);
    resp_str(w, a->host);
    resp_str(w, port);
}

static void write_int(struct resp_writer *w, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    resp_pair_str(w, key, text);
}

/* Nil for another name, as Sentinels answer. */
void cmd_find_address(struct cmd_call *c)
{
    struct peers_address at;

    c->session->asks_where = true;
    if (!conf_lists_name(cmd_hooks()->conf->service, c->argv[2].ptr, c->argv[2].len)) {
        resp_null_array(cmd_reply(c));
        return;
    }
    if (!find_named(c, &at))
        return;
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, 2);
    write_address(w, &at);
}

static void write_instance(struct resp_writer *w, const char *name, size_t len,
                           const struct peers_address *at, const char *flags)
{
    resp_str(w, "name");
    resp_bulk(w, name, len);
    resp_pair_str(w, "ip", at->host);
    write_int(w, "port", at->port);
    resp_pair_str(w, "runid", "");
    resp_pair_str(w, "flags", flags);
    write_int(w, "link-pending-commands", 0);
    write_int(w, "link-refcount", 1);
    write_int(w, "last-ping-sent", 0);
    write_int(w, "last-ok-ping-reply", 0);
    write_int(w, "last-ping-reply", 0);
    write_int(w, "down-after-milliseconds", PEERS_PATIENCE_MS);
}

enum { INSTANCE_FIELDS = 11, MASTER_FIELDS = INSTANCE_FIELDS + 8 };

static void write_master(struct resp_writer *w, const char *name, size_t len,
                         const struct peers_address *at)
{
    resp_map(w, MASTER_FIELDS);
    write_instance(w, name, len, at, "master");
    resp_pair_str(w, "role-reported", "master");
    write_int(w, "role-reported-time", 0);
    write_int(w, "config-epoch", 0);
    write_int(w, "num-slaves", 0);
    write_int(w, "num-other-sentinels", all_peers()->n);
    write_int(w, "quorum", 1);
    write_int(w, "failover-timeout", PEERS_WORD_MS);
    write_int(w, "parallel-syncs", 1);
}

void cmd_find_master(struct cmd_call *c)
{
    struct peers_address at;

    if (knows_service(c) && find_named(c, &at))
        write_master(cmd_reply(c), c->argv[2].ptr, c->argv[2].len, &at);
}

void cmd_find_masters(struct cmd_call *c)
{
    const char *list = cmd_hooks()->conf->service, *name;
    struct peers_address at;
    size_t n = 0, len;

    c->session->asks_where = true;
    if (!find_named(c, &at))
        return;
    for (const char *p = list; conf_next_name(&p, &len) != NULL;)
        n++;
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, n);
    for (const char *p = list; (name = conf_next_name(&p, &len)) != NULL;)
        write_master(w, name, len, &at);
}

/* REPLICAS and SLAVES: there are none, as no broker may be read from in another's place. */
void cmd_find_replicas(struct cmd_call *c)
{
    if (knows_service(c))
        resp_array(cmd_reply(c), 0);
}

static void write_peer(struct resp_writer *w, const struct peers_address *at, bool speaks)
{
    char name[PEERS_HOST_MAX + 16];

    snprintf(name, sizeof name, "%s:%d", at->host, at->port);
    resp_map(w, INSTANCE_FIELDS + 1);
    write_instance(w, name, strlen(name), at, speaks ? "sentinel" : "s_down,sentinel,disconnected");
    write_int(w, "voted-leader-epoch", 0);
}

/* The others, as a Sentinel does not name itself. */
void cmd_find_sentinels(struct cmd_call *c)
{
    const struct peers *peers = all_peers();

    if (!knows_service(c))
        return;
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)peers->n);
    for (int i = 0; i < peers->n; i++)
        write_peer(w, &peers->v[i].address, peers_speaks(peers, i, c->now_ms));
}

/* Brokers ask each other this, without logging in. */
void cmd_find_quorum(struct cmd_call *c)
{
    if (!knows_service(c))
        return;
    if (peers_is_well(all_peers()))
        resp_simple(cmd_reply(c), "OK this broker can grant locks");
    else
        cmd_reply_error(c, "NOQUORUM this broker cannot grant locks now");
}

/* Who cannot grant while a peer can is no master: clients that look at this ask again where to go.
 */
void cmd_find_role(struct cmd_call *c)
{
    const struct peers *peers = all_peers();
    struct resp_writer *w = cmd_reply(c);

    if (peers->named == PEERS_SELF) {
        resp_array(w, 3);
        resp_str(w, "master");
        resp_int(w, 0);
        resp_array(w, 0);
        return;
    }
    const struct peers_address *at = &peers->v[peers->named].address;
    resp_array(w, 5);
    resp_str(w, "slave");
    resp_str(w, at->host);
    resp_int(w, at->port);
    resp_str(w, "connected");
    resp_int(w, 0);
}
