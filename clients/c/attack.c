/*
 * Uses libholdfast as badly as a program may: a thousand times, by chance, takes, enters, renews,
 * gives back, cancels and frees locks in any state, also in their callbacks, and now and then the
 * whole struct holdfast. Two of them are at work at the same brokers, which others kill or stop
 * meanwhile. A lock that one of them may rely on must be relied on by nobody else.
 *
 * usage: attack BROKERS SECONDS SEED
 */
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast.h"

enum { CLIENTS = 2, SLOTS = 40, NAMES = 6, TURN_US = 500 };

struct slot {
    struct holdfast_lock *lock; /* NULL: free for the next one */
    int client;
    bool is_exclusive;
    bool was_told; /* its last event */
};

static struct event_base *base;
static struct holdfast_options options = HOLDFAST_OPTIONS;
static struct holdfast *clients[CLIENTS];
static struct slot slots[SLOTS];
static const char *const names[NAMES] = {"attack-0", "attack-1", "attack-2",
                                         "attack-3", "attack-4", "attack-5"};
static long n_events[HOLDFAST_FAILED + 1];
static unsigned seed;

static bool chance(int percent)
{
    return rand_r(&seed) % 100 < percent;
}

static void fail(const char *what, const struct holdfast_lock *lock)
{
    fprintf(stderr, "attack: %s: %s (%s)\n", what, holdfast_name(lock, 0), holdfast_why(lock));
    abort();
}

/* Frees a client with all its locks, and makes it anew. */
static void start_again(int client)
{
    holdfast_free(clients[client]);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].client == client)
            slots[i].lock = NULL;
    clients[client] = holdfast_new(base, &options);
}

static void drop(struct slot *slot)
{
    holdfast_lock_free(slot->lock);
    slot->lock = NULL;
}

/* Whoever holds alone is the only one of this program. */
static void check_alone(const struct holdfast_lock *lock)
{
    for (int i = 0; i < SLOTS; i++) {
        const struct holdfast_lock *other = slots[i].lock;
        if (other && other != lock && slots[i].is_exclusive && holdfast_left_ms(other) > 0 &&
            holdfast_left_ms(lock) > 0 &&
            strcmp(holdfast_name(other, 0), holdfast_name(lock, 0)) == 0)
            fail("two hold it", lock);
    }
}

static void on_event(struct holdfast_lock *lock, enum holdfast_event event, void *arg)
{
    struct slot *slot = arg;
    if (slot->lock != lock || slot->was_told)
        fail("told after its end", lock);
    n_events[event]++;
    slot->was_told = event >= HOLDFAST_LOST;
    if (event == HOLDFAST_GRANTED)
        check_alone(lock);
    if (event == HOLDFAST_GRANTED && holdfast_token(lock, 0) <= 0)
        fail("no token", lock);
    if (chance(1))
        start_again(slot->client);
    else if (slot->was_told || chance(10))
        drop(slot);
    else if (chance(10))
        holdfast_release(lock);
}

static void ask(struct slot *slot)
{
    struct holdfast_request r = HOLDFAST_REQUEST;
    const char *wanted[2] = {names[rand_r(&seed) % NAMES], "attack-both"};
    slot->client = rand_r(&seed) % CLIENTS;
    slot->was_told = false;
    r.names = wanted;
    r.n_names = chance(15) ? 2 : 1;
    r.wait_ms = chance(20) ? 0 : chance(50) ? HOLDFAST_FOREVER : rand_r(&seed) % 3000 + 1;
    r.lease_ms = chance(20) ? 500 : 0;
    r.shared = chance(20);
    r.fair = r.n_names == 1 && chance(20);
    slot->is_exclusive = !r.shared;
    slot->lock = holdfast_lock(clients[slot->client], &r, on_event, slot);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct slot *slot = &slots[rand_r(&seed) % SLOTS];
    (void)fd;
    (void)what;
    (void)arg;
    if (!slot->lock)
        ask(slot);
    else if (holdfast_left_ms(slot->lock) > 0 && chance(90))
        return; /* it is at work */
    else if (chance(30))
        drop(slot);
    else if (chance(60))
        holdfast_release(slot->lock);
    else if (chance(50))
        holdfast_renew(slot->lock, 0);
    else if (!slot->was_told)
        (void)holdfast_enter(slot->lock);
}

int main(int argc, char **argv)
{
    struct timeval turn = {0, TURN_US}, end = {argc == 4 ? atoi(argv[2]) : 0, 0};
    if (argc != 4)
        return 2;
    seed = (unsigned)atoi(argv[3]);
    base = event_base_new();
    options.brokers = argv[1];
    options.silence_ms = 500;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = holdfast_new(base, &options);
    struct event *timer = event_new(base, -1, EV_PERSIST, on_turn, NULL);
    event_add(timer, &turn);
    event_base_loopexit(base, &end);
    event_base_dispatch(base);
    for (int i = 0; i < CLIENTS; i++)
        holdfast_free(clients[i]);
    event_free(timer);
    event_base_free(base);
    libevent_global_shutdown();
    for (enum holdfast_event event = HOLDFAST_GRANTED; event <= HOLDFAST_FAILED; event++)
        printf("%s=%ld ", holdfast_event_name(event), n_events[event]);
    puts("");
    return 0;
}
