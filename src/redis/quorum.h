#pragma once
/*
 * quorum: the votes of n masters on one question, and the token that they agree on.
 *
 * Arithmetic only. The majority is that of the configured masters, never of those that happen to be
 * connected (safety R3). Sources: the Redlock description (validity), and for tokens the rule of
 * multi-writer registers by Attiya, Bar-Noy and Dolev: the largest of a majority, written back to a
 * majority; here written back only where the hold is still there (safety R4).
 */
#include <stdbool.h>
#include <stdint.h>

enum { QUORUM_MASTERS_MAX = 15 };

enum quorum_state {
    QUORUM_PENDING, /* either way is still possible */
    QUORUM_WON,     /* a majority has said yes */
    QUORUM_LOST,    /* a majority cannot say yes any more */
};

struct quorum {
    uint8_t n; /* masters configured */
    uint8_t n_yes, n_no;
    uint16_t yes, no; /* bit i: master i; a master is in one of the two at most */
    uint8_t n_top;
    bool vetoed;
    int64_t top; /* largest token of those that said yes, and how many said that one */
};

static inline int quorum_need(int n)
{
    return n / 2 + 1;
}

void quorum_init(struct quorum *, int n);
/* The vote of master i. The first counts; a later one of the same master changes nothing. */
void quorum_yes(struct quorum *, int i, int64_t token);
void quorum_no(struct quorum *, int i);
/* It is lost, whatever anybody has said or says. */
void quorum_veto(struct quorum *);
enum quorum_state quorum_state(const struct quorum *);

/* The largest token among the yes votes; 0 when there is none. */
int64_t quorum_token(const struct quorum *);
/* True when a majority has said yes with exactly the largest token: no second round is needed. */
bool quorum_agreed(const struct quorum *);

/* How long a hold may be relied on, in ms from `now_ms`; <= 0: not at all. `sent_ms` is taken
 * before the first request was sent; `drift_ppm` is how much the rates of two clocks may differ, in
 * millionths. */
int64_t quorum_validity_ms(int64_t lease_ms, int64_t sent_ms, int64_t now_ms, int64_t drift_ppm);
/* The shortest lease that can be relied on for so long. */
int64_t quorum_lease_ms(int64_t validity_ms, int64_t drift_ppm);
