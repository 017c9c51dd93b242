#ifndef HOLDFAST_H
#define HOLDFAST_H
/*
 * libholdfast: locks of the broker holdfastd(8) in a program with a loop of libevent.
 *
 * A struct holdfast is one connection for all locks of the program. It finds a broker that can
 * grant, moves to another one when that dies, falls silent or drains, and takes the locks along. A
 * struct holdfast_lock is one acquisition, under an owner of its own that nobody else has:
 *
 *                          +--------+  <- safe --  +----------+
 *   WAITING -- granted --> |  HELD  |              | JEOPARDY | -- lost --> LOST
 *      |                   +--------+ - jeopardy-> +----------+
 *      |                     | release |             |   (also from HELD)
 *      |-- release           +---------+-------------+
 *      |        \                      |
 *      |         +----> RELEASING <----+
 *      v                    | released, or cancelled when it had not been granted
 *   ENDED (timeout, failed) v
 *                         ENDED
 *
 * LOST is told before the end of what the broker has granted, RELEASED when others can have it.
 *
 * Times are in milliseconds. Texts and arrays that are handed in are copied. Texts that are handed
 * out live until the next call for the same lock, or turn of the loop. No function waits, prints or
 * ends the program. All calls for one struct holdfast come from the thread that runs its loop.
 *
 * Callbacks run from the loop only, never inside a call of this library, and one at a time. In one
 * everything may be called, holdfast_lock_free() and holdfast_free() of the very same included.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct bufferevent;
struct holdfast;
struct holdfast_lock;

/* ---- the connection ---- */

struct holdfast_options {
    size_t size; /* of this structure, as HOLDFAST_OPTIONS sets it */
    /* Brokers, separated by commas or blanks: host, host:port, [address]:port or unix:/path. The
     * first one that answers is asked which of them to use. NULL: 127.0.0.1:5625. */
    const char *brokers;
    const char *user;     /* NULL: the user default */
    const char *password; /* NULL: none is asked for */
    const char *name;     /* begins the owners' names; NULL: that of the host */
    int64_t silence_ms;   /* a broker that owes answers and says nothing is given up; 0: 3000 */
    /* Makes a bufferevent that is not connected, as bufferevent_openssl_socket_new(base, -1, ...)
     * does for TLS to `host`, with BEV_OPT_CLOSE_ON_FREE. NULL from it: that broker is not tried
     * now. A NULL here: plain sockets. */
    struct bufferevent *(*open)(struct event_base *base, const char *host, void *open_arg);
    void *open_arg;
};
/* struct holdfast_options o = HOLDFAST_OPTIONS; what is not set is 0, which is the default. */
/* clang-format off */
#define HOLDFAST_OPTIONS {sizeof(struct holdfast_options), 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* NULL: errno is EINVAL (a broker's address, a silence below 100), or ENOMEM. Connects with the
 * first lock. The base must outlive it; options may be NULL. */
struct holdfast *holdfast_new(struct event_base *base, const struct holdfast_options *options);

/* Closes in order and frees all its locks, whose handles are not to be used any more: the broker
 * releases those without a lease, and gives up what waits. Locks with a lease end with it; who
 * wants to be sure releases first, and frees when it is told. No callback comes any more. */
void holdfast_free(struct holdfast *h);

/* Why there is no connection to a broker; "" when there is one, or none is needed. */
const char *holdfast_trouble(const struct holdfast *h);

/* ---- locks ---- */

enum holdfast_event {
    HOLDFAST_GRANTED = 1, /* it is held until holdfast_left_ms() is 0, which is put off by and by */
    HOLDFAST_TOKEN,       /* it was taken back under a new token: use that from now on */
    HOLDFAST_JEOPARDY,    /* it could not be renewed, says a broker; trying goes on */
    HOLDFAST_SAFE,        /* the end of that: it is renewed again */
    /* One of these is the last thing that is told of a lock. */
    HOLDFAST_LOST,      /* stop what it protects, now: some validity is left as a rule */
    HOLDFAST_RELEASED,  /* holdfast_release() is done; holdfast_why() when not confirmed */
    HOLDFAST_TIMEOUT,   /* not granted in time */
    HOLDFAST_CANCELLED, /* holdfast_release() is done, and it was not held */
    HOLDFAST_FAILED     /* holdfast_why() */
};

enum holdfast_state {
    HOLDFAST_WAITING = 1,
    HOLDFAST_HELD,
    HOLDFAST_IN_JEOPARDY,
    HOLDFAST_RELEASING,
    HOLDFAST_IS_LOST,
    HOLDFAST_ENDED
};

typedef void (*holdfast_callback)(struct holdfast_lock *lock, enum holdfast_event event, void *arg);

#define HOLDFAST_FOREVER (-1)
#define HOLDFAST_NAMES_MAX 64

struct holdfast_request {
    size_t size; /* of this structure, as HOLDFAST_REQUEST sets it */
    const char *const *names;
    size_t n_names;     /* more than 1: all of them or none, by MLOCK */
    int64_t wait_ms;    /* 0: once, or until a broker answers; HOLDFAST_FOREVER */
    int64_t lease_ms;   /* held so long and not renewed; 0: renewed by the broker until the end */
    int64_t maxhold_ms; /* held so long at most; 0: no bound */
    int64_t limit;      /* one of so many permits; 0: no permit */
    int shared;         /* not 0: a reader's share */
    int fair;           /* not 0: order of arrival across brokers; for one name */
};
/* struct holdfast_request r = HOLDFAST_REQUEST; */
/* clang-format off */
#define HOLDFAST_REQUEST {sizeof(struct holdfast_request), 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* Asks for a lock. NULL: errno is EINVAL (no name, too many, an empty one or one that is longer
 * than 512 bytes, a negative time, shared and limit, fair with several names) or ENOMEM. Frees
 * nothing by itself: holdfast_lock_free(). */
struct holdfast_lock *holdfast_lock(struct holdfast *h, const struct holdfast_request *request,
                                    holdfast_callback callback, void *arg);

/* A plain lock of one name. */
struct holdfast_lock *holdfast_lock_name(struct holdfast *h, const char *name, int64_t wait_ms,
                                         holdfast_callback callback, void *arg);

/* Enters a lock that is held once more: each entry wants its holdfast_release(). How often it is
 * entered now; 0: it is not held, or in jeopardy and may be lost, and was not entered. */
int holdfast_enter(struct holdfast_lock *lock);

/* Gives it back when it was the last entry, or ends its wait. The end is told. Does nothing where
 * there is nothing to give back. */
void holdfast_release(struct holdfast_lock *lock);

/* Asks the broker for fresh validity; with a lease for so long from then on (0: as long as before).
 * SAFE tells that it is there, LOST that it cannot be had any more. Does nothing unless held. */
void holdfast_renew(struct holdfast_lock *lock, int64_t lease_ms);

/* In any state: nothing more is told of it, and the handle is not to be used any more. What is not
 * given back is given back in the background, also when it is lost, however often entered. */
void holdfast_lock_free(struct holdfast_lock *lock);

enum holdfast_state holdfast_state(const struct holdfast_lock *lock);

/* How long it may be relied on, by a clock that goes on in suspend, counted from before the broker
 * was asked. 0: not held. Look at it before each step, as a program may be stopped for any time. */
int64_t holdfast_left_ms(const struct holdfast_lock *lock);

/* The fencing token of the name of that number, from 0; 0: none. For the resource, which refuses
 * smaller ones. */
int64_t holdfast_token(const struct holdfast_lock *lock, size_t i);

const char *holdfast_name(const struct holdfast_lock *lock, size_t i); /* NULL: no such number */
const char *holdfast_owner(const struct holdfast_lock *lock);
/* What went wrong, for people; in words of the broker it begins with a code. "": nothing. */
const char *holdfast_why(const struct holdfast_lock *lock);
/* "granted", "lost"...; "?" for a number that is none. */
const char *holdfast_event_name(enum holdfast_event event);

#ifdef __cplusplus
}
#endif
#endif
