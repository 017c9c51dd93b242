#pragma once
/*
 * What the parts of libholdfast know of each other. From the bottom up:
 *
 *   wire       the broker's RESP3 in the words of RESP2, which hiredis of every age reads
 *   link       the one connection: dials, greets, asks, hears, gives up a broker that is silent
 *   lock       the state machine of one lock, told by the link and by its timer
 *   holdfast   what programs call, and the callbacks, which run when all of this is at rest
 *
 * Nothing here calls the program but tell() in holdfast.c, and locks are freed nowhere else: so no
 * lock dies, and no call comes in, while the link or a lock is at work.
 */
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "holdfast.h"

enum { HF_NAME_MAX = 512, HF_TEXT_MAX = 256 };

#define HF_NEVER INT64_MAX

/* ---- wire ---- */

struct wire {
    redisReader *reader;
    int64_t bulk_left; /* of a text that is not whole yet, with its end of line */
};
/* Hands all that `in` has to the reader. A push comes out as an array whose first element is the
 * status ">". -1: that is no RESP, or there is no memory. */
int wire_feed(struct wire *w, struct evbuffer *in);

/* ---- link ---- */

enum verb { VERB_NONE, VERB_GREET, VERB_ROLE, VERB_LOCK, VERB_RENEW, VERB_UNLOCK };

/* A request whose answer is due. */
struct ask {
    TAILQ_ENTRY(ask) next;
    enum verb verb;
    struct holdfast_lock *lock; /* NULL: nobody wants to know */
    size_t part;
    int64_t sent_ms;
};

enum link_state { LINK_DOWN, LINK_DIALING, LINK_GREETING, LINK_READY };

struct address {
    char *host; /* or the path of a Unix socket */
    int port;
    bool is_unix;
};

/* A request word by word; the words are lent. */
struct words {
    const char *v[HOLDFAST_NAMES_MAX + 24];
    int n;
    char numbers[6][24];
    int n_numbers;
};
void words_add(struct words *w, const char *word);
void words_number(struct words *w, int64_t number);

struct holdfast {
    struct event_base *base;
    struct evdns_base *dns; /* NULL until a host has to be looked up */
    struct address *brokers;
    size_t n_brokers;
    char *user, *password;
    char owner[HF_TEXT_MAX - 24]; /* with which those of all locks begin */
    int64_t silence_ms;
    struct bufferevent *(*open)(struct event_base *, const char *, void *);
    void *open_arg;

    enum link_state link;
    struct bufferevent *bev; /* NULL: LINK_DOWN */
    struct wire wire;
    TAILQ_HEAD(, ask) asks; /* in the order of the answers */
    struct event *tick;
    int old[8]; /* connections that are kept open, see link_close() */
    size_t n_old;
    struct address other; /* which the last broker has named; host NULL: none */
    size_t next_broker, failures, hops;
    int64_t try_at_ms, dial_by_ms, beat_at_ms, beat_ms, ready_ms;
    int64_t tick_due_ms;
    int64_t excused_ms; /* until then no broker is silent: we were */
    int64_t bytes_ms;   /* when something was last read */
    int64_t heard_ms;   /* when the last request was sent that has been answered */
    bool broken;        /* a request could not be sent: the link is to be given up */
    char trouble[HF_TEXT_MAX];

    TAILQ_HEAD(, holdfast_lock) locks; /* in the order in which they were asked for */
    TAILQ_HEAD(, holdfast_lock) told;  /* those with something for tell() to do */
    size_t n_open;                     /* locks that have not ended */
    void *by_id, *by_token;            /* tsearch(3): locks that have not ended, parts */
    uint64_t last_id;
    struct event *teller;
    bool telling, freed;
};

int64_t hf_now_ms(void);
/* Has an event come in so many milliseconds, at once if they are over. Without memory it comes too
 * early, again and again: whoever hears it looks at the clock. */
void hf_set_timer(struct event *timer, int64_t left_ms);

/* Sees to it that there is a connection, or will be. */
void link_want(struct holdfast *h);
/* Asks; the answer goes to lock_answer(). */
void link_ask(struct holdfast *h, enum verb verb, struct holdfast_lock *lock, size_t part,
              struct words *words);
/* Asks the broker whether another one is to be used. */
void link_ask_role(struct holdfast *h);
/* Has the broker asked often enough for a hold of that validity. */
void link_beat_for(struct holdfast *h, int64_t validity_ms);
/* Closes the connection. In order, the broker releases what it holds for us; otherwise it is reset,
 * or kept open for a while, so that the broker releases nothing. */
void link_close(struct holdfast *h, bool in_order);
void link_on_tick(evutil_socket_t fd, short what, void *holdfast);

/* ---- lock ---- */

/* One name. */
struct part {
    struct holdfast_lock *lock;
    char *own_name;
    const char *name; /* the same; of a key to search by, lent */
    int64_t token;    /* 0: none */
    int64_t validity_ms, deadline_ms;
    bool in_tree;
};

struct holdfast_lock {
    TAILQ_ENTRY(holdfast_lock) next, next_told;
    struct holdfast *h;
    holdfast_callback callback;
    void *arg;
    struct event *timer;
    uint64_t id;
    char owner[HF_TEXT_MAX], tag[24];
    int64_t wait_ms, lease_ms, maxhold_ms, limit;
    bool shared, fair;

    enum holdfast_state state;
    int entered;
    int64_t sent_ms;      /* LOCK was */
    int64_t give_up_ms;   /* waiting, or giving back */
    int64_t due_ms;       /* when the timer was to fire */
    int64_t verify_by_ms; /* after a pause of ours: until then RENEW may be answered; 0: no pause */
    size_t n_asked;       /* answers that are due */
    size_t n_renewed;     /* parts that RENEW has confirmed, in this round */
    bool asked;           /* of what the state wants, on this connection */
    bool sent;            /* LOCK was, on whichever connection */
    bool taken;           /* held by this connection */
    bool confirming;      /* granted, but that lay unread for long: RENEW is to say whether it is */
    bool cancelled;       /* given back before the grant was told */
    bool doubt;           /* an UNLOCK before this one may have come through */
    bool relinked;        /* it was held over another connection before */
    bool recalled;        /* it was asked back in order to be released */
    bool wants_safe;      /* holdfast_renew() */
    bool has_new_token;   /* by a RENEW of this round */
    bool may_be_held;     /* it is lost to us, but the broker may not know */

    unsigned pending; /* events to be told, a bit each */
    bool is_told;     /* it is in h->told */
    bool told_granted, told_jeopardy;
    bool freed;
    char why[HF_TEXT_MAX];

    size_t n;
    struct part parts[];
};

/* Asks what its state wants, if the link is ready and it was not asked there yet. */
void lock_ask(struct holdfast_lock *l);
void lock_ask_unlock(struct holdfast_lock *l, struct holdfast_lock *who_hears);
void lock_ask_renew(struct holdfast_lock *l);
void lock_ask_cancel(struct holdfast_lock *l);
/* The connection is gone. */
void lock_unlinked(struct holdfast_lock *l);
/* Whether no connection of before holds it. */
bool lock_is_taken(const struct holdfast_lock *l);
/* No broker lets us in: what waits fails. */
void lock_denied(struct holdfast_lock *l, const char *why);
/* An answer, whose ask is not in the list any more. */
void lock_answer(const struct ask *ask, const redisReply *reply);
/* The end of a request with a tag, or news of a hold. */
void lock_push(struct holdfast *h, const redisReply *push);
void lock_release(struct holdfast_lock *l);
void lock_renew(struct holdfast_lock *l, int64_t lease_ms);
/* Gives up what a lost lock may still hold. */
void lock_forget(struct holdfast_lock *l);
void lock_on_timer(evutil_socket_t fd, short what, void *lock);
void lock_set_timer(struct holdfast_lock *l);
int64_t lock_deadline_ms(const struct holdfast_lock *l);

/* ---- holdfast ---- */

/* Has it told, or looked at whether it can be freed; soon. */
void hf_tell(struct holdfast_lock *l, enum holdfast_event event);
void hf_look_at(struct holdfast_lock *l);
/* Which lock has this tag, which part this name and token. NULL: none. */
struct holdfast_lock *hf_by_tag(struct holdfast *h, const char *tag);
struct part *hf_by_token(struct holdfast *h, const char *name, int64_t token);
/* Takes a part out and puts it in again under another token; 0: leaves it out. */
void hf_set_token(struct part *p, int64_t token);
/* Has the lock found by its tag. -1: no memory. */
int hf_list(struct holdfast_lock *l);
/* The lock has ended, and is found no more. */
void hf_unlist(struct holdfast_lock *l);
