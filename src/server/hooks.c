/*
 * What commands and clients ask of the server: the hooks of command, and the life of a session.
 *
 * Decides nothing but what becomes of the holds of a connection that ends: it passes on whether the
 * end was orderly.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "command/command.h"
#include "lock/view.h"
#include "server/private.h"
#include "stats/gauges.h"
#include "stats/stats.h"

enum { OWNER_RANDOM = 26 }; /* characters of 5 bits: more than anybody can guess */

/* ---- sessions ---- */

static struct owner *make_owner(const struct server *s)
{
    char text[BROKER_ID_LEN + 1 + OWNER_RANDOM + 1];
    int len = snprintf(text, sizeof text, "%s/", s->id);

    util_random_id(text + len, OWNER_RANDOM);
    return owner_get(text, strlen(text));
}

static void on_session_start(void *arg, struct session *session, int64_t now_ms)
{
    (void)now_ms;
    session->owner = make_owner(arg);
}

static void end_holds(struct server *s, struct session *session, bool orderly, int64_t now_ms)
{
    broker_session_end(&s->broker, session, orderly, now_ms);
    owner_unref(session->owner);
    session->owner = NULL;
}

static void on_session_end(void *arg, struct session *session, enum client_end end, int64_t now_ms)
{
    end_holds(arg, session, client_end_is_orderly(end), now_ms);
}

const struct client_events server_client_events = {.on_start = on_session_start,
                                                   .on_end = on_session_end};

static void reset_client(struct server *s, struct session *session, int64_t now_ms)
{
    end_holds(s, session, true, now_ms);
    session->owner = make_owner(s);
    session->owner_named = false;
}

/* ---- the hooks of commands ---- */

static void info(struct server *s, struct buf *out, const char *sections)
{
    struct stats_gauges g;

    server_gauges(s, &g, clock_ms());
    stats_info(out, sections, &g);
}

static void pause_acquires(struct server *s, bool paused, int64_t now_ms)
{
    if (view_is_paused(&s->broker) != paused)
        log_info("server", "%s", paused ? "paused: no new locks are given" : "resumed");
    broker_pause(&s->broker, paused, now_ms);
    server_judge_peers(s, now_ms);
    server_update_status(s, now_ms);
}

/* A name is that of a master, or of the whole Cluster. */
static bool is_meant(const struct server *s, const struct master *m, const char *name)
{
    return strcmp(s->cluster ? s->conf.masters[0].name : master_name(m), name) == 0 ||
           strcmp(master_name(m), name) == 0;
}

static const char *trust(struct server *s, const char *name, int64_t now_ms)
{
    struct rounds *b = &s->broker.rounds;
    const char *why = "there is no master of this name";
    bool any = false;

    for (int i = 0; i < b->n_all; i++) {
        if (!is_meant(s, b->masters[i], name))
            continue;
        why = master_admit(b->masters[i])
                  ? NULL
                  : quarantine_trust(&s->quarantine, master_name(b->masters[i]), now_ms);
        any |= !why;
    }
    return any ? NULL : why;
}

static const char *adopt(struct server *s, const char *name)
{
    struct rounds *b = &s->broker.rounds;

    bool any = false;

    for (int i = 0; i < b->n_all; i++) {
        if (!is_meant(s, b->masters[i], name))
            continue;
        master_adopt(b->masters[i]);
        any = true;
    }
    return any ? NULL : "there is none";
}

void server_init_commands(struct server *s)
{
    const struct cmd_hooks hooks = {
        .broker = &s->broker,
        .dropin = s->dropin,
        .conf = &s->conf,
        .server = s,
        .clients = s->clients,
        .peers = &s->peers,
        .info = info,
        .shutdown = server_stop,
        .each_client = client_each,
        .kill_client = client_kill,
        .reset_client = reset_client,
        .peer = client_peer,
        .local = client_local,
        .fd = client_fd,
        .input_len = client_input_len,
        .output_len = client_output_len,
        .pause = client_pause_all,
        .pause_acquires = pause_acquires,
        .trust = trust,
        .adopt = adopt,
        .config_set = server_config_set,
    };

    cmd_init(&hooks);
}
