/*
 * Brokers, their turns, and applications. The commands are those of command/lock.c; what it needs
 * of command/command.c is at the end of this file.
 *
 * Invariant: a broker that is paused runs nothing: what comes for it waits in its masters' inboxes
 * and in the asks of the applications.
 */
#include "world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/util.h"
#include "command/command.h"
#include "command/handlers.h"
#include "history.h"
#include "lock/replant.h"
#include "lock/view.h"
#include "session/pubsub.h"
#include "stats/stats.h"
#include "wheel_check.h"

enum { TURN_DELAY_US = 150, PAUSE_LIMIT_MS = 200, ASKS_A_SECOND = 5000 };
static const int64_t wall_epoch_ms = INT64_C(1700000000000);

struct world world;
static struct world_broker *running; /* whose turn it is: for cmd_hooks() */

static void turn(void *arg);

static void wake(void *arg)
{
    struct world_broker *wb = arg;
    if (wb->alive && !wb->paused && !wb->turn)
        wb->turn = sim_at(sim_now_us() + sim_random(TURN_DELAY_US), turn, wb);
}

void world_wake(int broker)
{
    wake(&world.brokers[broker]);
}

/* ---- what comes out of a session ---- */

static const char *line_end(const char *p)
{
    return strstr(p, "\r\n") + 2;
}

/* One RESP value as words; returns what is behind it. */
static const char *words(const char *p, char *out, size_t size)
{
    int len = (int)(line_end(p) - p - 3);
    size_t used = strlen(out);
    if (*p == '*' || *p == '>' || *p == '%' || *p == '~') {
        int n = atoi(p + 1) * (*p == '%' ? 2 : 1);
        bool brackets = *p != '>';
        snprintf(out + used, size - used, "%s", brackets ? "[" : "");
        p = line_end(p);
        for (int i = 0; i < n; i++) {
            used = strlen(out);
            snprintf(out + used, size - used, "%s", i ? " " : "");
            p = words(p, out, size);
        }
        used = strlen(out);
        snprintf(out + used, size - used, "%s", brackets ? "]" : "");
        return p;
    }
    if (*p == '$') {
        int n = atoi(p + 1);
        p = line_end(p);
        snprintf(out + used, size - used, "%.*s", n, p);
        return p + n + 2;
    }
    if (*p == '_')
        snprintf(out + used, size - used, "nil");
    else if (*p == '-')
        snprintf(out + used, size - used, "-%.*s", len, p + 1);
    else
        snprintf(out + used, size - used, "%.*s", len, p + 1);
    return line_end(p);
}

static void keep_text(char (*list)[WORLD_TEXT], int *n, const char *text)
{
    if (*n == WORLD_ASKS) {
        memmove(list, list + 1, (WORLD_ASKS - 1) * sizeof *list);
        (*n)--;
    }
    snprintf(list[(*n)++], WORLD_TEXT, "%s", text);
}

/* Takes one out of those that are open. */
static struct world_ask take_out(struct world_ask *asks, int *n, int i)
{
    struct world_ask ask = asks[i];
    memmove(asks + i, asks + i + 1, (size_t)(*n - i - 1) * sizeof *asks);
    (*n)--;
    return ask;
}

static int find_tag(const struct world_app *app, const char *tag)
{
    int i = 0;
    while (i < app->n_asyncs && strcmp(app->asyncs[i].tag, tag) != 0)
        i++;
    return i;
}

/* Its end is told before CANCEL answers, whatever that is. */
static void check_cancel(const struct world_app *app, const char *tag, const char *reply)
{
    if (find_tag(app, tag) < app->n_asyncs)
        history_fail("CANCEL %s says %s before the end of that is told", tag, reply);
    bool is_told = false;
    for (int i = 0; i < app->n_cancelled; i++)
        is_told |= strcmp(app->cancelled[i], tag) == 0;
    if (strcmp(reply, "1") == 0 && !is_told)
        history_fail("CANCEL %s says 1, and that was not told to be cancelled", tag);
}

/* Tells the judge of the end of a LOCK with a tag as if it were a reply: "async <tag> granted
 * <tokens> <validity> <waited>", ... */
static void take_end(struct world_app *app, const char *push)
{
    char tag[16], what[16], reply[WORLD_TEXT] = "nil";
    int rest = 0;
    if (sscanf(push, "async %15s %15s%n", tag, what, &rest) < 2 ||
        find_tag(app, tag) == app->n_asyncs)
        history_fail("the end of a request that is none, or comes before QUEUED: %s", push);
    const char *text = push + rest + 1;
    if (strcmp(what, "granted") == 0) {
        snprintf(reply, sizeof reply, "[%.*s]", (int)(strrchr(text, ' ') - text), text);
    } else if (strcmp(what, "error") == 0) {
        snprintf(reply, sizeof reply, "-%s", text);
    } else if (strcmp(what, "cancelled") == 0) {
        snprintf(reply, sizeof reply, "-CANCELLED");
        keep_text(app->cancelled, &app->n_cancelled, tag);
    } else if (strcmp(what, "timeout") != 0) {
        history_fail("an end that is none: %s", push);
    }
    struct world_ask ask = take_out(app->asyncs, &app->n_asyncs, find_tag(app, tag));
    history_answered(app, &ask, reply);
}

static void take_reply(struct world_app *app, const char *text)
{
    if (app->n_run == 0)
        history_fail("application %d was answered but had not asked: %s", app->index, text);
    struct world_ask ask = take_out(app->asks, &app->n_asks, 0);
    app->n_run--;
    log_trace(app->owner, "app=%d %s -> %s", app->index, ask.text, text);
    if (ask.verb == WORLD_CANCEL)
        check_cancel(app, ask.name, text);
    if (ask.tag[0] && strcmp(text, "QUEUED") == 0)
        app->asyncs[app->n_asyncs++] = ask;
    else
        history_answered(app, &ask, text);
    keep_text(app->replies, &app->n_replies, text);
    if (world.conf.on_reply)
        world.conf.on_reply(app, &ask, text);
}

static void take_push(struct world_app *app, const char *text)
{
    log_trace(app->owner, "app=%d push %s", app->index, text);
    if (strncmp(text, "message ", 8) == 0) {
        if (world.conf.on_message)
            world.conf.on_message(app, text);
        return;
    }
    if (strncmp(text, "async ", 6) == 0)
        take_end(app, text);
    else
        history_pushed(app, text);
    if (app->wants_renewed || strncmp(text, "renewed ", 8) != 0)
        keep_text(app->pushes, &app->n_pushes, text);
}

static void read_out(struct world_app *app)
{
    char text[4096];
    if (!app->connected)
        return;
    session_flush(&app->session, world_local_ms(app->broker));
    buf_append(&app->out, "", 1);
    const char *p = buf_head(&app->out), *end = p + buf_len(&app->out) - 1;
    while (p < end) {
        bool is_push = *p == '>';
        text[0] = '\0';
        p = words(p, text, sizeof text);
        if (is_push)
            take_push(app, text);
        else
            take_reply(app, text);
    }
    buf_consume(&app->out, buf_len(&app->out));
}

/* ---- what goes in ---- */

/* Scripts by name. */
static struct {
    const char *name, *body;
} scripts[8];
static int n_scripts;

void world_script(const char *name, const char *body)
{
    assert(n_scripts < (int)(sizeof scripts / sizeof scripts[0]));
    scripts[n_scripts].name = name;
    scripts[n_scripts++].body = body;
}

static void write_plain(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    (void)now_ms;
    dropin_call_write(dropin_call_of(r), w);
}

static void abandon_plain(struct request *r, int64_t now_ms)
{
    (void)now_ms;
    dropin_call_abandon(dropin_call_of(r));
}

static void free_plain(struct request *r)
{
    dropin_call_free(dropin_call_of(r));
}

static const struct request_type plain_type = {
    .write = write_plain, .abandon = abandon_plain, .free = free_plain};

static struct dropin_call *make_eval(struct dropin *d, const struct resp_arg *argv, int argc)
{
    int i = 0, n_keys = atoi(argv[2].ptr);
    while (strcmp(scripts[i].name, argv[1].ptr) != 0)
        assert(++i < n_scripts);
    const struct resp_arg body = {scripts[i].body, strlen(scripts[i].body)};
    const struct dropin_script script = {argv + 3, argv + 3 + n_keys, n_keys, argc - 3 - n_keys, 0};
    return dropin_call_eval(d, 0, &body, &script);
}

static struct dropin_call *make_plain(struct dropin *d, const struct resp_arg *argv, int argc)
{
    bool has_many = strcmp(argv[0].ptr, "DEL") == 0 || strcmp(argv[0].ptr, "EXISTS") == 0;
    const struct dropin_command command = {argv, argc, 1, has_many ? argc - 1 : 1, 1};
    return dropin_call_command(d, 0, &command);
}

static void run_plain(struct world_app *app, const struct resp_arg *argv, int argc, int64_t now_ms)
{
    struct dropin *d = app->broker->dropin;
    bool is_eval = strcmp(argv[0].ptr, "EVAL") == 0;
    struct dropin_call *c = is_eval ? make_eval(d, argv, argc) : make_plain(d, argv, argc);
    dropin_request(c)->type = &plain_type;
    session_ask(&app->session, dropin_request(c));
    dropin_submit(c, now_ms);
}

static int split(char *text, struct resp_arg *argv, int max)
{
    int n = 0;
    for (char *word = strtok(text, " "); word && n < max; word = strtok(NULL, " "))
        argv[n++] = (struct resp_arg){word, strlen(word)};
    return n;
}

static const struct {
    const char *word;
    enum world_verb verb;
    struct cmd row;
} verbs[] = {
    {"LOCK", WORLD_LOCK, {.verb = VERB_LOCK}},
    {"UNLOCK", WORLD_UNLOCK, {.verb = VERB_UNLOCK}},
    {"RENEW", WORLD_RENEW, {.verb = VERB_RENEW}},
    {"HOLDS", WORLD_HOLDS, {.verb = VERB_HOLDS}},
    {"FORCEUNLOCK", WORLD_FORCE, {.verb = VERB_FORCE}},
    {"LOCKINFO", WORLD_INFO, {.verb = VERB_INFO}},
    {"MLOCK", WORLD_MLOCK, {.verb = VERB_MLOCK}},
    {"MUNLOCK", WORLD_MUNLOCK, {.verb = VERB_MUNLOCK}},
    {"CANCEL", WORLD_CANCEL, {.fn = cmd_async_cancel}},
};

static void run_ask(struct world_app *app, const struct world_ask *ask, int64_t now_ms)
{
    char text[WORLD_TEXT];
    struct resp_arg argv[16];
    strcpy(text, ask->text);
    int argc = split(text, argv, 16);
    struct cmd_call call = {.session = &app->session, .argc = argc, .argv = argv, .now_ms = now_ms};
    if (ask->verb == WORLD_PLAIN)
        run_plain(app, argv, argc, now_ms);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (verbs[i].verb == ask->verb) {
            call.cmd = &verbs[i].row;
            if (call.cmd->fn)
                call.cmd->fn(&call);
            else
                cmd_lock_request(&call);
        }
    }
    if (call.asked) {
        call.asked->arrived_us = now_ms * 1000;
        session_queued(&app->session, call.asked);
    }
    if (call.replied)
        session_reply_end(&app->session);
}

static void run_asks(struct world_app *app, int64_t now_ms)
{
    while (app->connected && app->n_run < app->n_asks && !session_holds_back(&app->session)) {
        app->n_run++;
        run_ask(app, &app->asks[app->n_run - 1], now_ms);
    }
}

void world_say(int index, const char *fmt, ...)
{
    struct world_app *app = &world.apps[index];
    struct world_ask *ask = &app->asks[app->n_asks++];
    char text[WORLD_TEXT];
    struct resp_arg argv[16];
    va_list args;
    assert(app->connected && app->n_asks + app->n_asyncs <= WORLD_ASKS);
    *ask = (struct world_ask){.said_us = sim_now_us()};
    va_start(args, fmt);
    vsnprintf(ask->text, sizeof ask->text, fmt, args);
    va_end(args);
    strcpy(text, ask->text);
    int argc = split(text, argv, 16);
    ask->verb = WORLD_PLAIN;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].word, argv[0].ptr) == 0)
            ask->verb = verbs[i].verb;
    }
    bool is_many = ask->verb == WORLD_MLOCK || ask->verb == WORLD_MUNLOCK;
    ask->n_names = is_many ? atoi(argv[1].ptr) : 1;
    assert(ask->n_names <= WORLD_NAMES);
    for (int i = 0; i < ask->n_names && ask->verb != WORLD_PLAIN; i++)
        snprintf(ask->names[i], sizeof ask->names[i], "%s", argv[1 + is_many + i].ptr);
    strcpy(ask->name, ask->names[0]);
    strcpy(ask->owner, app->owner);
    for (int i = 2; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i].ptr, "LEASE") == 0)
            ask->lease_ms = atoll(argv[i + 1].ptr);
        else if (has_value && strcmp(argv[i].ptr, "MAXHOLD") == 0)
            ask->maxhold_ms = atoll(argv[i + 1].ptr);
        else if (has_value && strcmp(argv[i].ptr, "OWNER") == 0)
            snprintf(ask->owner, sizeof ask->owner, "%s", argv[i + 1].ptr);
        else if (has_value && strcmp(argv[i].ptr, "ASYNC") == 0)
            snprintf(ask->tag, sizeof ask->tag, "%s", argv[i + 1].ptr);
        else if (strcmp(argv[i].ptr, "WAIT") == 0)
            ask->waits = true;
        else if (strcmp(argv[i].ptr, "TELL") == 0)
            app->wants_renewed = true;
    }
    log_trace(app->owner, "app=%d says %s", index, ask->text);
    history_said(app, ask);
    wake(app->broker);
}

const char *world_kind(const char *name, const char *owner, int *limit)
{
    static char option[16];
    uint32_t how = util_fixed_hash(name, strlen(name)) ^ (uint32_t)(world.conf.seed * 2654435761u);
    *limit = 0;
    if (!world.conf.kinds || how % 3 == 0)
        return NULL;
    if (how % 3 == 1) /* readers, and some who want it alone */
        return util_fixed_hash(owner, strlen(owner)) % 3 ? "SHARED" : NULL;
    *limit = 1 + (int)(how / 3 % 3);
    snprintf(option, sizeof option, "LIMIT %d", *limit);
    return option;
}

const char *world_reply(int index)
{
    static char text[WORLD_TEXT];
    struct world_app *app = &world.apps[index];
    if (app->n_replies == 0)
        return "";
    strcpy(text, app->replies[0]);
    memmove(app->replies, app->replies + 1, (size_t)--app->n_replies * sizeof app->replies[0]);
    return text;
}

const char *world_push(int index)
{
    static char text[WORLD_TEXT];
    struct world_app *app = &world.apps[index];
    if (app->n_pushes == 0)
        return "";
    strcpy(text, app->pushes[0]);
    memmove(app->pushes, app->pushes + 1, (size_t)--app->n_pushes * sizeof app->pushes[0]);
    return text;
}

/* ---- connections ---- */

static void on_session(struct session *s)
{
    (void)s; /* the turn flushes everybody, and runs what is not blocked any more */
}

static void on_close(struct session *s, const char *reason)
{
    (void)reason;
    for (int i = 0; i < WORLD_APPS; i++) {
        if (&world.apps[i].session == s)
            world.apps[i].wants_close = true;
    }
}

static const struct session_events session_events = {
    .on_ready = on_session, .on_unblocked = on_session, .on_close = on_close};

void world_connect(int index, int broker, const char *owner)
{
    struct world_app *app = &world.apps[index];
    struct world_broker *wb = &world.brokers[broker];
    assert(!app->connected && wb->alive);
    app->index = index;
    app->broker = wb;
    app->connected = true;
    app->wants_close = app->wants_renewed = false;
    app->n_asks = app->n_run = app->n_asyncs = 0;
    app->n_cancelled = app->n_replies = app->n_pushes = 0;
    snprintf(app->owner, sizeof app->owner, "%s", owner);
    session_init(&app->session, ++world.n_sessions, &session_events, &app->out, world_local_ms(wb));
    app->session.proto = 3;
    app->session.tell = app->session.owner_named = true;
    app->session.owner = owner_get(owner, strlen(owner));
    owner_used(app->session.owner, app->session.id);
}

static void end_session(struct world_app *app, bool orderly)
{
    struct world_broker *wb = app->broker;
    int64_t now_ms = world_local_ms(wb);
    history_closing(app, orderly);
    pubsub_leave(&app->session);
    if (sim_chance(300)) /* as if it had more than fit into a turn */
        wb->b.leaves_left = 0;
    broker_session_end(&wb->b, &app->session, orderly, now_ms);
    owner_unref(app->session.owner);
    app->session.owner = NULL;
    session_fini(&app->session, now_ms);
    buf_fini(&app->out);
    app->out = (struct buf){0};
    app->connected = false;
    app->n_asks = app->n_run = app->n_asyncs = 0;
}

void world_subscribe(int index, const char *channel)
{
    (void)pubsub_subscribe(&world.apps[index].session, channel, strlen(channel), false);
}

/* The broker sees it in a turn of its own: with a paused one it waits until then. */
void world_close(int index, bool orderly)
{
    struct world_app *app = &world.apps[index];
    log_trace(app->owner, "app=%d closes orderly=%d", index, orderly);
    end_session(app, orderly);
    wake(app->broker);
}

/* ---- the turn of a broker ---- */

static int64_t next_ms(struct world_broker *wb)
{
    int64_t next = broker_next_ms(&wb->b), looks = quarantine_next_ms(&wb->quarantine);
    return next < looks ? next : looks;
}

static void on_timer(void *arg)
{
    struct world_broker *wb = arg;
    wb->timer = NULL;
    wake(wb);
}

static void set_timer(struct world_broker *wb, bool more)
{
    int64_t due_ms = more ? world_local_ms(wb) : next_ms(wb);
    sim_cancel(wb->timer);
    wb->timer = NULL;
    wb->expected_ms = due_ms;
    if (due_ms < INT64_MAX)
        wb->timer = sim_at(due_ms * 1000 - wb->local_us, on_timer, wb);
}

/* As subscriber.c: a proof at each turn, and a second without one is the end. */
static void listen(struct world_broker *wb, int i, int64_t now_ms)
{
    enum { DEAF_MS = 1000 };
    int64_t since_ms = fake_master_hears_since_ms(wb->masters[i]);
    if (since_ms != INT64_MAX)
        wb->heard_ms[i] = now_ms;
    if (since_ms != INT64_MAX || now_ms - wb->heard_ms[i] > DEAF_MS)
        broker_listens(&wb->b, i, since_ms, now_ms, now_ms);
}

static void look_at_quarantine(struct world_broker *wb, int64_t now_ms)
{
    for (int i = 0; i < wb->n_masters; i++) {
        if (master_status(wb->masters[i], now_ms)->state == MASTER_QUARANTINE)
            quarantine_set_done(&wb->quarantine, i, replant_is_done(&wb->b, i, now_ms));
    }
    bool has_drop_in = wb->b.n_drop_in > 0;
    rollcall_set_unsure(&wb->quarantine.roll, has_drop_in ? now_ms + wb->quarantine.roll.memory_ms
                                                          : wb->b.exchanges_until_ms);
    quarantine_turn(&wb->quarantine, now_ms);
}

/* Whoever is refused waits before he asks again: a broker that asks for the same thing without a
 * pause is found here, however soon the answers come. */
static void check_pace(struct world_broker *wb, int64_t now_ms)
{
    int64_t n_asks = wb->b.rounds.n_asks;
    if (now_ms - wb->pace_ms >= 1000) {
        wb->pace_ms = now_ms;
        wb->pace_asks = n_asks;
    } else if (n_asks - wb->pace_asks > ASKS_A_SECOND) {
        history_fail("a broker asks without a pause");
    }
}

static void turn(void *arg)
{
    struct world_broker *wb = arg;
    int64_t now_ms = world_local_ms(wb);
    wb->turn = NULL;
    running = wb;
    for (int i = 0; i < wb->n_masters; i++)
        fake_master_pump(wb->masters[i], now_ms);
    for (int i = 0; i < wb->n_masters; i++)
        listen(wb, i, now_ms);
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected && world.apps[i].broker == wb)
            run_asks(&world.apps[i], now_ms);
    }
    if (now_ms - wb->expected_ms > PAUSE_LIMIT_MS)
        broker_check_promises(&wb->b, now_ms);
    look_at_quarantine(wb, now_ms);
    rounds_set_wall(&wb->b.rounds, wall_epoch_ms + sim_now_us() / 1000 + wb->wall_skew_ms, now_ms);
    broker_turn(&wb->b, now_ms);
    pubsub_turn(now_ms);
    int64_t asked = wb->b.rounds.n_asks;
    for (int i = 0; i < WORLD_APPS; i++) {
        struct world_app *app = &world.apps[i];
        if (!app->connected || app->broker != wb)
            continue;
        read_out(app);
        if (app->wants_close)
            end_session(app, true);
        else
            run_asks(app, now_ms);
    }
    running = NULL;
    history_turned(wb);
    check_pace(wb, now_ms);
    /* it walks over all of the wheel: too dear for each turn */
    if (world.turns++ % 64 == 0 &&
        (wheel_check(&wb->b.due.first) != 0 || wheel_check(&wb->b.due.usual) != 0))
        history_fail("the wheel is broken");
    set_timer(wb, asked != wb->b.rounds.n_asks);
}

/* ---- brokers ---- */

static void on_state(void *arg, struct master *m, enum master_state old)
{
    struct world_broker *wb = arg;
    enum master_state state = master_status(m, 0)->state;
    bool was_in = old == MASTER_ACTIVE || old == MASTER_QUARANTINE;
    if (was_in && state != MASTER_ACTIVE && state != MASTER_QUARANTINE) {
        wb->again[master_index(m)] = old == MASTER_QUARANTINE;
        wb->back_us[master_index(m)] = INT64_MAX;
    }
    if (state == MASTER_QUARANTINE)
        wb->back_us[master_index(m)] = sim_now_us();
    if (state == MASTER_ACTIVE || state == MASTER_QUARANTINE)
        rounds_master_back(&wb->b.rounds, master_index(m), world_local_ms(wb));
    replant_on_state(&wb->b, master_index(m), world_local_ms(wb));
    quarantine_on_state(&wb->quarantine);
    if (state == MASTER_ACTIVE && rounds_has_quorum(&wb->b.rounds, world_local_ms(wb)))
        broker_masters_back(&wb->b, world_local_ms(wb));
}

static void on_call(void *arg, int i, const char *text, size_t len)
{
    struct world_broker *wb = arg;
    broker_called(&wb->b, i, text, len, world_local_ms(wb));
    dropin_called(wb->dropin, text, len);
}

/* The settings that all brokers say to the masters: the same for all of them. */
static const char *shared_settings(const struct world_conf *conf)
{
    static char text[96];
    int n = snprintf(text, sizeof text, "sim drift=%" PRId64 " claim_timeout=%" PRId64,
                     conf->broker.drift_ppm, conf->broker.claim_timeout_ms);
    if (conf->sentinels)
        snprintf(text + n, sizeof text - (size_t)n, " sentinel_timeout=%" PRId64,
                 conf->sentinels->timeout_ms);
    return text;
}

static void add_masters(struct world_broker *wb)
{
    const struct world_conf *conf = &world.conf;
    const struct world_view *view = &conf->views[wb->index];
    struct master_setup setup = {
        .request_timeout_ms = conf->broker.request_timeout_ms,
        .quarantine_ms = conf->quarantine_ms,
        .max_lease_ms = conf->broker.max_lease_ms,
        .drift_ppm = conf->broker.drift_ppm,
        .broker = wb->b.id,
        .settings = view->settings ? view->settings : shared_settings(conf),
        .broker_name = wb->name,
        .brokers = conf->brokers,
        .on_state = on_state,
        .arg = wb,
    };
    struct fake_link link = {.local_us = wb->local_us,
                             .channel = wb->channel,
                             .wake = wake,
                             .on_call = on_call,
                             .arg = wb};
    for (int i = 0; i < conf->n_servers; i++) {
        struct fake_server *server = &world.servers[i];
        if (view->servers && !strstr(view->servers, server->name))
            continue;
        int n = wb->n_masters++;
        char slot[2] = {view->slots ? view->slots[n] : '\0'};
        link.slot = view->slots ? slot : NULL;
        link.sentinels = i == 0 ? conf->sentinels : NULL;
        setup.partition = conf->partitions ? i : 0;
        wb->masters[n] = fake_master_new(&setup, server, n, &link);
        rounds_add_master(&wb->b.rounds, wb->masters[n], master_name(wb->masters[n]));
        master_start(wb->masters[n]);
    }
}

void world_broker_start(int index)
{
    struct world_broker *wb = &world.brokers[index];
    const struct world_conf *conf = &world.conf;
    char id[16];
    assert(!wb->alive);
    memset(wb, 0, sizeof *wb);
    wb->index = index;
    wb->alive = true;
    wb->local_us = sim_random(1000000) * 1000;
    wb->wall_skew_ms = sim_between(-conf->wall_skew_ms / 2, conf->wall_skew_ms / 2);
    wb->n_made = world.n_brokers_made++;
    snprintf(id, sizeof id, "b%d", wb->n_made);
    snprintf(wb->name, sizeof wb->name, "b%d", index);
    if (conf->names[index])
        snprintf(wb->name, sizeof wb->name, "%s", conf->names[index]);
    int64_t now_ms = world_local_ms(wb);
    broker_init(&wb->b, &conf->broker, id, (uint64_t)sim_random(INT64_MAX), now_ms);
    rounds_set_wall(&wb->b.rounds, wall_epoch_ms + sim_now_us() / 1000 + wb->wall_skew_ms, now_ms);
    broker_channel(&wb->b, wb->channel, sizeof wb->channel);
    add_masters(wb);
    quarantine_init(&wb->quarantine, &wb->b.rounds);
    if (conf->brokers)
        rollcall_begin(&wb->quarantine.roll, conf->broker.max_lease_ms, conf->broker.drift_ppm);
    wb->dropin = dropin_new(&wb->b, &(struct dropin_conf){.max_hold_ms = 86400000});
    wb->expected_ms = now_ms;
    wake(wb);
}

void world_broker_kill(int index)
{
    struct world_broker *wb = &world.brokers[index];
    log_trace("world", "broker %d is killed", index);
    history_killing(wb);
    /* Nothing leaves any more: what a dying process would still do is undone by closing first. */
    rounds_close(&wb->b.rounds);
    for (int i = 0; i < wb->n_masters; i++)
        master_free(wb->masters[i]);
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected && world.apps[i].broker == wb)
            end_session(&world.apps[i], false);
    }
    dropin_close(wb->dropin, world_local_ms(wb));
    broker_fini(&wb->b, world_local_ms(wb));
    dropin_free(wb->dropin);
    sim_cancel(wb->turn);
    sim_cancel(wb->timer);
    wb->alive = false;
}

/* The broker that leaves, unless it has been killed meanwhile. */
static struct world_broker *find_leaving(const void *arg)
{
    for (int i = 0; i < WORLD_BROKERS; i++) {
        struct world_broker *wb = &world.brokers[i];
        if (wb->alive && wb->leaves && !wb->paused && wb->n_made == (intptr_t)arg)
            return wb;
    }
    return NULL;
}

static void end_leaving(void *arg)
{
    struct world_broker *wb = find_leaving(arg);
    if (wb)
        world_broker_kill(wb->index);
}

static void say_leaving(void *arg)
{
    struct world_broker *wb = find_leaving(arg);
    if (wb && !view_is_asking(&wb->b))
        rollcall_leave(&wb->quarantine.roll, wb->b.n_holds + wb->b.n_drop_in > 0,
                       world_local_ms(wb));
}

void world_broker_leave(int index)
{
    struct world_broker *wb = &world.brokers[index];
    int64_t step_us = world.conf.broker.request_timeout_ms * 1000;
    log_trace("world", "broker %d leaves", index);
    wb->leaves = true;
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected && world.apps[i].broker == wb)
            world_close(i, true);
    }
    sim_at(sim_now_us() + step_us, say_leaving, (void *)(intptr_t)wb->n_made);
    sim_at(sim_now_us() + 2 * step_us, end_leaving, (void *)(intptr_t)wb->n_made);
}

void world_broker_pause(int index, bool paused)
{
    struct world_broker *wb = &world.brokers[index];
    log_trace("world", "broker %d paused=%d", index, paused);
    wb->paused = paused;
    if (paused) {
        sim_cancel(wb->turn);
        sim_cancel(wb->timer);
        wb->turn = wb->timer = NULL;
    } else {
        wake(wb);
    }
}

/* ---- the world ---- */

void world_defaults(struct world_conf *conf, uint64_t seed)
{
    *conf = (struct world_conf){
        .seed = seed,
        .n_servers = 3,
        .n_brokers = 1,
        .quarantine_ms = -1,
        .broker =
            {
                .lease_ms = 3000,
                .max_lease_ms = 6000,
                .min_validity_ms = 100,
                .drift_ppm = 5000,
                .request_timeout_ms = 200,
                .claim_timeout_ms = 500,
                .handover_max_count = 16,
                .handover_max_time_ms = 100,
                .max_locks_per_client = 100,
                .max_waiters_per_lock = 100,
                .max_waiters = 1000,
            },
    };
}

void world_begin(const struct world_conf *conf)
{
    log_set_level(getenv("SIM_TRACE") ? LOG_LEVEL_TRACE : LOG_LEVEL_ERROR);
    sim_begin(conf->seed);
    memset(&world, 0, sizeof world);
    n_scripts = 0;
    world.conf = *conf;
    assert(conf->partitions == 0 || conf->partitions == conf->n_servers);
    partitions_use(conf->partitions);
    for (int i = 0; i < conf->n_servers; i++) {
        char name[8] = {(char)('a' + i)};
        fake_server_init(&world.servers[i], name);
    }
    history_begin();
    for (int i = 0; i < conf->n_brokers; i++)
        world_broker_start(i);
}

void world_end(void)
{
    for (int i = 0; i < WORLD_APPS; i++) {
        if (world.apps[i].connected)
            world_close(i, true);
    }
    for (int i = 0; i < world.conf.n_brokers; i++) {
        if (world.brokers[i].alive)
            world_broker_kill(i);
    }
    for (int i = 0; i < world.conf.n_servers; i++) {
        if (world.servers[i].up)
            fake_server_kill(&world.servers[i]);
    }
    while (sim_step())
        ; /* what is on its way arrives nowhere */
    for (int i = 0; i < world.conf.n_servers; i++)
        fake_server_fini(&world.servers[i]);
    sim_end();
}

void world_run_ms(int64_t ms)
{
    sim_run_until(sim_now_us() + ms * 1000);
}

static bool is_settled(void)
{
    for (int i = 0; i < world.conf.n_brokers; i++) {
        const struct world_broker *wb = &world.brokers[i];
        for (int j = 0; wb->alive && j < wb->n_masters; j++) {
            if (master_status(wb->masters[j], 0)->state != MASTER_ACTIVE)
                return false;
        }
    }
    return true;
}

void world_settle(void)
{
    for (int i = 0; i < 3000 && !is_settled(); i++)
        world_run_ms(100);
    if (!is_settled())
        history_fail("the masters do not become active");
}

int64_t world_asks(int broker)
{
    return world.brokers[broker].b.rounds.n_asks;
}

const struct fake_lock *world_lock_at(int server, const char *name)
{
    const struct args *it = args_begin(name, strlen(name));
    const char *head = buf_head(&it->key), *end = memchr(head, '\n', buf_len(&it->key));
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)(buf_len(&it->key) - (size_t)(end + 1 - head) - 2),
             end + 1);
    return fake_server_find(&world.servers[server], key, "-");
}

int world_server_of(const char *name)
{
    return partition_of(name, strlen(name));
}

int world_copies(const char *name)
{
    int n = 0;
    for (int i = 0; i < world.conf.n_servers; i++)
        n += world_lock_at(i, name) != NULL;
    return n;
}

/* ---- what command/lock.c needs of command/command.c ---- */

const struct cmd_hooks *cmd_hooks(void)
{
    static struct cmd_hooks hooks;
    static struct conf conf = {.max_async_per_client = WORLD_ASKS};
    conf.lock = world.conf.broker;
    hooks.conf = &conf;
    hooks.broker = &running->b;
    return &hooks;
}

bool cmd_word_equals(const struct resp_arg *arg, const char *upper)
{
    return arg->len == strlen(upper) && strncasecmp(arg->ptr, upper, arg->len) == 0;
}

struct resp_writer *cmd_reply(struct cmd_call *c)
{
    c->w = session_reply(c->session);
    c->replied = true;
    return &c->w;
}

void cmd_reply_error(struct cmd_call *c, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    resp_error(cmd_reply(c), "%s", text);
}

void cmd_write_error(struct request *r, struct resp_writer *w, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    (void)r;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    resp_error(w, "%s", text);
}

void cmd_reply_int(struct cmd_call *c, int64_t value)
{
    resp_int(cmd_reply(c), value);
}

void cmd_refused(struct session *s, enum cmd_reason reason, const char *object, size_t object_len,
                 const char *user, size_t user_len)
{
    (void)s, (void)reason, (void)object, (void)object_len, (void)user, (void)user_len;
    abort(); /* there are no users here */
}

void cmd_reply_ok(struct cmd_call *c)
{
    resp_simple(cmd_reply(c), "OK");
}
