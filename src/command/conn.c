/*
 * What a connection says about itself. The texts are Redis's: clients compare them.
 *
 * While no users are configured there is one, "default", who needs no password. A connection that
 * has said RESET is again who it was by the way it came.
 */
#include "command/conn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/client.h"
#include "command/monitor.h"
#include "session/login.h"
#include "session/pubsub.h"
#include "session/user.h"
#include "stats/stats.h"

void cmd_conn_ping(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)now_ms;
    if (argc > 2) {
        cmd_reply_error(s, "ERR wrong number of arguments for 'ping' command");
        return;
    }
    struct resp_writer w = session_reply(s);
    if (s->n_subscriptions > 0 && s->proto == 2) {
        resp_array(&w, 2);
        resp_str(&w, "pong");
        resp_bulk(&w, argc > 1 ? argv[1].ptr : "", argc > 1 ? argv[1].len : 0);
    } else if (argc > 1) {
        resp_bulk(&w, argv[1].ptr, argv[1].len);
    } else {
        resp_simple(&w, "PONG");
    }
    session_reply_end(s);
}

void cmd_conn_echo(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    struct resp_writer w = session_reply(s);

    resp_bulk(&w, argv[1].ptr, argv[1].len);
    session_reply_end(s);
}

void cmd_conn_quit(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_ok(s);
    s->closing = true;
}

void cmd_conn_reset(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv;
    pubsub_leave(s);
    monitor_leave(s);
    cmd_hooks()->reset_client(cmd_hooks()->server, s, now_ms);
    free(s->name);
    s->name = NULL;
    session_set_user(s, s->own_user);
    s->no_evict = s->no_touch = s->tell = s->multi = false;
    s->proto = 2;

    struct resp_writer w = session_reply(s);
    resp_simple(&w, "RESET");
    session_reply_end(s);
}

void cmd_conn_select(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int64_t index;

    (void)argc, (void)now_ms;
    if (util_parse_int(argv[1].ptr, argv[1].len, INT32_MIN, INT32_MAX, &index) != 0)
        cmd_reply_error(s, "ERR value is not an integer or out of range");
    else if (index != 0)
        cmd_reply_error(s, "ERR DB index is out of range");
    else
        cmd_reply_ok(s);
}

void cmd_conn_time(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    int64_t wall_ms = clock_wall_ms();
    char text[24];
    struct resp_writer w = session_reply(s);

    resp_array(&w, 2);
    snprintf(text, sizeof(text), "%" PRId64, wall_ms / 1000);
    resp_str(&w, text);
    snprintf(text, sizeof(text), "%" PRId64, wall_ms % 1000 * 1000);
    resp_str(&w, text);
    session_reply_end(s);
}

/* ---- who it is ---- */

enum outcome {
    ACCEPTED,
    REFUSED, /* an error has been answered */
    WAITS    /* the command comes again */
};

static enum outcome refuse_password(struct session *s, const struct resp_arg *name)
{
    if (users_active())
        cmd_refused(s, CMD_REASON_AUTH, "AUTH", 4, name->ptr, name->len);
    stats.auth_failures_password++;
    cmd_reply_error(s, "WRONGPASS invalid username-password pair or user is disabled.");
    return REFUSED;
}

static enum outcome refuse_crowd(struct session *s)
{
    stats.auth_failures_crowded++;
    cmd_reply_error(s, "ERR too many passwords wait to be looked at; try again in some seconds");
    return REFUSED;
}

static enum outcome authenticate(struct session *s, const struct resp_arg *name,
                                 const struct resp_arg *password, int64_t now_ms)
{
    const struct login_try try = {.origin = s->origin,
                                  .name = name->ptr,
                                  .name_len = name->len,
                                  .password = password->ptr,
                                  .password_len = password->len};
    struct user *user;

    if (!users_active()) {
        login_drop(s->login); /* a reload came while it waited */
        s->login = NULL;
        return name->len == 7 && memcmp(name->ptr, "default", 7) == 0 ? ACCEPTED
                                                                      : refuse_password(s, name);
    }
    switch (login_ask(&s->login, s, &try, now_ms, &user)) {
    case LOGIN_RIGHT:
        session_set_user(s, user);
        return ACCEPTED;
    case LOGIN_WRONG:
        return refuse_password(s, name);
    case LOGIN_CROWDED:
        return refuse_crowd(s);
    default:
        cmd_wait_for_login();
        return WAITS;
    }
}

void cmd_conn_auth(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    static const struct resp_arg nobody = {"default", 7};

    if (argc > 3)
        cmd_reply_syntax(s);
    else if (argc == 2 && !users_active())
        cmd_reply_error(
            s, "ERR AUTH <password> called without any password configured for the default user. "
               "Are you sure your configuration is correct?");
    else if (authenticate(s, argc == 2 ? &nobody : &argv[1], &argv[argc - 1], now_ms) == ACCEPTED)
        cmd_reply_ok(s);
}

static void reply_hello(struct session *s)
{
    struct resp_writer w = session_reply(s);

    resp_map(&w, 8);
    resp_pair_str(&w, "server", "redis");
    resp_pair_str(&w, "version", STATS_REDIS_VERSION);
    resp_pair_int(&w, "proto", s->proto);
    resp_pair_int(&w, "id", (int64_t)s->id);
    resp_pair_str(&w, "mode", "standalone");
    resp_pair_str(&w, "role", "master");
    resp_str(&w, "modules");
    resp_array(&w, 0);
    resp_pair_str(&w, "holdfast", stats_version());
    session_reply_end(s);
}

/* Nothing of the session is in flight (CMD_BARRIER): no reply of the old version follows this one.
 */
void cmd_conn_hello(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int64_t proto = s->proto;
    const struct resp_arg *user = NULL, *name = NULL;

    if (argc > 1 && util_parse_int(argv[1].ptr, argv[1].len, INT64_MIN, INT64_MAX, &proto) != 0) {
        cmd_reply_error(s, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (proto < 2 || proto > 3) {
        cmd_reply_error(s, "NOPROTO unsupported protocol version");
        return;
    }
    for (int i = 2; i < argc; i++) {
        if (cmd_word_is(&argv[i], "AUTH") && argc - i > 2) {
            user = &argv[i + 1];
            i += 2;
        } else if (cmd_word_is(&argv[i], "SETNAME") && argc - i > 1) {
            name = &argv[++i];
        } else {
            cmd_reply_error(s, "ERR Syntax error in HELLO option '%.*s'", CMD_ARG(&argv[i]));
            return;
        }
    }
    if (user != NULL && authenticate(s, user, user + 1, now_ms) != ACCEPTED)
        return;
    if (users_active() && s->user == NULL) {
        stats.auth_failures_missing++;
        cmd_reply_error(s, "NOAUTH HELLO must be called with the client already authenticated, "
                           "otherwise the HELLO <proto> AUTH <user> <pass> option can be used to "
                           "authenticate the client and select the RESP protocol version at the "
                           "same time");
        return;
    }
    if (name != NULL && cmd_client_set_name(s, name) != 0)
        return;
    s->proto = (uint8_t)proto;
    s->multi = false; /* somebody begins anew */
    reply_hello(s);
}
