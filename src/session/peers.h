#pragma once
/*
 * peers: which broker clients are sent to: this one, or another in front of the same masters. Pure:
 * it is told the time.
 *
 *   SELF --it cannot grant, and a peer is well--> that peer --another one is, that is not-->
 * another ^                                              |
 *    +----------------------------------------------+
 *      it can grant again, or no peer is well
 *
 * A broker that has lost its majority is given PEERS_PATIENCE_MS to find it again before clients
 * are sent away; one that drains or is paused sends them away at once. What a peer has said counts
 * for PEERS_WORD_MS. This decides where clients connect to and nothing else: to be wrong costs them
 * a detour and never a lock.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
    PEERS_MAX = 15,
    PEERS_HOST_MAX = 253,
    PEERS_SELF = -1,
    PEERS_PATIENCE_MS = 2000,
    PEERS_WORD_MS = 3000
};

struct peers_address {
    char host[PEERS_HOST_MAX + 1];
    bool tls; /* of a peer: it is asked over TLS */
    int port; /* 0: none */
};

/* What a peer has said of itself; GONE: its link has broken. */
enum peers_word { PEERS_GONE, PEERS_SICK, PEERS_WELL };

struct peer {
    struct peers_address address;
    uint8_t word;     /* enum peers_word */
    int64_t heard_ms; /* when */
    int64_t spoke_ms; /* when it last said something; 0: never */
    bool is_up;       /* it was well when that was last judged */
};

/* What this broker can do. */
enum peers_own { PEERS_GRANTS, PEERS_LACKS_QUORUM, PEERS_LEAVES };

struct peers {
    struct peers_address own; /* where clients reach this broker; port 0: where they have come */
    int n;
    struct peer v[PEERS_MAX];
    uint8_t state;           /* enum peers_own */
    int64_t lacked_since_ms; /* in PEERS_LACKS_QUORUM */
    int named;               /* index of a peer, or PEERS_SELF */
};

/* A message for those who wait to be told where to go. */
struct peers_move {
    struct peers_address from, to;
};
enum { PEERS_MOVES_MAX = PEERS_MAX + 1 };

void peers_init(struct peers *);
/* Takes other addresses; `own` among the others is passed over. What was known of the others is
 * forgotten, and this broker is named until that is judged again. */
void peers_configure(struct peers *, const struct peers_address *own,
                     const struct peers_address *others, int n);
void peers_hear(struct peers *, int i, enum peers_word, int64_t now_ms);
void peers_set_own(struct peers *, enum peers_own, int64_t now_ms);
/* Judges anew who is named. Writes what there is to tell: from who was named to who is now, and
 * from each other peer that has fallen. Returns how many. */
int peers_judge(struct peers *, int64_t now_ms, struct peers_move out[PEERS_MOVES_MAX]);

/* Returns the address of who is named; NULL: this one, wherever the client has come. */
const struct peers_address *peers_named(const struct peers *);
/* Tells whether a peer answers, well or not. */
bool peers_speaks(const struct peers *, int i, int64_t now_ms);
/* Tells whether this broker can grant. */
bool peers_is_well(const struct peers *);
bool peers_is_same(const struct peers_address *, const struct peers_address *);
