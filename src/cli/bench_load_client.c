/*
 * One client of bench_load: its connection, its rounds, its end. A request is written at once, not
 * with the next turn of the loop, so that what is measured is the broker as far as one process can.
 *
 * Invariants: a client has at most one request under way; `freed_us` of a name that one client at a
 * time holds is set from the moment its holder asks to unlock until somebody is granted it.
 */
#include "cli/bench_load_private.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/cli.h"

enum { RETRY_US = 100000 }; /* after an error */

static void wake_client_in(struct client *c, int64_t us)
{
    struct timeval tv = {us / 1000000, us % 1000000};
    evtimer_add(c->timer, &tv);
}

void bench_client_close(struct client *c)
{
    if (c->readable)
        event_free(c->readable);
    if (c->writable)
        event_free(c->writable);
    c->readable = c->writable = NULL;
    link_close(&c->link);
}

static void note_error(struct load *l, const char *text)
{
    if (l->result->first_error[0] == '\0')
        snprintf(l->result->first_error, sizeof l->result->first_error, "%s", text);
}

static void client_broken(struct client *c)
{
    struct load *l = c->load;
    if (l->ended) { /* as it should */
        bench_client_close(c);
        bench_load_settle(l);
        return;
    }
    if (!l->begun_us)
        cli_die(c->link.denied ? STATUS_DENIED : STATUS_NO_BROKER, "client %u: %s", c->index + 1,
                c->link.error);
    l->result->waiting -= c->state == CLIENT_ASKING;
    l->result->disconnects++;
    note_error(l, c->link.error);
    bench_client_close(c);
    c->state = CLIENT_IDLE;
    wake_client_in(c, RETRY_US);
}

/* Writes the queued request now. */
static void client_push(struct client *c)
{
    if (link_turn(&c->link, POLLOUT) != 0)
        client_broken(c);
    else if (c->link.wants_write)
        event_add(c->writable, NULL);
}

void bench_client_ask(struct client *c)
{
    struct load *l = c->load;
    c->name = &l->names[util_jitter(&l->random, (uint64_t)l->plan->names)];
    struct link_words words = {.v = {"LOCK", c->name->text}, .n = 2};
    if (l->plan->wait_ms) /* WAIT 0 waits for ever */
        link_option(&words, "WAIT", l->plan->wait_ms > 0 ? l->plan->wait_ms : 0);
    if (l->plan->lease_ms)
        link_option(&words, "LEASE", l->plan->lease_ms);
    if (l->plan->shared)
        link_word(&words, "SHARED");
    if (l->plan->limit)
        link_option(&words, "LIMIT", l->plan->limit);
    c->state = CLIENT_ASKING;
    l->result->waiting++;
    c->sent_us = clock_us();
    link_send(&c->link, words.n, words.v);
    client_push(c);
}

static void client_unlock(struct client *c)
{
    const char *words[] = {"UNLOCK", c->name->text};
    c->state = CLIENT_UNLOCKING;
    c->sent_us = clock_us();
    if (!c->load->plan->shared && !c->load->plan->limit) /* this lets the next one in */
        c->name->freed_us = c->sent_us;
    link_send(&c->link, 2, words);
    client_push(c);
}

static void client_think(struct client *c)
{
    c->state = CLIENT_IDLE;
    if (c->load->plan->think_us)
        wake_client_in(c, c->load->plan->think_us);
    else
        bench_client_ask(c);
}

static void on_granted(struct client *c)
{
    struct load *l = c->load;
    int64_t now_us = clock_us();
    hist_add(&l->result->grant_us, now_us - c->sent_us);
    if (c->name->freed_us > c->sent_us)
        hist_add(&l->result->handover_us, now_us - c->name->freed_us);
    l->result->grants[c->index]++;
    c->name->freed_us = 0;
    c->state = CLIENT_HOLDING;
    if (!l->plan->hold_us)
        client_unlock(c);
    else
        wake_client_in(c, l->plan->hold_us);
}

static void on_connected(struct client *c);

static void on_client_reply(struct client *c, const redisReply *reply)
{
    struct load *l = c->load;
    enum client_state state = (enum client_state)c->state;
    l->result->waiting -= state == CLIENT_ASKING;
    if (reply->type == REDIS_REPLY_ERROR && !l->begun_us)
        cli_die(cli_status_of(reply->str), "%s", reply->str);
    if (reply->type == REDIS_REPLY_ERROR) {
        l->result->errors++;
        note_error(l, reply->str);
        c->state = CLIENT_IDLE;
        wake_client_in(c, RETRY_US);
    } else if (state == CLIENT_CONNECTING) {
        on_connected(c);
    } else if (state == CLIENT_ASKING && reply->type == REDIS_REPLY_ARRAY) {
        on_granted(c);
    } else {
        l->result->refused += state == CLIENT_ASKING;
        client_think(c);
    }
}

/* Closes the sending half and reads on until the broker closes, too. Closed at once, with answers
 * unread, the connection would be reset, and what it holds would be left to its lease. */
static void client_part(struct client *c)
{
    if (c->load->plan->lease_ms && c->state == CLIENT_HOLDING)
        link_send(&c->link, 2, (const char *[]){"UNLOCK", c->name->text});
    c->state = CLIENT_IDLE;
    if (link_turn(&c->link, POLLOUT) == 0 && !c->link.wants_write && link_finish(&c->link) == 0)
        return;
    bench_client_close(c);
    bench_load_settle(c->load);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    redisReply *reply = NULL;
    (void)fd, (void)what;
    if (link_turn(&c->link, POLLIN) != 0) {
        client_broken(c);
        return;
    }
    if (c->link.wants_write) /* TLS may do both */
        event_add(c->writable, NULL);
    while (link_is_open(&c->link)) {
        if (link_next(&c->link, &reply) != 0)
            client_broken(c);
        if (!reply)
            return;
        if (!c->load->ended) {
            on_client_reply(c, reply);
        } else if (c->state == CLIENT_ASKING && c->load->plan->lease_ms) { /* to be given back */
            c->state = reply->type == REDIS_REPLY_ARRAY ? CLIENT_HOLDING : CLIENT_IDLE;
            client_part(c);
        }
        freeReplyObject(reply);
        reply = NULL;
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_push(arg);
}

void bench_client_connect(struct client *c)
{
    struct load *l = c->load;
    c->state = CLIENT_CONNECTING;
    const struct urls *urls = l->plan->urls;
    if (link_open(&c->link, &urls->v[c->index % urls->n]) != 0) {
        client_broken(c);
        return;
    }
    int fd = link_fd(&c->link);
    c->readable = event_new(l->base, fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(l->base, fd, EV_WRITE, on_writable, c);
    if (!c->readable || !c->writable)
        util_die("out of memory");
    event_add(c->readable, NULL);
    link_send(&c->link, 1, (const char *[]){"PING"});
    event_add(c->writable, NULL);
}

void bench_client_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct client *c = arg;
    (void)fd, (void)what;
    if (!link_is_open(&c->link))
        bench_client_connect(c);
    else if (c->state == CLIENT_HOLDING)
        client_unlock(c);
    else
        bench_client_ask(c);
}

/* At the end. A lock with a lease of its own does not go with the connection: who waits for one
 * goes on, and gives it back when it has it. */
void bench_client_leave(struct client *c)
{
    evtimer_del(c->timer);
    c->load->unfinished++;
    if (!c->load->plan->lease_ms || c->state != CLIENT_ASKING)
        client_part(c);
}

static void on_connected(struct client *c)
{
    struct load *l = c->load;
    c->state = CLIENT_IDLE;
    if (l->begun_us) { /* again, after its connection was lost */
        client_think(c);
        return;
    }
    l->connected++;
    if (l->next_to_connect < l->plan->clients)
        bench_client_connect(&l->clients[l->next_to_connect++]);
    else if (l->connected == l->plan->clients)
        bench_load_begin(l);
}
