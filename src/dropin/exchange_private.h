#pragma once
/* Between the files of exchange: exchange.c leads it, exchange_ask.c says what the masters are
 * asked, exchange_truth.c reads what they have said, exchange_repair.c asks again where a hold is
 * missing. */
#include <sys/queue.h>

#include "dropin/exchange.h"
#include "lock/broker_state.h"

struct exchange;

/* What one master has said of one name. */
struct exchange_said {
    uint8_t kind;        /* enum exchange_said_kind */
    bool is_unasked;     /* NOTHING: it certainly has not heard of it */
    int64_t left_ms;     /* time to live, if it was asked for */
    int64_t line;        /* of an end: tickets in the line */
    struct truth *truth; /* SAID_OTHER: what stands there, pooled; else NULL */
};
enum exchange_said_kind {
    SAID_NOTHING,  /* not yet, or it could not be asked, or it may have done it */
    SAID_DONE,     /* what was guessed stood there until now */
    SAID_AS_GUESS, /* it stands there; another item was not as guessed */
    SAID_OTHER,
};

/* One name of an exchange. */
struct exchange_part {
    struct exchange *exchange;
    struct lock *lock;
    struct truth guess;
    uint8_t what; /* enum exchange_what */
    bool wants_time, keeps_time;
    bool guess_is_own; /* this broker has made its last change */
    bool won, agreed;  /* its first round: by a majority; which gave one token */
    bool doubted;      /* exchange_doubt(), since the last round of commit was sent */
    bool calls_up;     /* of an end that is confirmed: the next in the line is still to be called */
    uint8_t commits;
    uint32_t n_changes; /* of the lock, with this one */
    uint64_t op_number;
    char op[BROKER_OP_MAX + 1]; /* under which it is written; of an end: what its tombstone says.
                                 * "": nobody has asked for it yet (exchange_name_op) */
    struct truth_text *text;    /* the new state; NULL: none */
    int64_t lease_ms;
    int64_t floor, above;       /* token asked for; highest one granted here when it was */
    int64_t fence;              /* the token that it has got; of IN_PLACE: keeps */
    struct round *round;        /* NULL: all have answered */
    struct exchange_said *said; /* one a master; they stand behind the parts */
};

struct exchange {
    LIST_ENTRY(exchange) open; /* until it has ended */
    struct broker *broker;
    struct exchange_item *items; /* the caller's; until on_end */
    exchange_fn on_end;
    void *arg;
    int n;
    int n_pending; /* verdicts to come */
    int n_rounds;  /* not all have answered */
    bool ended, confirmed;
    char *why;       /* "NOQUORUM ...", heap: why it has failed; NULL: it has not */
    uint64_t number; /* of its first operation */
    int64_t sent_ms;
    struct exchange_part parts[];
};

/* ---- exchange_ask.c ---- */
/* Writes its operation as text, if that has not been done: most ends and looks do without. */
void exchange_name_op(struct exchange_part *);
/* Ask a round of exchange.lua for this name, or a round of commit.lua for its `fence`. */
struct round *exchange_ask(struct exchange_part *, round_fn, int64_t now_ms);
void exchange_commit(struct exchange_part *, round_fn, int64_t now_ms);
/* Undoes it where it has been done, or may have been. `pursues`: an end goes on instead. */
void exchange_undo(struct exchange_part *, bool pursues, int64_t now_ms);
/* Makes what was confirmed good where it was missed: a change, or what was looked at. */
void exchange_heal(struct exchange_part *, int64_t now_ms);
/* Puts it over the hold of this operation, which is of nobody, at master i. */
void exchange_heal_over_rival(struct exchange_part *, int i, const char *op, int64_t now_ms);
/* Tells whether this broker has asked for another change there. */
bool exchange_is_superseded(const struct exchange_part *);

/* ---- exchange_repair.c ---- */
/* Takes note of which masters have what was confirmed, when all have answered that ever will. */
void exchange_repair_note(struct exchange_part *, int64_t now_ms);

/* ---- exchange_truth.c ---- */
/* Forgets what a master has said. */
void exchange_forget(struct exchange_said *);
/* Notes what master i has answered. */
void exchange_note(struct exchange_part *, int i, const struct master_answer *);
/* Tells whether a majority says one thing; writes what it says, or SPLIT. */
bool exchange_is_known(const struct exchange_part *);
void exchange_judge(const struct exchange_part *, struct truth *out);
/* Writes what stands there once it is confirmed. */
void exchange_result(const struct exchange_part *, struct truth *out);
/* Count the masters that have done it, and those that say that something else stands there. */
int exchange_count_done(const struct exchange_part *);
int exchange_count_held(const struct exchange_part *);
/* Master i has done it, or may have: it was asked, and has not said otherwise. */
bool exchange_may_have_done(const struct exchange_part *, int i);
int exchange_count_may_have_done(const struct exchange_part *);
