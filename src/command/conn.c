/*
 * What a connection says about itself. The texts are Redis's: clients compare them.
 *
 * While no users are configured there is one, "default", who needs no password. A connection that
 * has said RESET is again who it was by the way it came.
 */
#include "command/handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/monitor.h"
#include "session/login.h"
#include "session/peers.h"
#include "session/pubsub.h"
#include "session/user.h"
#include "stats/stats.h"

void cmd_conn_ping(struct cmd_call *c)
{
    if (c->argc > 2) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'ping' command");
        return;
    }
    struct resp_writer *w = cmd_reply(c);
    if (c->session->n_subscriptions > 0 && c->session->proto == 2) {
        resp_array(w, 2);
        resp_str(w, "pong");
        resp_bulk(w, c->argc > 1 ? c->argv[1].ptr : "", c->argc > 1 ? c->argv[1].len : 0);
    } else if (c->argc > 1) {
        resp_bulk(w, c->argv[1].ptr, c->argv[1].len);
    } else {
        resp_simple(w, "PONG");
    }
}

void cmd_conn_echo(struct cmd_call *c)
{
    resp_bulk(cmd_reply(c), c->argv[1].ptr, c->argv[1].len);
}

void cmd_conn_quit(struct cmd_call *c)
{
    cmd_reply_ok(c);
    c->session->closing = true;
}

void cmd_conn_reset(struct cmd_call *c)
{
    struct session *s = c->session;

    pubsub_leave(s);
    monitor_leave(s);
    session_cancel_all(s, c->now_ms);
    cmd_hooks()->reset_client(cmd_hooks()->server, s, c->now_ms);
    free(s->name);
    s->name = NULL;
    session_set_user(s, s->own_user);
    s->no_evict = s->no_touch = s->tell = false;
    cmd_multi_end(s);
    s->proto = 2;
    s->db = 0;

    resp_simple(cmd_reply(c), "RESET");
}

void cmd_conn_select(struct cmd_call *c)
{
    int64_t index;

    if (!cmd_number(c, &c->argv[1], INT32_MIN, INT32_MAX, &index,
                    "ERR value is not an integer or out of range"))
        return;
    if (index < 0 || index >= SESSION_DATABASES) {
        cmd_reply_error(c, "ERR DB index is out of range");
        return;
    }
    c->session->db = (uint8_t)index;
    cmd_reply_ok(c);
}

void cmd_conn_time(struct cmd_call *c)
{
    int64_t wall_ms = clock_wall_ms();
    char text[24];
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, 2);
    snprintf(text, sizeof(text), "%" PRId64, wall_ms / 1000);
    resp_str(w, text);
    snprintf(text, sizeof(text), "%" PRId64, wall_ms % 1000 * 1000);
    resp_str(w, text);
}

/* ---- who it is ---- */

enum outcome {
    ACCEPTED,
    REFUSED, /* an error has been answered */
    WAITS    /* the command comes again */
};

static enum outcome refuse_password(struct cmd_call *c, const struct resp_arg *name)
{
    if (users_active())
        cmd_refused(c->session, CMD_REASON_AUTH, "AUTH", 4, name->ptr, name->len);
    stats.auth_failures_password++;
    cmd_reply_error(c, "WRONGPASS invalid username-password pair or user is disabled.");
    return REFUSED;
}

static enum outcome authenticate(struct cmd_call *c, const struct resp_arg *name,
                                 const struct resp_arg *password)
{
    const struct login_try try = {.origin = c->session->origin,
                                  .name = name->ptr,
                                  .name_len = name->len,
                                  .password = password->ptr,
                                  .password_len = password->len};
    struct user *user;

    if (!users_active()) {
        login_drop(c->session->login); /* a reload came while it waited */
        c->session->login = NULL;
        return name->len == 7 && memcmp(name->ptr, "default", 7) == 0 ? ACCEPTED
                                                                      : refuse_password(c, name);
    }
    switch (login_ask(&c->session->login, c->session, &try, c->now_ms, &user)) {
    case LOGIN_RIGHT:
        session_set_user(c->session, user);
        return ACCEPTED;
    case LOGIN_WRONG:
        return refuse_password(c, name);
    case LOGIN_CROWDED:
        stats.auth_failures_crowded++;
        cmd_reply_error(c,
                        "ERR too many passwords wait to be looked at; try again in some seconds");
        return REFUSED;
    default:
        c->waits_for_login = true;
        return WAITS;
    }
}

void cmd_conn_auth(struct cmd_call *c)
{
    static const struct resp_arg nobody = {"default", 7};

    if (c->argc > 3)
        cmd_reply_syntax(c);
    else if (c->argc == 2 && !users_active())
        cmd_reply_error(c, "ERR AUTH <password> called without any password configured for the "
                           "default user. Are you sure your configuration is correct?");
    else if (authenticate(c, c->argc == 2 ? &nobody : &c->argv[1], &c->argv[c->argc - 1]) ==
             ACCEPTED)
        cmd_reply_ok(c);
}

static void reply_hello(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    resp_map(w, 8);
    resp_pair_str(w, "server", "redis");
    resp_pair_str(w, "version", STATS_REDIS_VERSION);
    resp_pair_int(w, "proto", c->session->proto);
    resp_pair_int(w, "id", (int64_t)c->session->id);
    resp_pair_str(w, "mode", "standalone");
    resp_pair_str(w, "role", cmd_hooks()->peers->named == PEERS_SELF ? "master" : "replica");
    resp_str(w, "modules");
    resp_array(w, 0);
    resp_pair_str(w, "holdfast", stats_version());
}

/* Nothing of the session is in flight (CMD_BARRIER): no reply of the old version follows. */
void cmd_conn_hello(struct cmd_call *c)
{
    int64_t proto = c->session->proto;
    const struct resp_arg *user = NULL, *name = NULL;

    if (c->argc > 1 && !cmd_number(c, &c->argv[1], INT64_MIN, INT64_MAX, &proto,
                                   "ERR Protocol version is not an integer or out of range"))
        return;
    if (proto < 2 || proto > 3) {
        cmd_reply_error(c, "NOPROTO unsupported protocol version");
        return;
    }
    for (int i = 2; i < c->argc; i++) {
        if (cmd_word_is(&c->argv[i], "AUTH") && c->argc - i > 2) {
            user = &c->argv[i + 1];
            i += 2;
        } else if (cmd_word_is(&c->argv[i], "SETNAME") && c->argc - i > 1) {
            name = &c->argv[++i];
        } else {
            cmd_reply_error(c, "ERR Syntax error in HELLO option '%.*s'", CMD_ARG(&c->argv[i]));
            return;
        }
    }
    if (user != NULL && authenticate(c, user, user + 1) != ACCEPTED)
        return;
    if (users_active() && c->session->user == NULL) {
        stats.auth_failures_missing++;
        cmd_reply_error(
            c, "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
               "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
               "select the RESP protocol version at the same time");
        return;
    }
    if (name != NULL && cmd_client_set_name(c, name) != 0)
        return;
    c->session->proto = (uint8_t)proto;
    cmd_multi_end(c->session); /* somebody begins anew */
    reply_hello(c);
}
