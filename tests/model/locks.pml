/*
 * locks: the protocol between brokers and masters for one name, for spin. README.md says in plain words what is here
 * and what is not; run.sh has the list of configurations and of the rules that can be taken out.
 *
 * Three masters, OPS operations, each asked by a broker of its own. One process does one step at a time, any that is
 * possible. The network is the worst there is: what has been asked once may arrive at each master at any later time,
 * any number of times or never, and its answer may be lost. Time is a set of events: a key may expire only after the
 * deadline of the hold it stands for (the holder's clock starts before the question is sent, the key's when it
 * arrives), with at most EARLY exceptions.
 *
 * Parts (-D): RESTART  RENEW (of operation 0)  HANDOVER or TAKEOVER (operation 1, of 0)  TOMBS  EARLY=1
 * Other assumptions: PROMPT  NO_LATE_ACQUIRE  FOREIGN_LOSES; another property: NEWEST
 * A rule that is taken out: NO_..., see there.
 */
#ifndef OPS
#define OPS 2
#endif
#ifndef TOP
#define TOP 5 /* no counter goes beyond it */
#endif
#ifndef START
#define START 1 /* counters begin anywhere up to it */
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* of renewal */
#endif
#ifdef NO_CONFIGURED_QUORUM
#define NEED 1 /* the majority of those that are connected, and that is one */
#else
#define NEED 2
#endif

/* Of an operation */
#define IDLE 0
#define ASKING 1
#define COMMITTING 2
#define HELD 3
#define ENDED 4  /* released, undone, or its time is over: its keys may go */
#define WAITING 5 /* NO_END_BY_HANDOVER: the old owner waits for what becomes of it */
byte st[OPS];
byte token[OPS];  /* of the commit round, then of the hold */
byte token1[OPS]; /* of an earlier commit round: its requests may still arrive */
byte begun[OPS];  /* highest token granted when it was asked */
byte votes[OPS * 3]; /* token that this master has answered and the broker has seen; 0: none */

/* Of a master */
byte key[3];  /* operation + 1, 0: free */
byte tok[3];  /* token in the hold */
byte cnt[3];  /* counter */
byte oks[3];  /* operations of whose commit round it has a vote, as bits */

byte hi;     /* highest token granted */
int given;   /* all of them, as bits */
byte early = EARLY;
#if defined(NO_FRESH_ID) || defined(NO_DEADLINE)
byte loose;  /* operations whose keys may go though they have not ended, as bits */
#define GOES(o) (st[o] == ENDED || (loose >> (o) & 1))
#else
#define GOES(o) (st[o] == ENDED)
#endif

/* ---- restart: of master 2, once ---- */
#ifdef RESTART
#define ACTIVE 0
#define QUARANTINE 1
#define RECOVER 2 /* its time is over, the others are asked for their counters */
#define AGAIN 3   /* active */
byte phase, before /* operations asked before it, as bits */, asked /* masters, as bits */, base;
#define VOTES(m) ((m) != 2 || phase == ACTIVE || phase == AGAIN)
#ifdef NO_RUN_ID
#define REACHES(o, m) true
#else
#define REACHES(o, m) ((m) != 2 || !(before >> (o) & 1))
#endif
#else
#define VOTES(m) true
#define REACHES(o, m) true
#endif

/* ---- renewal of operation 0 ---- */
#ifdef RENEW
#ifdef NO_END_BY_DEADLINE
#define RENEWING (st[0] == HELD || st[0] == WAITING)
#else
#define RENEWING (st[0] == HELD)
#endif
byte sent;      /* rounds sent: the last one's number; 0 is the grant */
byte confirmed; /* the last that had a majority: the promise */
byte over;      /* the promises of all rounds below it are over */
byte said[3];   /* the answers of this round */
#define YES 1
#define MISSING 2
#define FOREIGN 3
byte upto[3];   /* of a key of operation 0: the round that it has been extended by */
byte plant[3];  /* a plant is under way: 1 + the round after which it was sent */
bit passed;       /* a newer token has been granted since operation 0 was */
bit rival, newer; /* when this round began: did the newer one hold? passed */
#ifdef RESTART
byte sent_before;
#endif
#endif

/* ---- tombstones ---- */
#ifdef TOMBS
byte gone[3];     /* operations with a tombstone there, as bits */
byte released[3]; /* operations whose release has been confirmed from there: never forgotten */
#define MAY_CREATE(o, m) (NO_TOMB || !(gone[m] >> (o) & 1))
#define TOMB(o, m) gone[m] = gone[m] | 1 << (o)
#ifndef NO_TOMB
#define NO_TOMB false
#endif
#else
#define MAY_CREATE(o, m) true
#define TOMB(o, m) skip
#endif

/* ---- what an acquire may replace ---- */
#ifdef HANDOVER
#define FREE(o, m) (key[m] == 0 || ((o) == 1 && key[m] == 1))
#else
#ifdef TAKEOVER
#define FREE(o, m) ((o) == 1 -> key[m] == 1 : key[m] == 0)
#else
#define FREE(o, m) (key[m] == 0)
#endif
#endif
#ifdef TAKEOVER
#define SAME_OWNER(a, b) ((a) < 2 && (b) < 2)
#else
#define SAME_OWNER(a, b) ((a) == (b))
#endif

/* ---- the properties ---- */
#define HOLDS_BESIDE(o, p) (st[p] == HELD && !SAME_OWNER(o, p))
#if OPS == 3
#define HELD_BY_OTHERS(o) (HOLDS_BESIDE(o, 0) || HOLDS_BESIDE(o, 1) || HOLDS_BESIDE(o, 2))
#else
#define HELD_BY_OTHERS(o) (HOLDS_BESIDE(o, 0) || HOLDS_BESIDE(o, 1))
#endif

inline granted(o)
{
    assert(!(given >> token[o] & 1)); /* unique */
    assert(token[o] > begun[o]);      /* above all that were granted before this was asked */
#if EARLY == 0
    assert(!HELD_BY_OTHERS(o));       /* exclusion */
    assert(token[o] > hi);            /* in the order of the holds */
#endif
    given = given | 1 << token[o];
    hi = (token[o] > hi -> token[o] : hi);
    st[o] = HELD;
#ifdef RENEW
    passed = (o != 0 && RENEWING && (passed || token[o] > token[0]));
#endif
    clear_votes(o);
#ifdef TAKEOVER
    if
    :: o == 1 -> st[0] = ENDED
    :: else
    fi
#endif
#ifdef NO_END_BY_HANDOVER
    if
    :: o == 1 -> st[0] = ENDED
    :: else
    fi
#endif
}

inline clear_votes(o)
{
    votes[(o) * 3] = 0; votes[(o) * 3 + 1] = 0; votes[(o) * 3 + 2] = 0;
    oks[0] = oks[0] & ~(1 << (o)); oks[1] = oks[1] & ~(1 << (o)); oks[2] = oks[2] & ~(1 << (o))
}

inline create(o, m)
{
#ifdef TOMBS
    assert(!(released[m] >> (o) & 1)); /* what has been released does not come back */
#endif
#ifdef NO_NEW_TOKEN
    if
    :: key[m] == 0 -> cnt[m] = cnt[m] + 1; tok[m] = cnt[m]
    :: else
    fi;
#else
    cnt[m] = cnt[m] + 1;
    tok[m] = cnt[m];
#endif
#ifdef RENEW
    upto[m] = 0;
#endif
#if defined(TOMBS) && (defined(HANDOVER) || defined(TAKEOVER))
    if
    :: key[m] == 1 && o == 1 -> TOMB(0, m)
    :: else
    fi;
#endif
#ifdef NO_NEW_ID
    if
    :: key[m] == 0 -> key[m] = o + 1
    :: else
    fi
#else
    key[m] = o + 1
#endif
}

#ifdef NO_NEW_ID
#define OURS(o, m) (key[m] == (o) + 1 || ((o) == 1 && key[m] == 1 && tok[m] > token[0]))
#else
#define OURS(o, m) (key[m] == (o) + 1)
#endif

/* ---- the steps of one operation ---- */

#define VOTE(o, m) votes[(o) * 3 + (m)]
#define VOTED(o) ((VOTE(o, 0) > 0) + (VOTE(o, 1) > 0) + (VOTE(o, 2) > 0))
#define MAX2(a, b) ((a) > (b) -> (a) : (b))
#define HIGHEST(o) MAX2(VOTE(o, 0), MAX2(VOTE(o, 1), VOTE(o, 2)))
#define AGREE(o) ((VOTE(o, 0) == HIGHEST(o)) + (VOTE(o, 1) == HIGHEST(o)) + (VOTE(o, 2) == HIGHEST(o)))
#define OK(o) ((oks[0] >> (o) & 1) + (oks[1] >> (o) & 1) + (oks[2] >> (o) & 1))

#if defined(HANDOVER)
#define MAY_ASK(o) ((o) == 0 || ((o) == 1 -> st[0] == HELD : st[0] != IDLE))
#else
#if defined(TAKEOVER)
#define MAY_ASK(o) ((o) == 0 || st[0] != IDLE)
#else
/* Nothing tells one operation from the other: 1 begins after 0. */
#define MAY_ASK(o) ((o) == 0 || st[(o) - 1] != IDLE)
#endif
#endif

#ifdef TAKEOVER
/* Its keys last as long as the hold that it takes over, and longer: the same lease, from a later time. */
#ifdef NO_LASTING_LEASE
#define MAY_END(o) true
#else
#define MAY_END(o) ((o) != 1 || st[1] == HELD || st[0] == ENDED)
#endif
#else
#define MAY_END(o) true
#endif
#define ENDS(o) (st[o] == ASKING || st[o] == COMMITTING || st[o] == HELD || st[o] == WAITING)

inline raise(o, t)
{
    token1[o] = token[o];
    token[o] = t;
    oks[0] = oks[0] & ~(1 << (o)); oks[1] = oks[1] & ~(1 << (o)); oks[2] = oks[2] & ~(1 << (o))
}

inline commit_at(o, m, t)
{
#ifdef NO_COMMIT_CONDITION
    cnt[m] = MAX2(cnt[m], t)
#else
    tok[m] = t;
    cnt[m] = MAX2(cnt[m], t)
#endif
}

#ifdef NO_COMMIT_CONDITION
#define MAY_COMMIT(o, m, t) VOTES(m)
#else
#ifdef NO_RAISE
#define MAY_COMMIT(o, m, t) (VOTES(m) && OURS(o, m))
#else
#define MAY_COMMIT(o, m, t) (VOTES(m) && OURS(o, m) && tok[m] <= (t))
#endif
#endif

#define ASK(o)                                                                                                      \
    :: d_step { st[o] == IDLE && MAY_ASK(o) -> st[o] = ASKING; begun[o] = hi; ASK_EXTRA(o) }
#define CREATE_SEEN(o, m)                                                                                           \
    :: d_step { st[o] == ASKING && VOTE(o, m) == 0 && VOTES(m) && REACHES(o, m) && FREE(o, m) && cnt[m] < TOP &&    \
                    MAY_CREATE(o, m) -> create(o, m); VOTE(o, m) = tok[m] }
#define CREATE_UNSEEN(o, m)                                                                                         \
    :: d_step { ARRIVES(o) && VOTES(m) && REACHES(o, m) && FREE(o, m) && cnt[m] < TOP && MAY_CREATE(o, m) ->     \
                    create(o, m) }
#define SEE(o, m)                                                                                                   \
    :: d_step { st[o] == ASKING && VOTE(o, m) == 0 && VOTES(m) && REACHES(o, m) && OURS(o, m) ->                    \
                    VOTE(o, m) = tok[m] }
#ifdef NO_LATE_ACQUIRE /* smaller: an acquire arrives before its claim is decided or never */
#define ARRIVES(o) (st[o] == ASKING)
#else
#define ARRIVES(o) (st[o] != IDLE)
#endif
#define DECIDE(o)                                                                                                   \
    :: d_step { st[o] == ASKING && VOTED(o) >= NEED ->                                                              \
        token[o] = HIGHEST(o);                                                                                      \
        if                                                                                                          \
        :: AGREE(o) >= NEED -> granted(o)                                                                           \
        :: else -> clear_votes(o); st[o] = COMMITTING                                                               \
        fi }
#define COMMIT_SEEN(o, m)                                                                                           \
    :: d_step { st[o] == COMMITTING && !(oks[m] >> (o) & 1) && MAY_COMMIT(o, m, token[o]) ->                        \
                    commit_at(o, m, token[o]); oks[m] = oks[m] | 1 << (o) }
#define COMMIT_UNSEEN(o, m)                                                                                         \
    :: d_step { (st[o] == COMMITTING || COMMITS_LATE(o)) && MAY_COMMIT(o, m, token[o]) && tok[m] != token[o] ->     \
                    commit_at(o, m, token[o]) }                                                                     \
    :: d_step { (st[o] == COMMITTING || COMMITS_LATE(o)) && token1[o] && MAY_COMMIT(o, m, token1[o]) &&             \
                    tok[m] != token1[o] -> commit_at(o, m, token1[o]) }
#define COMMIT_LARGER(o, m)                                                                                         \
    :: d_step { st[o] == COMMITTING && VOTES(m) && OURS(o, m) && tok[m] > token[o] -> raise(o, tok[m]) }
#define COMMITTED(o)                                                                                                \
    :: d_step { st[o] == COMMITTING && OK(o) >= NEED -> granted(o) }
#define END(o)                                                                                                      \
    :: d_step { ENDS(o) && MAY_END(o) -> END_EXTRA(o); st[o] = ENDED; clear_votes(o) }
#define DELETE(o, m)                                                                                                \
    :: d_step { GOES(o) && key[m] == (o) + 1 -> key[m] = 0; tok[m] = 0; DELETE_EXTRA(o, m) }
#define EXPIRE_EARLY(m)                                                                                             \
    :: d_step { early > 0 && key[m] != 0 -> early = early - 1; key[m] = 0; tok[m] = 0 }

/* A commit that is on its way when its operation ends still finds its hold, if that is there. */
#ifdef NO_COMMIT_CONDITION
#define COMMITS_LATE(o) false
#else
#define COMMITS_LATE(o) ((st[o] == HELD || st[o] == ENDED) && token[o] != 0)
#endif

/* ---- what the parts add to these steps ---- */
#if defined(HANDOVER)
#ifdef NO_END_BY_HANDOVER
#define ASK_EXTRA(o) if :: (o) == 1 -> st[0] = WAITING :: else fi
#define END_EXTRA(o)                                                                                                \
    if :: (o) == 1 && st[0] == WAITING -> assert(!HELD_BY_OTHERS(0)); st[0] = HELD :: else fi
#else
#define ASK_EXTRA(o) if :: (o) == 1 -> st[0] = ENDED :: else fi
#define END_EXTRA(o) skip
#endif
#else
#define ASK_EXTRA(o) skip
#define END_EXTRA(o) skip
#endif
#ifdef TOMBS
#define DELETE_EXTRA(o, m) TOMB(o, m); released[m] = released[m] | 1 << (o)
#define BURY(o, m)                                                                                                  \
    :: d_step { st[o] == ENDED && key[m] != (o) + 1 && !(released[m] >> (o) & 1) -> TOMB(o, m);                     \
                    released[m] = released[m] | 1 << (o) }
#else
#define DELETE_EXTRA(o, m) skip
#define BURY(o, m)
#endif

#ifdef NO_UNDO_CONDITION
#define UNDO_ALL(o, m) :: d_step { st[o] == ENDED && key[m] != 0 -> key[m] = 0; tok[m] = 0 }
#else
#define UNDO_ALL(o, m)
#endif
#ifdef NO_FRESH_ID /* asked again under the id that is being undone */
#define REUSE(o)                                                                                                    \
    :: d_step { (st[o] == ASKING || st[o] == COMMITTING) && !(loose >> (o) & 1) -> st[o] = ASKING; begun[o] = hi;    \
                    clear_votes(o); token[o] = 0; token1[o] = 0; loose = loose | 1 << (o) }
#else
#define REUSE(o)
#endif
#ifdef NO_DEADLINE /* its time is over, its keys go, and it is granted all the same */
#define TOO_LATE(o) :: d_step { (st[o] == ASKING || st[o] == COMMITTING) -> loose = loose | 1 << (o) }
#else
#define TOO_LATE(o)
#endif
#ifdef NO_KEEPING /* a take-over that fails is undone */
#define TAKE_UNDO :: d_step { st[1] == ASKING || st[1] == COMMITTING -> st[1] = ENDED; clear_votes(1) }
#else
#define TAKE_UNDO
#endif

#define AT(o, m)                                                                                                    \
    CREATE_SEEN(o, m) CREATE_UNSEEN(o, m) SEE(o, m) COMMIT_SEEN(o, m) COMMIT_UNSEEN(o, m) COMMIT_LARGER(o, m)       \
    DELETE(o, m) BURY(o, m) UNDO_ALL(o, m)
#define OPERATION(o)                                                                                                \
    ASK(o) DECIDE(o) COMMITTED(o) END(o) REUSE(o) TOO_LATE(o) AT(o, 0) AT(o, 1) AT(o, 2)

/* ---- restart ---- */
#ifdef RESTART
#define STARTED(o) (st[o] != IDLE) << (o)
#if OPS == 3
#define ALL_STARTED (STARTED(0) | STARTED(1) | STARTED(2))
#define ALL_OVER (IS_OVER(0) && IS_OVER(1) && IS_OVER(2))
#else
#define ALL_STARTED (STARTED(0) | STARTED(1))
#define ALL_OVER (IS_OVER(0) && IS_OVER(1))
#endif
#ifdef NO_QUARANTINE
#define IS_OVER(o) true
#else
#ifdef RENEW
#define IS_OVER(o) (!(before >> (o) & 1) || st[o] == ENDED || ((o) == 0 && over > sent_before))
#else
#define IS_OVER(o) (!(before >> (o) & 1) || st[o] == ENDED)
#endif
#endif
#ifdef NO_LATE_FLOOR /* the others are asked at the start of the quarantine */
#define MAY_READ (phase == QUARANTINE)
#else
#define MAY_READ (phase == RECOVER)
#endif
#ifdef NO_FLOOR
#define READ_ENOUGH true
#else
#ifdef NO_FLOOR_MAJORITY
#define READ_ENOUGH (asked != 0)
#else
#define READ_ENOUGH (asked == 3)
#endif
#endif
#define READ(m)                                                                                                     \
    :: d_step { MAY_READ && !(asked >> (m) & 1) -> asked = asked | 1 << (m); base = MAX2(base, cnt[m]) }
#define RESTARTS                                                                                                    \
    :: d_step { phase == ACTIVE && st[0] != IDLE -> phase = QUARANTINE; before = ALL_STARTED; key[2] = 0;            \
                    tok[2] = 0; cnt[2] = 0; RESTART_EXTRA }                                                         \
    :: d_step { phase == QUARANTINE && ALL_OVER -> phase = RECOVER }                                                \
    READ(0) READ(1)                                                                                                 \
    :: d_step { phase == RECOVER && READ_ENOUGH -> phase = AGAIN; cnt[2] = MAX2(cnt[2], base); base = 0; asked = 0 }
#else
#define RESTARTS
#endif
#ifdef TOMBS
#define RESTART_TOMBS gone[2] = 0
#else
#define RESTART_TOMBS skip
#endif
#ifdef RENEW
#define RESTART_EXTRA RESTART_TOMBS; plant[2] = 0; sent_before = sent; upto[2] = 0
#else
#define RESTART_EXTRA RESTART_TOMBS
#endif

/* ---- renewal ---- */
#ifdef RENEW
#define SAID(what) ((said[0] == what) + (said[1] == what) + (said[2] == what))
#ifdef NO_QUARANTINE_SILENCE /* a key on a master in quarantine counts */
#define RENEWS(m) true
#else
#define RENEWS(m) VOTES(m)
#endif
#ifdef RESTART
#define QUARANTINED(m) ((m) == 2 && !VOTES(m))
#else
#define QUARANTINED(m) false
#endif
#ifdef NO_PLANT_CONDITION
#define PLANTABLE true
#else
#define PLANTABLE (sent > 0 && confirmed == sent)
#endif
#ifdef NO_QUARANTINE_CONDITION
#define Q_PLANTABLE true
#else
#define Q_PLANTABLE PLANTABLE
#endif
#ifdef FOREIGN_LOSES /* the literal rule */
#define ON_FOREIGN st[0] = ENDED
#else
#define ON_FOREIGN skip
#endif
#ifdef NO_PLANT_SILENCE /* a planted key counts in its own round */
#define PLANT_SAYS(m) if :: RENEWING && said[m] == MISSING && plant[m] == sent + 1 -> said[m] = YES :: else fi
#else
#define PLANT_SAYS(m) skip
#endif
#ifdef NO_END_BY_DEADLINE /* a renewal brings a hold back */
#define PROMISE_ENDS if :: st[0] == HELD -> st[0] = WAITING :: else -> st[0] = ENDED; clear_votes(0) fi
#else
#define PROMISE_ENDS st[0] = ENDED; clear_votes(0)
#endif
inline confirm()
{
#if EARLY == 0
    assert(!HELD_BY_OTHERS(0));
#endif
    assert(!(rival && HELD_BY_OTHERS(0))); /* a newer one that held when the round began does not hold still */
#ifdef NEWEST
    assert(!newer);                        /* nor has anybody had a newer token */
#endif
    confirmed = sent;
    st[0] = HELD
}

inline planted(m)
{
#ifdef TOMBS
    assert(!(released[m] & 1));
#endif
    key[m] = 1;
    tok[m] = token[0];
    upto[m] = plant[m] - 1;
    cnt[m] = MAX2(cnt[m], token[0]);
    PLANT_SAYS(m)
}

#define RENEWAL_AT(m)                                                                                               \
    :: d_step { RENEWING && sent > 0 && RENEWS(m) && said[m] == 0 && key[m] == 1 -> said[m] = YES;              \
                    upto[m] = sent }                                                                                \
    :: d_step { RENEWING && sent > 0 && RENEWS(m) && key[m] == 1 && upto[m] < sent -> upto[m] = sent }          \
    :: d_step { RENEWING && sent > 0 && RENEWS(m) && said[m] == 0 && key[m] == 0 -> said[m] = MISSING }         \
    :: d_step { RENEWING && sent > 0 && RENEWS(m) && said[m] == 0 && key[m] > 1 -> said[m] = FOREIGN;           \
                    ON_FOREIGN }                                                                                    \
    PLANT(m)                                                                                                        \
    :: d_step { key[m] == 1 && upto[m] < over && st[0] != ENDED -> key[m] = 0; tok[m] = 0 }
#ifdef NO_PLANT_TOMB
#define PLANT_TOMB(m) true
#else
#define PLANT_TOMB(m) MAY_CREATE(0, m)
#endif
#define MAY_PLANT(m) (RENEWING && ((said[m] == MISSING && PLANTABLE) || (QUARANTINED(m) && Q_PLANTABLE)))
#ifdef PROMPT /* a plant arrives at once or never, and nobody else is granted while its round lasts */
#define PLANT(m)                                                                                                    \
    :: d_step { MAY_PLANT(m) && newer == passed && key[m] == 0 && MAY_CREATE(0, m) -> plant[m] = sent + 1; planted(m); plant[m] = 0 }
#else
#define PLANT(m)                                                                                                    \
    :: d_step { MAY_PLANT(m) && plant[m] <= sent -> plant[m] = sent + 1 }                                           \
    :: d_step { plant[m] > 0 && key[m] == 0 && PLANT_TOMB(m) -> planted(m) }
#endif
#define RENEWAL                                                                                                     \
    :: d_step { RENEWING && sent < ROUNDS -> sent = sent + 1; said[0] = 0; said[1] = 0;   \
                    said[2] = 0; rival = passed && HELD_BY_OTHERS(0); newer = passed }                                 \
    :: d_step { RENEWING && confirmed < sent && SAID(YES) >= NEED -> confirm() }                               \
    :: d_step { (st[0] == ASKING || st[0] == COMMITTING || RENEWING) && over <= sent -> over = over + 1;        \
        if :: over > confirmed -> PROMISE_ENDS :: else fi }                                                         \
    RENEWAL_AT(0) RENEWAL_AT(1) RENEWAL_AT(2)
#else
#define RENEWAL
#endif
/* Masters are alike: of states that differ only in their order one is enough. */
#define SWAP(a, i, j) x = a[i]; a[i] = a[j]; a[j] = x
#define WEIGHT(m) (((((key[m] << 4 | tok[m]) << 4 | cnt[m]) << 4 | VOTE(0, m)) << 4 | VOTE(1, m)) << 3 | oks[m])
#ifdef RENEW
#define SWAP_RENEW(i, j) SWAP(said, i, j); SWAP(upto, i, j); SWAP(plant, i, j)
#define WEIGHT2(m) ((said[m] << 4 | upto[m]) << 4 | plant[m])
#else
#define SWAP_RENEW(i, j) skip
#define WEIGHT2(m) 0
#endif
#ifdef TOMBS
#define SWAP_TOMBS(i, j) SWAP(gone, i, j); SWAP(released, i, j)
#define WEIGHT3(m) (gone[m] << 4 | released[m])
#else
#define SWAP_TOMBS(i, j) skip
#define WEIGHT3(m) 0
#endif
#if OPS == 3
#define SWAP_VOTES(i, j) SWAP(votes, i, j); SWAP(votes, 3 + i, 3 + j); SWAP(votes, 6 + i, 6 + j)
#define WEIGHT4(m) VOTE(2, m)
#else
#define SWAP_VOTES(i, j) SWAP(votes, i, j); SWAP(votes, 3 + i, 3 + j)
#define WEIGHT4(m) 0
#endif
#ifdef RESTART
#define SWAP_ASKED(i, j)                                                                                            \
    if :: asked == 1 -> asked = 2 :: asked == 2 -> asked = 1 :: else fi
#else
#define SWAP_ASKED(i, j) skip
#endif
byte x;
inline in_order(i, j)
{
    if
    :: WEIGHT(i) > WEIGHT(j) ||
           (WEIGHT(i) == WEIGHT(j) &&
            (WEIGHT2(i) > WEIGHT2(j) ||
             (WEIGHT2(i) == WEIGHT2(j) &&
              (WEIGHT3(i) > WEIGHT3(j) || (WEIGHT3(i) == WEIGHT3(j) && WEIGHT4(i) > WEIGHT4(j)))))) ->
        SWAP(key, i, j); SWAP(tok, i, j); SWAP(cnt, i, j); SWAP(oks, i, j);
        SWAP_VOTES(i, j);
        SWAP_RENEW(i, j);
        SWAP_TOMBS(i, j);
        SWAP_ASKED(i, j);
        x = 0
    :: else
    fi
}

active proctype protocol()
{
    do
    :: cnt[0] < START -> cnt[0] = cnt[0] + 1
    :: cnt[1] < START -> cnt[1] = cnt[1] + 1
    :: cnt[2] < START -> cnt[2] = cnt[2] + 1
    :: break
    od;
    do
    :: atomic {
        if
        OPERATION(0)
        OPERATION(1)
#if OPS == 3
        OPERATION(2)
#endif
        EXPIRE_EARLY(0) EXPIRE_EARLY(1) EXPIRE_EARLY(2)
        TAKE_UNDO
        RESTARTS
        RENEWAL
        fi;
#ifndef NAMED /* keep the masters apart: for trails that people read */
        d_step {
            in_order(0, 1);
#ifndef RESTART
            in_order(1, 2);
            in_order(0, 1)
#endif
        }
#endif
       }
    od
}
