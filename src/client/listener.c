/* The sockets that clients connect to.
 *
 * Owns the listening sockets, the files of Unix sockets that it made itself, and one descriptor in
 * reserve. Does not know what becomes of a connection, nor how many there may be.
 *
 * Running out of descriptors: a pending connection keeps the listening socket readable, so to do
 * nothing would spin. The reserve is given up for a moment, the connection accepted with it, told
 * and closed; then nothing is accepted for PAUSE_MS. Invariant: events are armed when no pause is
 * on and `held` is not. */
#include "client/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/listener_private.h"
#include "conf/conf.h"
#include "net/stream.h"
#include "stats/stats.h"

enum { ACCEPTS_PER_TURN = 16, TLS_ACCEPTS_PER_TURN = 2, PAUSE_MS = 100 };

struct listener {
    int fd;
    struct listener_speech speech;
    struct event readable;
    struct listeners *set;
    struct listener_file file;
    char address[STREAM_ADDRESS_MAX + 16];
};

struct listeners {
    struct listener_proxied to; /* where connections go: at once, or after their header */
    struct listener *v[LISTENERS_MAX];
    size_t count;
    int reserve;        /* a descriptor to accept with when there is no other; -1: none */
    struct event pause; /* pending: nothing is accepted until it fires */
    int64_t paused_us;  /* when that began */
    bool held;          /* listener_hold() */
};

static int open_reserve(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void arm_listeners(struct listeners *set)
{
    bool on = !set->held && !event_pending(&set->pause, EV_TIMEOUT, NULL);

    for (size_t i = 0; i < set->count; i++) {
        if (on)
            event_add(&set->v[i]->readable, NULL);
        else
            event_del(&set->v[i]->readable);
    }
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    struct listeners *set = arg;

    (void)fd, (void)what;
    stats.accept_paused_usec += (uint64_t)(clock_us() - set->paused_us);
    if (set->reserve < 0)
        set->reserve = open_reserve();
    arm_listeners(set);
}

/* Tells a peer that no descriptor is left, or no memory for it, and pauses. */
static void refuse_without_fd(struct listeners *set, const struct listener *l, int err)
{
    static const char text[] = "-ERR max number of clients reached\r\n";
    static const struct timeval time = {.tv_usec = PAUSE_MS * 1000};
    static struct log_limit limit;

    stats.rejected_no_descriptor++;
    if (log_limited(&limit, clock_ms()))
        log_error("listener", "cannot accept a connection: %s%s swallowed=%" PRIu64, strerror(err),
                  err == EMFILE ? " (LimitNOFILE=)" : "", limit.swallowed);
    if (set->reserve >= 0) {
        close(set->reserve);
        int peer = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer >= 0) {
            if (!l->speech.tls && !l->speech.proxy)
                (void)!send(peer, text, sizeof text - 1, MSG_NOSIGNAL);
            close(peer);
        }
        set->reserve = open_reserve();
    }
    set->paused_us = clock_us();
    event_add(&set->pause, &time);
    arm_listeners(set);
}

/* Accepts one connection; returns false when there is no more for now. */
static bool accept_one(struct listener *l)
{
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    struct listener_proxied *to = &l->set->to;
    if (fd >= 0) {
        if (l->speech.proxy)
            listener_await_header(to, fd, l->speech.tls, (const struct sockaddr *)&peer, len);
        else
            to->accept(to->arg, fd, l->speech.tls, (const struct sockaddr *)&peer, len);
        return true;
    }
    switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        refuse_without_fd(l->set, l, errno);
        return false;
    case EAGAIN:
        return false;
    default:
        return true; /* this connection has failed on its way here (accept(2)); the next may be good
                      */
    }
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
    struct listener *l = arg;
    int left = l->speech.tls ? TLS_ACCEPTS_PER_TURN : ACCEPTS_PER_TURN;

    (void)fd, (void)what;
    /* The callee may pause or close the set. */
    struct listeners *set = l->set;
    while (left-- > 0 && set->count > 0 && !set->held && accept_one(l)) {
    }
}

void listener_add(struct listeners *set, int fd, struct listener_speech speech,
                  const struct listener_file *file)
{
    struct listener *l = util_alloc(sizeof *l);
    char text[STREAM_ADDRESS_MAX];

    l->fd = fd;
    l->speech = speech;
    l->set = set;
    if (file)
        l->file = *file;
    stream_own_address(text, fd);
    snprintf(l->address, sizeof l->address, "%s%s", conf_listen_prefix(speech.tls, speech.proxy),
             text);
    event_assign(&l->readable, set->to.base, fd, EV_READ | EV_PERSIST, on_connection, l);
    set->v[set->count++] = l;
}

bool listener_is_full(const struct listeners *set)
{
    return set->count == LISTENERS_MAX;
}

struct listeners *listener_new(struct event_base *base, listener_accept_fn accept, void *arg)
{
    struct listeners *set = util_alloc(sizeof *set);

    set->to = (struct listener_proxied){.base = base, .accept = accept, .arg = arg};
    set->reserve = -1;
    event_assign(&set->pause, base, -1, 0, on_pause_over, set);
    return set;
}

static void close_all(struct listeners *set)
{
    while (set->count > 0) {
        struct listener *l = set->v[--set->count];
        event_del(&l->readable);
        listener_remove_file(&l->file);
        close(l->fd);
        free(l);
    }
    listener_drop_waiting(&set->to);
    event_del(&set->pause);
    if (set->reserve >= 0)
        close(set->reserve);
    set->reserve = -1;
}

int listener_open_all(struct listeners *set, const struct conf_listens *listens, unsigned unix_mode,
                      char *error, size_t error_size)
{
    int passed = listener_take_passed(set, error, error_size);

    if (passed < 0 ||
        (passed == 0 && listener_open_list(set, listens, unix_mode, error, error_size) != 0)) {
        close_all(set);
        return -1;
    }
    set->reserve = open_reserve();
    for (size_t i = 0; i < set->count; i++)
        log_info("listener", "listening on %s%s", set->v[i]->address,
                 passed > 0 ? " (passed by systemd)" : "");
    arm_listeners(set);
    return 0;
}

bool listener_has_tls(const struct listeners *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->v[i]->speech.tls)
            return true;
    return false;
}

void listener_hold(struct listeners *set, bool held)
{
    set->held = held;
    arm_listeners(set);
}

void listener_free(struct listeners *set)
{
    if (!set)
        return;
    close_all(set);
    free(set);
}

size_t listener_count(const struct listeners *set)
{
    return set->count;
}

const char *listener_addr(const struct listeners *set, size_t i)
{
    return set->v[i]->address;
}
