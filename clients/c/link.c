/*
 * One connection, and time as far as it concerns it. Each second or so the broker is asked for its
 * ROLE: that shows that it is alive, bounds the age of what it pushes, and names the broker to move
 * to when this one drains or has lost its masters.
 *
 * Invariants: bev is NULL exactly when the link is LINK_DOWN; each request that was written has its
 * ask in the list until it is answered.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

enum {
    BEAT_MIN_MS = 20,
    BEAT_MAX_MS = 1000,
    RETRY_MIN_MS = 50,
    RETRY_MAX_MS = 1000,
    READ_MAX = 256 * 1024,
    HELD_UP_MS = 200, /* a turn that comes so much too late */
    EXCUSE_MS = 1000, /* for the broker, as answers may lie unread */
    STAY_MS = 1000    /* at a broker that can grant, before another one is believed to be better */
};

/* ---- words ---- */

void words_add(struct words *w, const char *word)
{
    w->v[w->n++] = word;
}

void words_number(struct words *w, int64_t number)
{
    char *text = w->numbers[w->n_numbers++];
    snprintf(text, sizeof w->numbers[0], "%lld", (long long)number);
    words_add(w, text);
}

/* ---- time ---- */

/* Returns when the broker will have owed this answer, and said nothing else, for too long. */
static int64_t silent_ms(const struct holdfast *h, const struct ask *ask)
{
    int64_t from_ms = ask->sent_ms > h->bytes_ms ? ask->sent_ms : h->bytes_ms;
    return from_ms + h->silence_ms > h->excused_ms ? from_ms + h->silence_ms : h->excused_ms;
}

static void set_tick(struct holdfast *h)
{
    int64_t now_ms = hf_now_ms(), due_ms = HF_NEVER;
    struct ask *first = TAILQ_FIRST(&h->asks);
    if (h->link == LINK_DOWN && h->n_open > 0)
        due_ms = h->try_at_ms;
    else if (h->link == LINK_DIALING)
        due_ms = h->dial_by_ms;
    else if (h->link == LINK_READY && h->n_open > 0)
        due_ms = h->beat_at_ms;
    if (first && silent_ms(h, first) < due_ms)
        due_ms = silent_ms(h, first);
    if (h->broken)
        due_ms = now_ms;
    if (due_ms == HF_NEVER)
        return;
    h->tick_due_ms = due_ms > now_ms ? due_ms : now_ms;
    hf_set_timer(h->tick, due_ms - now_ms);
}

/* ---- its end ---- */

static void name_other(struct holdfast *h, const char *host, int64_t port)
{
    free(h->other.host);
    h->other = (struct address){host ? strdup(host) : NULL, (int)port, false};
}

/* A Unix socket cannot be reset: it stays open until what it held is taken back. */
static void keep_open(struct holdfast *h, evutil_socket_t fd)
{
    if (h->n_old < sizeof h->old / sizeof h->old[0] && (h->old[h->n_old] = dup(fd)) >= 0)
        h->n_old++;
}

static void close_old(struct holdfast *h)
{
    while (h->n_old > 0)
        (void)close(h->old[--h->n_old]);
}

static void reset(struct holdfast *h, evutil_socket_t fd)
{
    struct linger none = {1, 0};
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.ss_family == AF_UNIX)
        keep_open(h, fd);
    else
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

void link_close(struct holdfast *h, bool in_order)
{
    struct ask *ask = NULL;
    char unread[4096];
    evutil_socket_t fd = h->bev ? bufferevent_getfd(h->bev) : -1;
    while (fd >= 0 && in_order && recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0)
        continue; /* what is not read would make a reset of it */
    if (fd >= 0 && !in_order)
        reset(h, fd);
    if (in_order)
        close_old(h);
    if (h->bev)
        bufferevent_free(h->bev);
    if (h->wire.reader)
        redisReaderFree(h->wire.reader);
    h->bev = NULL;
    h->wire = (struct wire){0};
    h->link = LINK_DOWN;
    h->broken = false;
    while ((ask = TAILQ_FIRST(&h->asks))) {
        TAILQ_REMOVE(&h->asks, ask, next);
        if (ask->lock)
            ask->lock->n_asked--;
        free(ask);
    }
}

static int64_t pause_ms(const struct holdfast *h)
{
    size_t round = h->failures / (h->n_brokers ? h->n_brokers : 1);
    int64_t ms = round == 0 ? 0 : (int64_t)RETRY_MIN_MS << (round < 6 ? round - 1 : 5);
    return ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
}

/* Gives the connection up: the next broker is tried. */
static void fail(struct holdfast *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct holdfast *h, const char *format, ...)
{
    struct holdfast_lock *lock = NULL;
    va_list ap;
    va_start(ap, format);
    vsnprintf(h->trouble, sizeof h->trouble, format, ap);
    va_end(ap);
    link_close(h, false);
    h->try_at_ms = hf_now_ms() + pause_ms(h);
    h->failures++;
    TAILQ_FOREACH(lock, &h->locks, next)
        lock_unlinked(lock);
    set_tick(h);
}

/* ---- asking ---- */

void link_ask(struct holdfast *h, enum verb verb, struct holdfast_lock *lock, size_t part,
              struct words *words)
{
    char *text = NULL;
    struct ask *ask = calloc(1, sizeof *ask);
    int n = ask && h->bev ? redisFormatCommandArgv(&text, words->n, words->v, NULL) : -1;
    bool was_idle = TAILQ_EMPTY(&h->asks);
    if (n >= 0 && bufferevent_write(h->bev, text, (size_t)n) == 0) {
        *ask = (struct ask){.verb = verb, .lock = lock, .part = part, .sent_ms = hf_now_ms()};
        TAILQ_INSERT_TAIL(&h->asks, ask, next);
        if (lock)
            lock->n_asked++;
    } else { /* no memory: what is half said is no use */
        free(ask);
        h->broken = h->bev != NULL;
    }
    if (text)
        redisFreeCommand(text);
    if (was_idle || h->broken)
        set_tick(h);
}

void link_ask_role(struct holdfast *h)
{
    struct words words = {.v = {"ROLE"}, .n = 1};
    link_ask(h, VERB_ROLE, NULL, 0, &words);
}

void link_beat_for(struct holdfast *h, int64_t validity_ms)
{
    int64_t ms = validity_ms / 6 > BEAT_MIN_MS ? validity_ms / 6 : BEAT_MIN_MS;
    if (ms >= h->beat_ms)
        return;
    h->beat_at_ms -= h->beat_ms - ms;
    h->beat_ms = ms;
    set_tick(h);
}

static void greet(struct holdfast *h)
{
    struct words hello = {.v = {"HELLO", "3", "AUTH"}, .n = h->password ? 3 : 2};
    struct words library = {.v = {"CLIENT", "SETINFO", "LIB-NAME", "libholdfast"}, .n = 4};
    struct words tell = {.v = {"CLIENT", "TELL", "ON"}, .n = 3};
    if (h->password) {
        words_add(&hello, h->user ? h->user : "default");
        words_add(&hello, h->password);
    }
    h->link = LINK_GREETING;
    link_ask(h, VERB_GREET, NULL, 0, &hello);
    link_ask(h, VERB_NONE, NULL, 0, &library);
    link_ask(h, VERB_GREET, NULL, 0, &tell);
    link_ask_role(h);
    set_tick(h);
}

/* ---- answers ---- */

static void on_greeted(struct holdfast *h, const redisReply *reply)
{
    struct holdfast_lock *lock = NULL;
    char why[HF_TEXT_MAX];
    if (reply->type != REDIS_REPLY_ERROR)
        return;
    snprintf(why, sizeof why, "%s", reply->str);
    fail(h, "%s", why);
    if (strncmp(why, "WRONGPASS", 9) != 0 && strncmp(why, "NOAUTH", 6) != 0)
        return;
    TAILQ_FOREACH(lock, &h->locks, next)
        lock_denied(lock, why);
}

static void on_ready(struct holdfast *h)
{
    struct holdfast_lock *lock = NULL;
    h->link = LINK_READY;
    h->failures = h->hops = 0;
    h->trouble[0] = '\0';
    h->ready_ms = hf_now_ms();
    h->beat_ms = BEAT_MAX_MS < h->silence_ms / 3 ? BEAT_MAX_MS : h->silence_ms / 3;
    h->beat_at_ms = h->ready_ms + h->beat_ms;
    TAILQ_FOREACH(lock, &h->locks, next)
        lock_ask(lock);
    set_tick(h);
}

/* master, or slave with the address of the broker that is to be used. */
static void on_role(struct holdfast *h, const redisReply *reply)
{
    bool is_other = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3 &&
                    reply->element[0]->str && strcmp(reply->element[0]->str, "slave") == 0 &&
                    reply->element[1]->str && reply->element[2]->type == REDIS_REPLY_INTEGER;
    bool is_greeting = h->link == LINK_GREETING;
    bool may_leave = is_greeting ? h->hops <= h->n_brokers : hf_now_ms() - h->ready_ms >= STAY_MS;
    if (is_other && may_leave) {
        h->hops++;
        name_other(h, reply->element[1]->str, reply->element[2]->integer);
        h->failures = 0;
        fail(h, "the broker cannot grant, and named %s:%d", h->other.host ? h->other.host : "?",
             h->other.port);
    } else if (is_greeting) {
        on_ready(h);
    }
}

static bool is_push(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 1 &&
           reply->element[0]->type == REDIS_REPLY_STATUS &&
           strcmp(reply->element[0]->str, ">") == 0;
}

static void on_reply(struct holdfast *h, const redisReply *reply)
{
    struct ask *ask = TAILQ_FIRST(&h->asks);
    if (is_push(reply)) {
        lock_push(h, reply);
        return;
    }
    if (!ask) {
        fail(h, "an answer that nobody has asked for: is this a holdfastd?");
        return;
    }
    TAILQ_REMOVE(&h->asks, ask, next);
    if (ask->lock)
        ask->lock->n_asked--;
    h->heard_ms = ask->sent_ms;
    if (ask->verb == VERB_GREET)
        on_greeted(h, reply);
    else if (ask->verb == VERB_ROLE)
        on_role(h, reply);
    else if (ask->lock)
        lock_answer(ask, reply);
    free(ask);
}

static void on_bytes(struct bufferevent *bev, void *holdfast)
{
    struct holdfast *h = holdfast;
    void *reply = NULL;
    h->bytes_ms = hf_now_ms();
    if (wire_feed(&h->wire, bufferevent_get_input(bev)) != 0) {
        fail(h, "an answer of the wrong shape: is this a holdfastd?");
        return;
    }
    while (h->bev && redisReaderGetReply(h->wire.reader, &reply) == REDIS_OK && reply) {
        on_reply(h, reply);
        freeReplyObject(reply);
        reply = NULL;
    }
    if (h->bev && h->wire.reader->err)
        fail(h, "%s", h->wire.reader->errstr);
}

static void on_change(struct bufferevent *bev, short what, void *holdfast)
{
    struct holdfast *h = holdfast;
    int dns = bufferevent_socket_get_dns_error(bev);
    if (what & BEV_EVENT_CONNECTED)
        greet(h);
    else if (what & BEV_EVENT_EOF)
        fail(h, "the broker has closed the connection");
    else
        fail(h, "no connection: %s", dns ? evutil_gai_strerror(dns) : strerror(errno));
}

/* ---- dialing ---- */

static bool is_numeric(const char *host)
{
    unsigned char address[16];
    return evutil_inet_pton(AF_INET, host, address) == 1 ||
           evutil_inet_pton(AF_INET6, host, address) == 1;
}

/* Of the addresses of a name libevent tries the first one only: they take turns by their family. */
static int family_of(const struct holdfast *h, const char *host)
{
    if (is_numeric(host))
        return AF_UNSPEC;
    return (h->next_broker - 1) / h->n_brokers % 2 == 0 ? AF_INET : AF_INET6;
}

static int dial_to(struct holdfast *h, const struct address *to)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (to->is_unix) {
        snprintf(at.sun_path, sizeof at.sun_path, "%s", to->host);
        return bufferevent_socket_connect(h->bev, (struct sockaddr *)&at, sizeof at);
    }
    if (!h->dns && !is_numeric(to->host)) { /* without it a name would be looked up in this call */
        h->dns = evdns_base_new(h->base, EVDNS_BASE_INITIALIZE_NAMESERVERS |
                                             EVDNS_BASE_DISABLE_WHEN_INACTIVE);
        if (!h->dns)
            return -1;
    }
    return bufferevent_socket_connect_hostname(h->bev, h->dns, family_of(h, to->host), to->host,
                                               to->port);
}

static void dial(struct holdfast *h)
{
    bool is_other = h->other.host != NULL;
    const struct address *to = &h->other;
    if (!is_other)
        to = &h->brokers[h->next_broker++ % h->n_brokers];
    h->heard_ms = 0;
    h->link = LINK_DIALING;
    h->dial_by_ms = hf_now_ms() + h->silence_ms;
    h->wire = (struct wire){redisReaderCreate(), 0};
    h->bev = h->open ? h->open(h->base, to->host, h->open_arg)
                     : bufferevent_socket_new(h->base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (h->bev)
        bufferevent_setcb(h->bev, on_bytes, NULL, on_change, h);
    if (!h->bev || !h->wire.reader || bufferevent_enable(h->bev, EV_READ | EV_WRITE) != 0 ||
        bufferevent_set_max_single_read(h->bev, READ_MAX) != 0 || dial_to(h, to) != 0)
        fail(h, "%s: it cannot be dialed", to->host);
    if (is_other)
        name_other(h, NULL, 0);
}

/* ---- its turn ---- */

static void beat(struct holdfast *h, int64_t now_ms)
{
    struct holdfast_lock *lock = NULL;
    h->beat_at_ms = now_ms + h->beat_ms;
    link_ask_role(h);
    bool is_all_taken = true;
    TAILQ_FOREACH(lock, &h->locks, next) {
        is_all_taken = is_all_taken && lock_is_taken(lock);
        lock_ask(lock);
    }
    if (is_all_taken)
        close_old(h);
}

void link_on_tick(evutil_socket_t fd, short what, void *holdfast)
{
    struct holdfast *h = holdfast;
    struct ask *first = TAILQ_FIRST(&h->asks);
    int64_t now_ms = hf_now_ms();
    (void)fd;
    (void)what;
    if (now_ms > h->tick_due_ms + HELD_UP_MS)
        h->excused_ms = now_ms + EXCUSE_MS;
    if (h->broken)
        fail(h, "no memory for a request");
    else if (h->link == LINK_DIALING && now_ms >= h->dial_by_ms)
        fail(h, "no connection in time");
    else if (first && now_ms >= silent_ms(h, first))
        fail(h, "the broker is silent");
    else if (h->link == LINK_DOWN && h->n_open > 0 && now_ms >= h->try_at_ms)
        dial(h);
    else if (h->link == LINK_READY && h->n_open > 0 && now_ms >= h->beat_at_ms)
        beat(h, now_ms);
    set_tick(h);
}

void link_want(struct holdfast *h)
{
    if (h->link == LINK_DOWN || TAILQ_EMPTY(&h->asks))
        set_tick(h);
}
