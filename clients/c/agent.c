/*
 * The agent of libholdfast for the table in clients/scenarios: reads what to do, an object of JSON
 * a line, and writes what happens. Besides what is told there: "free" (the handle of a hold),
 * "free in" an event (there). With the certificate of an authority in the file AGENT_CA it speaks
 * TLS.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <jansson.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast.h"

/* A lock by the name that the driver gave it. */
struct hold {
    struct hold *next;
    char *own_name;
    const char *name; /* the same */
    struct holdfast_lock *lock;
    struct hold *outer; /* of the inner one of "nested" */
    bool is_nested, may_enter, was_let_in;
    enum holdfast_event free_in;
};

struct agent {
    struct event_base *base;
    struct holdfast *holdfast;
    struct hold *holds;
    void *by_name; /* tsearch(3) */
    SSL_CTX *tls;  /* or NULL */
};

static struct agent agent;
static struct hold inner_hold;

/* Writes an object, whose reference is taken. */
static void say(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

static void say_event(const char *event, const struct hold *hold)
{
    say(json_pack("{s:s, s:s}", "event", event, "hold", hold->name));
}

static json_t *tokens_of(const struct holdfast_lock *lock)
{
    json_t *tokens = json_array();
    for (size_t i = 0; holdfast_name(lock, i); i++)
        json_array_append_new(tokens, json_integer(holdfast_token(lock, i)));
    return tokens;
}

/* ---- what happens ---- */

static void on_event(struct holdfast_lock *lock, enum holdfast_event event, void *arg);

/* The lock is held: asks for it once more, as this package does it, or as one would by mistake.
 * What came of it is said when all is given back. */
static void go_inside(struct hold *hold, struct holdfast_lock *lock)
{
    if (hold->may_enter) {
        bool was_in = holdfast_enter(lock) == 2;
        holdfast_release(lock);
        hold->was_let_in = was_in && holdfast_left_ms(lock) > 0;
        holdfast_release(lock);
    } else {
        inner_hold = (struct hold){.outer = hold};
        inner_hold.lock =
            holdfast_lock_name(agent.holdfast, holdfast_name(lock, 0), 0, on_event, &inner_hold);
    }
}

static void on_inner(struct hold *inner, enum holdfast_event event)
{
    inner->outer->was_let_in = event != HOLDFAST_TIMEOUT;
    holdfast_release(inner->outer->lock);
    holdfast_lock_free(inner->lock);
}

static void say_what(struct hold *hold, struct holdfast_lock *lock, enum holdfast_event event)
{
    const char *why = holdfast_why(lock);
    if (event == HOLDFAST_GRANTED)
        say(json_pack("{s:s, s:s, s:o}", "event", "granted", "hold", hold->name, "tokens",
                      tokens_of(lock)));
    else if (event == HOLDFAST_FAILED)
        say(json_pack("{s:s, s:s, s:s}", "event", "error", "hold", hold->name, "text", why));
    else if (event == HOLDFAST_LOST || (event == HOLDFAST_RELEASED && why[0]))
        say(json_pack("{s:s, s:s, s:s}", "event", holdfast_event_name(event), "hold", hold->name,
                      "text", why));
    else if (event != HOLDFAST_TOKEN)
        say_event(holdfast_event_name(event), hold);
}

static void on_event(struct holdfast_lock *lock, enum holdfast_event event, void *arg)
{
    struct hold *hold = arg;
    if (hold->outer) {
        on_inner(hold, event);
        return;
    }
    if (hold->is_nested && event == HOLDFAST_GRANTED) {
        go_inside(hold, lock);
        return;
    }
    if (hold->is_nested) {
        say_event(hold->was_let_in ? "entered" : "refused", hold);
        return;
    }
    say_what(hold, lock, event);
    if (event == hold->free_in) {
        holdfast_lock_free(lock);
        hold->lock = NULL;
    }
}

/* ---- what is to be done ---- */

static int64_t number_of(const json_t *order, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(order, key);
    return value ? json_integer_value(value) : otherwise;
}

static const char *text_of(const json_t *order, const char *key)
{
    const char *text = json_string_value(json_object_get(order, key));
    return text ? text : "";
}

/* As the manual says that TLS is to be had; hosts are addresses here. */
static struct bufferevent *open_tls(struct event_base *base, const char *host, void *tls)
{
    SSL *ssl = SSL_new(tls);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    return bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
                                          BEV_OPT_CLOSE_ON_FREE);
}

static void use_tls(struct holdfast_options *options, const char *authority)
{
    agent.tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_locations(agent.tls, authority, NULL);
    SSL_CTX_set_verify(agent.tls, SSL_VERIFY_PEER, NULL);
    options->open = open_tls;
    options->open_arg = agent.tls;
}

static void do_connect(const json_t *order)
{
    struct holdfast_options options = HOLDFAST_OPTIONS;
    char list[4096] = "";
    size_t i = 0;
    json_t *broker = NULL;
    json_array_foreach(json_object_get(order, "brokers"), i, broker)
    {
        strncat(list, json_string_value(broker), sizeof list - strlen(list) - 2);
        strcat(list, ",");
    }
    options.brokers = list;
    options.silence_ms = number_of(order, "timeout", 0);
    options.name = "agent";
    if (getenv("AGENT_CA"))
        use_tls(&options, getenv("AGENT_CA"));
    agent.holdfast = holdfast_new(agent.base, &options);
    say(json_pack("{s:s}", "event", agent.holdfast ? "connected" : "error"));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct hold *)a)->name, ((const struct hold *)b)->name);
}

static struct hold *find_hold(const char *name)
{
    struct hold key = {.name = name}, **found = tfind(&key, &agent.by_name, compare_names);
    return found ? *found : NULL;
}

static struct hold *make_hold(const json_t *order)
{
    struct hold *hold = calloc(1, sizeof *hold);
    hold->name = hold->own_name = strdup(text_of(order, "hold"));
    hold->next = agent.holds;
    agent.holds = hold;
    (void)tsearch(hold, &agent.by_name, compare_names);
    return hold;
}

static void do_lock(const json_t *order, struct hold *hold)
{
    struct holdfast_request r = HOLDFAST_REQUEST;
    const char *names[HOLDFAST_NAMES_MAX];
    size_t i = 0;
    json_t *name = NULL;
    json_array_foreach(json_object_get(order, "names"), i, name) names[i] = json_string_value(name);
    r.names = names;
    r.n_names = i;
    r.wait_ms = number_of(order, "wait", HOLDFAST_FOREVER);
    r.lease_ms = number_of(order, "lease", 0);
    r.maxhold_ms = number_of(order, "max_hold", 0);
    r.limit = number_of(order, "limit", 0);
    r.shared = json_is_true(json_object_get(order, "shared"));
    r.fair = json_is_true(json_object_get(order, "fair"));
    hold->free_in = (enum holdfast_event)number_of(order, "free in", 0);
    hold->lock = holdfast_lock(agent.holdfast, &r, on_event, hold);
}

static void do_nested(const json_t *order, struct hold *hold)
{
    hold->is_nested = true;
    hold->may_enter = json_is_true(json_object_get(order, "reentrant"));
    hold->lock = holdfast_lock_name(agent.holdfast, text_of(order, "name"), HOLDFAST_FOREVER,
                                    on_event, hold);
}

static void do_unlock(const struct hold *hold)
{
    enum holdfast_state state = holdfast_state(hold->lock);
    bool is_held = state == HOLDFAST_HELD || state == HOLDFAST_IN_JEOPARDY;
    if (is_held)
        holdfast_release(hold->lock);
    else
        say_event("notheld", hold);
}

static void do_state(const struct hold *hold)
{
    int64_t left_ms = holdfast_left_ms(hold->lock);
    say(json_pack("{s:s, s:s, s:b, s:o, s:I}", "event", "state", "hold", hold->name, "held",
                  left_ms > 0, "tokens", tokens_of(hold->lock), "remaining", (json_int_t)left_ms));
}

static void do_close(void)
{
    holdfast_free(agent.holdfast);
    agent.holdfast = NULL;
    for (struct hold *hold = agent.holds; hold; hold = hold->next)
        hold->lock = NULL;
    say(json_pack("{s:s}", "event", "closed"));
}

static void do_order(const json_t *order)
{
    const char *what = text_of(order, "do");
    struct hold *hold = find_hold(text_of(order, "hold"));
    if (strcmp(what, "connect") == 0) {
        do_connect(order);
    } else if (strcmp(what, "lock") == 0) {
        do_lock(order, make_hold(order));
    } else if (strcmp(what, "nested") == 0) {
        do_nested(order, make_hold(order));
    } else if (strcmp(what, "close") == 0) {
        do_close();
    } else if (!hold || !hold->lock) {
        fprintf(stderr, "agent: no such hold: %s\n", text_of(order, "hold"));
    } else if (strcmp(what, "cancel") == 0) {
        if (holdfast_state(hold->lock) == HOLDFAST_WAITING)
            holdfast_release(hold->lock);
    } else if (strcmp(what, "unlock") == 0) {
        do_unlock(hold);
    } else if (strcmp(what, "renew") == 0) {
        holdfast_renew(hold->lock, number_of(order, "lease", 0));
    } else if (strcmp(what, "state") == 0) {
        do_state(hold);
    } else if (strcmp(what, "free") == 0) {
        holdfast_lock_free(hold->lock);
        hold->lock = NULL;
    }
}

static void on_line(struct bufferevent *in, void *arg)
{
    char *line = NULL;
    (void)arg;
    while ((line = evbuffer_readln(bufferevent_get_input(in), NULL, EVBUFFER_EOL_LF))) {
        json_error_t error;
        json_t *order = json_loads(line, 0, &error);
        if (order)
            do_order(order);
        else
            fprintf(stderr, "agent: %s: %s\n", line, error.text);
        json_decref(order);
        free(line);
    }
}

/* Whoever is told to end by the end of its input ends at once and closes nothing. But where a tool
 * looks for leaks all is freed. */
static void on_end(struct bufferevent *in, short what, void *arg)
{
    (void)in;
    (void)what;
    (void)arg;
    if (getenv("AGENT_FREES"))
        event_base_loopbreak(agent.base);
    else
        _exit(0);
}

int main(void)
{
    agent.base = event_base_new();
    struct bufferevent *in = bufferevent_socket_new(agent.base, 0, 0);
    bufferevent_setcb(in, on_line, NULL, on_end, NULL);
    bufferevent_enable(in, EV_READ);
    event_base_dispatch(agent.base);
    holdfast_free(agent.holdfast);
    while (agent.holds) {
        struct hold *next = agent.holds->next;
        (void)tdelete(agent.holds, &agent.by_name, compare_names);
        free(agent.holds->own_name);
        free(agent.holds);
        agent.holds = next;
    }
    SSL_CTX_free(agent.tls);
    bufferevent_free(in);
    event_base_free(agent.base);
    libevent_global_shutdown();
    return 0;
}
