/*
 * outage: masters that lose their data while holds run, and brokers that put the holds back from memory and then open the
 * masters by a roll call, for spin. README.md says in plain words what is here and what is not; run.sh has the list of
 * configurations and of the rules that can be taken out.
 *
 * One lock, one or three masters, OPS operations, two or three brokers. One process does one step at a time, any that is
 * possible. Any master may restart at any time, RESTARTS times in all, empty or with an earlier copy of its data (COPIES).
 * A request may arrive at any later time or never, its answer may be lost, and a broker may decide as late as it likes.
 * Time is a set of events: operation o has asked for sent[o] rounds, the first of which is its claim. Each is a promise;
 * those up to over[o] have ended, and only then may a key that was written for them expire.
 *
 * Parts (-D): RENEWED=mask of operations (the others have asked for a lease)   TAKEOVER (operation 1, of 0)   FORCE (of 0)   CRASHES=1   LIST=mask of brokers
 * HANDOVER (operation 0 to operation 1, which waits at the same broker)
 * ONE_NAME (both brokers are processes of the same name, broker 1 the later one, and one signature opens a master)
 * SECOND_FIRST (of two operations broker 1 asks for the first)
 * PROMOTION (one master, two brokers: another server becomes the master, and broker 0 is cut off together with the old one)
 * CLUSTER (with PROMOTION: the masters of a Redis Cluster elect it)   EPOCHS (what they have voted for is asked for, too)
 * A rule that is taken out: NO_..., see there.
 */
#ifndef MASTERS
#define MASTERS 1
#endif
#define NEED (MASTERS / 2 + 1)
#ifndef OPS
#define OPS 3
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef COPIES
#define COPIES 0 /* of the data of a master, that it may restart with */
#endif
#ifndef CRASHES
#define CRASHES 0 /* of brokers */
#endif
#ifndef RENEWED
#define RENEWED 1
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* of renewal */
#endif
#ifndef BROKERS
#define BROKERS 2
#endif
#ifndef START
#define START 0 /* counters begin anywhere up to it */
#endif
#ifndef LIST
#define LIST (BIT(BROKERS) - 1) /* brokers whose signatures open a master; 0: there is no roll call */
#endif

#define BIT(i) (1 << (i))
#define HAS(mask, i) ((mask) >> (i) & 1)
#define MAX2(a, b) ((a) > (b) -> (a) : (b))
#define AT(o, m) ((o) * MASTERS + (m))
/* Operation 0 is broker 0's, the next one broker 1's, and so is the third unless there is a third broker. */
#ifdef SECOND_FIRST
#define BROKER(o) (1 - (o))
#elif defined(HANDOVER)
#define BROKER(o) ((o) == 2 -> 1 : 0)
#elif defined(PROMOTION) || defined(ONE_NAME)
#define BROKER(o) ((o) == 1 -> 1 : 0)
#else
#define BROKER(o) ((o) < BROKERS -> (o) : BROKERS - 1)
#endif
#ifdef TAKEOVER
#define SAME_OWNER(a, b) ((a) < 2 && (b) < 2)
#else
#define SAME_OWNER(a, b) ((a) == (b))
#endif

/* Of an operation */
#define IDLE 0
#define ASKING 1
#define COMMITTING 2
#define HELD 3
#define ORPHAN 4 /* its broker has crashed; its client goes on believing until the promise is over */
#define ENDED 5
byte st[OPS];
byte token[OPS];
byte sent[OPS];  /* rounds */
byte told[OPS];  /* the last that was confirmed: its client believes as long as that promise runs */
byte over[OPS];  /* promises up to this round are over */
byte rivals[OPS]; /* operations with newer tokens that held when the last round began, as bits */

/* What a broker has of a master's answers. Of votes: the token it answered. As bits of operations: */
byte vote[OPS * MASTERS];
byte oks[MASTERS];     /* commits */
byte yes[MASTERS];     /* renewals, of the last round */
byte old[MASTERS];     /* these votes and commits are of a former life */
byte old_yes[MASTERS]; /* these renewals */

/* What is on its way to a master, as bits of operations */
byte asked[MASTERS];   /* acquires */
byte planted[MASTERS]; /* plants of holds that have ended since */

/* Of a master */
byte key[MASTERS];  /* operation + 1; 0: free */
byte tok[MASTERS];  /* token in the hold */
byte upto[MASTERS]; /* round by which its time to live was given */
byte cnt[MASTERS];  /* counter */
bit quarantine[MASTERS];
bit fresh[MASTERS];   /* what stands there was written in this life */
byte knows[MASTERS];  /* brokers that have joined it in this life, as bits */
byte signatures[MASTERS]; /* of brokers, as bits */
byte base[MASTERS];   /* the highest token that was signed */
byte out[OPS * MASTERS]; /* the last round that was asked for when its quarantine began */

byte restarts = RESTARTS;
byte high[BROKERS]; /* highest token that a broker knows of */
byte hi;            /* highest token granted */
#if CRASHES > 0
byte crashes = CRASHES;
byte unregistered; /* brokers that have started anew and are not registered on a majority, as bits */
#endif
#if COPIES > 0
byte copies = COPIES;
bit copied[MASTERS];
byte key_copy[MASTERS], tok_copy[MASTERS], upto_copy[MASTERS], cnt_copy[MASTERS], kept_copy[MASTERS];
#endif
#if defined(TAKEOVER) || defined(FORCE)
#define ENDS_FOR_OTHERS
bit tomb[MASTERS];  /* a tombstone of operation 0 */
bit grave;          /* broker ENDER remembers that it has ended operation 0 */
#ifdef TAKEOVER
#define ENDER 1
#else
#define ENDER (BROKERS - 1)
#endif
bit waived;       /* by its owner through another broker, or by an administrator: its client is to blame from then on */
byte kept[MASTERS]; /* a key of operation 1 lives as long as the one of operation 0 did: up to that round of it */
#endif

#ifdef CLUSTER
bit promoted; /* the quarantine began by a promotion; a restart in it changes nothing of that */
#define NO_LONGER_PROMOTED promoted = 0
#else
#define NO_LONGER_PROMOTED skip
#endif

#ifdef ONE_NAME
byte place[MASTERS];    /* who has the place of the name there: broker + 1; 0: nobody */
byte shut[MASTERS];     /* brokers whose place another one has taken, as bits: all their calls are refused */
byte had[MASTERS];      /* brokers that had the place when the former life ended, as bits */
byte followed[MASTERS]; /* of these, the ones that have joined this life in its quarantine */
bit veto[MASTERS];
bit placed[BROKERS]; /* has had the place on a majority of masters that were active */
byte due[OPS];       /* the last round that the other one had asked for by then */
#define IS_SHUT(b, m) HAS(shut[m], b)
#else
#define IS_SHUT(b, m) false
#endif

#define BELIEVED(o) ((st[o] == HELD || st[o] == ORPHAN) && over[o] < told[o])
#define LIVES(o) (st[o] == HELD && over[o] < told[o]) /* its broker knows it */
byte i, j, x;
bit has_moved;
#define FOR_MASTERS(step) i = 0; do :: i < MASTERS -> step; i++ :: else -> break od; i = 0
#define FOR_OPS(step) j = 0; do :: j < OPS -> step; j++ :: else -> break od; j = 0
#define CLEAR(mask, o) mask = mask & ~BIT(o)
#define SET(mask, o) mask = mask | BIT(o)

/* ---- the properties ---- */

/* Whose client is to blame if two believe: he gave his hold up through another broker, or an administrator ended it. */
#ifdef ENDS_FOR_OTHERS
#define EXCUSED(o) ((o) == 0 && waived)
#else
#define EXCUSED(o) false
#endif
#define IN_THE_WAY(o, p) (!SAME_OWNER(o, p) && BELIEVED(p))

inline granted(o)
{
    told[o] = 1;
    st[o] = HELD;
#if defined(HANDOVER) && defined(NO_END_BY_HANDOVER) /* it goes on until the next one has got it */
    if :: o == 1 && st[0] == HELD -> end(0) :: else fi;
#endif
    FOR_OPS(assert(!(j != o && IN_THE_WAY(o, j)) || EXCUSED(j))); /* exclusion */
#ifndef DISORDER                                                    /* to see that more than the order breaks */
    assert(token[o] > hi);                                          /* in the order of the holds */
#endif
    hi = MAX2(hi, token[o]);
    high[BROKER(o)] = MAX2(high[BROKER(o)], token[o]);
    forget_votes(o)
}

/* A hold that was renewed: nobody else holds. Whoever is to blame, nobody does who held with a newer token when the round began. */
inline confirmed(o)
{
    told[o] = sent[o];
    FOR_OPS(assert(!(j != o && IN_THE_WAY(o, j)) || EXCUSED(o) || EXCUSED(j))); /* exclusion */
    FOR_OPS(assert(!(HAS(rivals[o], j) && IN_THE_WAY(o, j))));                    /* rivals */
    rivals[o] = 0
}

/* A hold ends because of a newer one only where it has been taken over or ended by force. */
#if defined(TAKEOVER)
#define MAY_HAVE_MOVED(o, m) ((o) == 0 && (key[m] == 2 || waived))
#elif defined(FORCE)
#define MAY_HAVE_MOVED(o, m) EXCUSED(o)
#else
#define MAY_HAVE_MOVED(o, m) false
#endif

/* A hold whose broker lives can be renewed: on a majority it stands, or can be planted. Unless somebody else's key is in the way,
 * which a claim in vain may have left. */
#define FOREIGN(o, m) (key[m] != 0 && key[m] != (o) + 1 && !quarantine[m])
#define STANDS(o, m) (key[m] == (o) + 1 || quarantine[m])
#if MASTERS == 1
#define ANY_FOREIGN(o) FOREIGN(o, 0)
#define STANDING(o) STANDS(o, 0)
#else
#define ANY_FOREIGN(o) (FOREIGN(o, 0) || FOREIGN(o, 1) || FOREIGN(o, 2))
#define STANDING(o) (STANDS(o, 0) + STANDS(o, 1) + STANDS(o, 2))
#endif
#if defined(ENDS_FOR_OTHERS) || defined(PROMOTION) || defined(ONE_NAME)
#define KEPT(o)
#else
#define KEPT(o) :: LIVES(o) && !ANY_FOREIGN(o) && STANDING(o) < NEED -> assert(STANDING(o) >= NEED) /* kept */
#endif

/* ---- ends ---- */

inline forget_votes(o)
{
    FOR_MASTERS(vote[AT(o, i)] = 0; CLEAR(oks[i], o); CLEAR(yes[i], o); CLEAR(old[i], o); CLEAR(old_yes[i], o))
}

inline end(o)
{
    FOR_MASTERS(if :: st[o] == HELD && HAS(knows[i], BROKER(o)) && quarantine[i] -> SET(planted[i], o) :: else fi);
    st[o] = ENDED;
    forget_votes(o)
}

inline free(m)
{
    key[m] = 0; tok[m] = 0; upto[m] = 0; fresh[m] = 0;
#ifdef ENDS_FOR_OTHERS
    kept[m] = 0
#endif
}

/* ---- a claim ---- */

#if defined(TAKEOVER)
#define MAY_ASK(o) ((o) == 0 || ((o) == 1 -> BELIEVED(0) : st[0] != IDLE))
#define FREE(o, m) ((o) == 1 -> key[m] == 1 : key[m] == 0)
#elif defined(HANDOVER) /* the master ends the hold of the former owner and gives it to the next one in the same step */
#define MAY_ASK(o) ((o) == 0 || ((o) == 1 -> LIVES(0) : st[0] != IDLE))
#define FREE(o, m) (key[m] == 0 || ((o) == 1 && key[m] == 1))
#else
/* Nothing tells one operation from the other: the next begins after it. */
#define MAY_ASK(o) ((o) == 0 || st[(o) - ((o) > 0)] != IDLE)
#define FREE(o, m) (key[m] == 0)
#endif
#ifdef ENDS_FOR_OTHERS
#define IS_GONE(o, m) ((o) == 0 && tomb[m])
#else
#define IS_GONE(o, m) false
#endif
#ifdef NO_QUARANTINE_FOR_CLAIMS
#define VOTES(m) true
#else
#define VOTES(m) (!quarantine[m])
#endif

/* A take-over leaves the time to live as it is. */
inline inherit(o, m)
{
#ifdef TAKEOVER
    if
    :: o == 1 && key[m] == 1 -> kept[m] = upto[m]
    :: else -> kept[m] = 0
    fi
#else
    skip
#endif
}

inline acquire(o, m)
{
    inherit(o, m);
#ifdef TAKEOVER
    if
    :: o == 1 -> tomb[m] = 1
    :: else
    fi;
#endif
    cnt[m] = cnt[m] + 1;
    key[m] = o + 1; tok[m] = cnt[m]; upto[m] = 1; fresh[m] = 1;
    CLEAR(asked[m], o)
}

#define VOTE(o, m) vote[AT(o, m)]
#if MASTERS == 1
#define VOTED(o) (VOTE(o, 0) > 0)
#define HIGHEST(o) VOTE(o, 0)
#define AGREE(o) 1
#define OK(o) HAS(oks[0], o)
#define YES(o) HAS(yes[0], o)
#else
#define VOTED(o) ((VOTE(o, 0) > 0) + (VOTE(o, 1) > 0) + (VOTE(o, 2) > 0))
#define HIGHEST(o) MAX2(VOTE(o, 0), MAX2(VOTE(o, 1), VOTE(o, 2)))
#define AGREE(o) ((VOTE(o, 0) == HIGHEST(o)) + (VOTE(o, 1) == HIGHEST(o)) + (VOTE(o, 2) == HIGHEST(o)))
#define OK(o) (HAS(oks[0], o) + HAS(oks[1], o) + HAS(oks[2], o))
#define YES(o) (HAS(yes[0], o) + HAS(yes[1], o) + HAS(yes[2], o))
#endif

/* Once a hand-over has been sent the former owner never holds again (safety R12), and is not planted. */
#if defined(HANDOVER) && !defined(NO_END_BY_HANDOVER)
#define HAND_OVER(o) if :: (o) == 1 -> end(0) :: else fi
#else
#define HAND_OVER(o) skip
#endif

/* The masters that gave it the highest token need no commit. */
inline go_on_to_commit(o)
{
    FOR_MASTERS(if
                :: vote[AT(o, i)] == token[o] -> SET(oks[i], o)
                :: else -> CLEAR(old[i], o)
                fi;
                vote[AT(o, i)] = 0);
    st[o] = COMMITTING
}

#define CLAIM(o)                                                                                                    \
    :: d_step { st[o] == IDLE && MAY_ASK(o) ->                                                                      \
        HAND_OVER(o); st[o] = ASKING; sent[o] = 1; FOR_MASTERS(SET(asked[i], o)) }                                  \
    :: d_step { st[o] == ASKING && VOTED(o) >= NEED && over[o] < 1 ->                                               \
        token[o] = HIGHEST(o);                                                                                      \
        if                                                                                                          \
        :: AGREE(o) >= NEED -> granted(o)                                                                           \
        :: else -> go_on_to_commit(o)                                                                               \
        fi }                                                                                                        \
    :: d_step { st[o] == COMMITTING && OK(o) >= NEED && over[o] < 1 -> granted(o) }                                 \
    :: d_step { (st[o] == ASKING || st[o] == COMMITTING || st[o] == HELD) && MAY_END(o) -> END_EXTRA(o); end(o) }   \
    :: d_step { st[o] != IDLE && st[o] != ENDED && over[o] < sent[o] ->                                             \
        over[o] = over[o] + 1;                                                                                      \
        if                                                                                                          \
        :: (st[o] == HELD || st[o] == ORPHAN) && over[o] >= told[o] -> end(o)                                       \
        :: else                                                                                                     \
        fi }
#define IS_HEARD(o, m) (HAS(knows[m], BROKER(o)) && !IS_SHUT(BROKER(o), m))
#define MAY_ACQUIRE(o, m)                                                                                           \
    (HAS(asked[m], o) && IS_HEARD(o, m) && VOTES(m) && over[o] < 1 && FREE(o, m) && !IS_GONE(o, m))
#define CLAIM_AT(o, m)                                                                                              \
    :: d_step { MAY_ACQUIRE(o, m) ->                                                                                    \
        acquire(o, m);                                                                                              \
        if                                                                                                          \
        :: st[o] == ASKING -> vote[AT(o, m)] = tok[m]                                                               \
        :: else                                                                                                     \
        fi }                                                                                                        \
    :: d_step { MAY_ACQUIRE(o, m) && st[o] == ASKING ->                                                                 \
        acquire(o, m) }                                                                                             \
    :: d_step { st[o] == COMMITTING && key[m] == o + 1 && VOTES(m) && IS_HEARD(o, m) &&                             \
                tok[m] <= token[o] && !HAS(oks[m], o) ->                                                            \
        tok[m] = token[o]; cnt[m] = MAX2(cnt[m], token[o]); SET(oks[m], o) }                                        \
    :: d_step { st[o] == COMMITTING && key[m] == o + 1 && VOTES(m) && IS_HEARD(o, m) &&                             \
                tok[m] > token[o] ->                                                                                \
        token[o] = tok[m]; forget_votes(o); SET(oks[m], o) }                                                        \
    :: d_step { st[o] == ENDED && MAY_RELEASE(o) &&                                                                 \
                (key[m] == o + 1 || HAS(asked[m], o) || HAS(planted[m], o)) ->                                      \
        if :: key[m] == o + 1 -> free(m) :: else fi;                                                                \
        CLEAR(asked[m], o); CLEAR(planted[m], o) }                                                                  \
    :: d_step { key[m] == o + 1 && (st[o] == ENDED || over[o] >= upto[m]) && LASTED(o, m) -> free(m) }

#ifdef TAKEOVER
#define MAY_RELEASE(o) ((o) != 1 || waived)
#define LASTED(o, m) ((o) != 1 || waived || st[0] == ENDED || over[0] >= kept[m])
#define END_EXTRA(o) if :: (o) == 1 && st[1] == HELD -> waived = 1; grave = 1 :: else fi
#else
#define MAY_RELEASE(o) true
#define LASTED(o, m) true
#define END_EXTRA(o) skip
#endif
#if defined(TAKEOVER) && defined(TAKEN_STAYS) /* the broker that took a hold over keeps it until the older promise is over */
#define MAY_END(o) ((o) != 1 || st[1] != HELD || !BELIEVED(0))
#else
#define MAY_END(o) true
#endif

/* ---- renewal ---- */

/* A claim that was first asked more than V ago is decided or given up: V after the quarantine began no claim counts on a vote of
 * the former life. Only then does a planted key count. */
#define OLD_CLAIM(o, m) ((st[o] == ASKING || st[o] == COMMITTING) && HAS(old[m], o))
#if OPS == 2
#define OLD_CLAIMS(m) (OLD_CLAIM(0, m) || OLD_CLAIM(1, m))
#else
#define OLD_CLAIMS(m) (OLD_CLAIM(0, m) || OLD_CLAIM(1, m) || OLD_CLAIM(2, m))
#endif
#if defined(NO_COUNT)
#define COUNTS(m) (!quarantine[m])
#elif defined(CLUSTER) && !defined(EPOCHS) && !defined(NO_ROLL_CALL_BEFORE_COUNTING)
#define COUNTS(m) (!quarantine[m] || (!OLD_CLAIMS(m) && !promoted))
#elif defined(NO_V)
#define COUNTS(m) true
#elif defined(PROMPT) /* assumed: all brokers that live have come by then */
#define COUNTS(m) (!quarantine[m] || (!OLD_CLAIMS(m) && ALL_READY(m)))
#elif defined(PROMOTION) && !defined(NO_S_BEFORE_COUNTING) /* and S after it nobody is granted by the former master */
#define COUNTS(m) (!quarantine[m] || (!OLD_CLAIMS(m) && IS_STOPPED))
#else
#define COUNTS(m) (!quarantine[m] || !OLD_CLAIMS(m))
#endif

inline find_rivals(o)
{
    rivals[o] = 0;
    FOR_OPS(if :: j != o && IN_THE_WAY(o, j) && token[j] > token[o] -> SET(rivals[o], j) :: else fi)
}

#define RENEWAL(o)                                                                                                  \
    :: d_step { HAS(RENEWED, o) && LIVES(o) && sent[o] < 1 + ROUNDS ->                                              \
        sent[o] = sent[o] + 1; find_rivals(o);                                                                      \
        FOR_MASTERS(CLEAR(yes[i], o); CLEAR(old_yes[i], o)) }                                                       \
    :: d_step { HAS(RENEWED, o) && LIVES(o) && told[o] < sent[o] && YES(o) >= NEED -> confirmed(o) }
#define RENEWAL_AT(o, m)                                                                                            \
    :: d_step { HAS(RENEWED, o) && LIVES(o) && told[o] < sent[o] && key[m] == o + 1 &&                              \
                IS_HEARD(o, m) && (!quarantine[m] || fresh[m]) &&                                                   \
                (upto[m] < sent[o] || (COUNTS(m) && !HAS(yes[m], o))) ->                                            \
        upto[m] = sent[o];                                                                                          \
        if :: COUNTS(m) -> SET(yes[m], o); CLEAR(old_yes[m], o) :: else fi }

/* ---- planting ---- */

#ifdef NO_STALE_LOSES /* what was not written in this life wins by its token, as what was written in it does */
#define LOSES(o, m) (tok[m] < token[o])
#elif defined(NO_NEWER_WINS)
#define LOSES(o, m) true
#else
#define LOSES(o, m) (!fresh[m] || tok[m] < token[o])
#endif
inline count_to(m, t)
{
#ifdef NO_COUNT_OF_PLANTS
    skip
#else
    cnt[m] = MAX2(cnt[m], t)
#endif
}

inline put(o, m, round)
{
#ifdef NO_LONGER_TIME /* what replaces a hold has its own time alone */
    kept[m] = 0;
#else
    inherit(o, m);
#endif
    key[m] = o + 1; tok[m] = token[o]; upto[m] = round; fresh[m] = 1;
    count_to(m, token[o])
}

/* Over itself: the longer time is kept. */
inline put_again(o, m)
{
#ifdef NO_PLANT_OVER_A_COPY /* "there already" */
    fresh[m] = 1
#else
    upto[m] = MAX2(upto[m], told[o]);
    tok[m] = MAX2(tok[m], token[o]);
    fresh[m] = 1;
    count_to(m, token[o])
#endif
}

inline plant(o, m)
{
    if
    :: key[m] == o + 1 -> put_again(o, m)
    :: key[m] == 0 || (key[m] != o + 1 && LOSES(o, m)) -> put(o, m, told[o])
    :: else -> /* somebody newer has it: moved */
        has_moved = MAY_HAVE_MOVED(o, m); assert(has_moved); has_moved = 0; /* sound */
#ifdef NO_END_BY_NEWER
        skip
#else
        end(o)
#endif
    fi
}

#ifdef NO_END_BY_NEWER
#define IS_NEWS(o, m) (key[m] == 0 || key[m] == o + 1 || LOSES(o, m))
#else
#define IS_NEWS(o, m) true
#endif
#ifdef NO_PLANTS_OF_LEASES /* who asked for a lease is left to what the masters remember */
#define IS_PLANTED(o) HAS(RENEWED, o)
#else
#define IS_PLANTED(o) true
#endif
#define PLANTING(o, m)                                                                                              \
    :: d_step { LIVES(o) && IS_PLANTED(o) && quarantine[m] && IS_HEARD(o, m) && !IS_GONE(o, m) && IS_NEWS(o, m) &&         \
                !(key[m] == o + 1 && fresh[m] && upto[m] >= told[o]) -> plant(o, m) }                               \
    :: d_step { HAS(planted[m], o) && st[o] == ENDED && quarantine[m] && !IS_GONE(o, m) ->                          \
        if                                                                                                          \
        :: key[m] == 0 || (key[m] != o + 1 && LOSES(o, m)) -> put(o, m, 1)                                          \
        :: else                                                                                                     \
        fi;                                                                                                         \
        CLEAR(planted[m], o) }                                                                                      \
    HEALING(o, m)
#if MASTERS == 1
#define HEALING(o, m)
#else /* safety R3 */
#define HEALING(o, m)                                                                                               \
    :: d_step { LIVES(o) && !quarantine[m] && IS_HEARD(o, m) && !IS_GONE(o, m) && key[m] == 0 &&          \
                sent[o] > 1 && told[o] == sent[o] -> put(o, m, told[o]) }
#endif

/* ---- what was ended for another broker ---- */

#if defined(NO_GRAVES)
#define BURYING(m)
#define IS_BURIED(b, m) true
#elif defined(ENDS_FOR_OTHERS)
#define BURYING(m)                                                                                                  \
    :: d_step { grave && quarantine[m] && HAS(knows[m], ENDER) && !tomb[m] ->                                                            \
        tomb[m] = 1; CLEAR(asked[m], 0); CLEAR(planted[m], 0);                                                      \
        if :: key[m] == 1 -> free(m) :: else fi }
#define IS_BURIED(b, m) (b != ENDER || !grave || tomb[m])
#else
#define BURYING(m)
#define IS_BURIED(b, m) true
#endif
#ifdef FORCE
#define FORCING(m)                                                                                                  \
    :: d_step { BELIEVED(0) && !tomb[m] && HAS(knows[m], ENDER) ->                                                      \
        grave = 1; waived = 1; tomb[m] = 1;                                                                       \
        if :: key[m] == 1 -> free(m) :: else fi }
#else
#define FORCING(m)
#endif

/* ---- lives ---- */

#ifdef NO_DISCARD_OF_VOTES
#define DISCARD(o, m) skip
#else
#define DISCARD(o, m) vote[AT(o, m)] = 0; CLEAR(oks[m], o); CLEAR(old[m], o)
#endif
#ifdef NO_DISCARD_OF_RENEWALS
#define DISCARD_YES(o, m) skip
#else
#define DISCARD_YES(o, m) CLEAR(yes[m], o); CLEAR(old_yes[m], o)
#endif
#define JOINING(b, m)                                                                                               \
    :: d_step { !HAS(knows[m], b) && IS_NAMED_NEW ->                                                                \
        SET(knows[m], b); LEAVE_THE_OLD(b); TAKE_PLACE(b, m);                                                                        \
        FOR_OPS(if :: BROKER(j) == b && HAS(old[m], j) -> DISCARD(j, m) :: else fi;                                 \
                if :: BROKER(j) == b && HAS(old_yes[m], j) -> DISCARD_YES(j, m) :: else fi) }

/* Who comes to a life takes the place of its name, and shuts the one who had it. */
#ifdef ONE_NAME
#define OTHER(b) (1 - (b))
#define TAKE_PLACE(b, m)                                                                                            \
    if                                                                                                              \
    :: IS_SHUT(b, m) || place[m] == b + 1                                                                           \
    :: else ->                                                                                                      \
        if                                                                                                          \
        :: quarantine[m] && HAD_IT(b, m) && IS_VACANT(m) -> SET(followed[m], b)                                     \
        :: else -> NEW_PLACE(b)                                                                                     \
        fi;                                                                                                         \
        if                                                                                                          \
        :: place[m] != 0 -> SET(shut[m], OTHER(b)); CLEAR(followed[m], OTHER(b)); veto[m] = quarantine[m]             \
        :: else                                                                                                     \
        fi;                                                                                                         \
        place[m] = b + 1                                                                                            \
    fi
#ifdef NO_NEW_MEMORY /* it counts from the first time, whatever came between */
#define NEW_PLACE(b) skip
#else
#define NEW_PLACE(b) placed[b] = 0
#endif
#ifdef NO_PLACE_AT_THE_END /* once in the place, it signs wherever nobody else is */
#define HAD_IT(b, m) true
#else
#define HAD_IT(b, m) HAS(had[m], b)
#endif
#ifdef NO_VACANCY /* it goes on, though the other one has been there in this very life */
#define IS_VACANT(m) true
#else
#define IS_VACANT(m) (place[m] == 0)
#endif
#define LOSE_PLACES(m)                                                                                              \
    had[m] = (quarantine[m] -> followed[m] : BIT(place[m]) >> 1);                                                   \
    place[m] = 0; shut[m] = 0; veto[m] = 0; followed[m] = 0
#define HAS_PLACE(b, m) (!quarantine[m] && place[m] == (b) + 1)
#if MASTERS == 1
#define PLACES(b) HAS_PLACE(b, 0)
#define LAST_SEEN(b, m) HAS(followed[m], b)
#define STILL_THERE(b) LAST_SEEN(b, 0)
#define HIGHEST_SEEN(b) cnt[0]
#else
#define PLACES(b) (HAS_PLACE(b, 0) + HAS_PLACE(b, 1) + HAS_PLACE(b, 2))
#define LAST_SEEN(b, m) (quarantine[m] -> HAS(followed[m], b) : place[m] == (b) + 1)
#define STILL_THERE(b) (PLACES(b) >= MASTERS - NEED + 1 || (LAST_SEEN(b, 0) && LAST_SEEN(b, 1) && LAST_SEEN(b, 2)))
#define HIGHEST_SEEN(b)                                                                                             \
    MAX2((HAS_PLACE(b, 0) -> cnt[0] : 0), MAX2((HAS_PLACE(b, 1) -> cnt[1] : 0), (HAS_PLACE(b, 2) -> cnt[2] : 0)))
#endif
#define PLACING(b)                                                                                                  \
    :: d_step { !placed[b] && PLACES(b) >= NEED ->                                                                  \
        placed[b] = 1; FOR_OPS(if :: BROKER(j) != b -> due[j] = sent[j] :: else fi);                                \
        high[b] = MAX2(high[b], HIGHEST_SEEN(b)) }
#ifdef NO_WAITING
#define IS_FORGOTTEN(b) false
#else
#define IS_DUE(o, b) (BROKER(o) != b && st[o] != ENDED && over[o] < due[o])
#if OPS == 2
#define IS_FORGOTTEN(b) (IS_DUE(0, b) || IS_DUE(1, b))
#else
#define IS_FORGOTTEN(b) (IS_DUE(0, b) || IS_DUE(1, b) || IS_DUE(2, b))
#endif
#endif
#ifdef NO_VETO
#define HAS_VETO(m) false
#else
#define HAS_VETO(m) veto[m]
#endif
#define SPEAKS_FOR_ITS_NAME(b, m)                                                                                   \
    (place[m] == (b) + 1 && !HAS_VETO(m) && placed[b] && !IS_FORGOTTEN(b) && STILL_THERE(b))
#define ALL_HAVE_SIGNED(m) true
#else
#define TAKE_PLACE(b, m) skip
#define LOSE_PLACES(m) skip
#define SPEAKS_FOR_ITS_NAME(b, m) true
#define ALL_HAVE_SIGNED(m) (signatures[m] == LIST)
#endif

/* The run id in each script: what was asked of the former life never runs. */
inline new_life(m)
{
    restarts--;
    LOSE_PLACES(m);
    quarantine[m] = 1; fresh[m] = 0; knows[m] = 0; signatures[m] = 0; base[m] = 0; planted[m] = 0;
    FOR_OPS(out[AT(j, m)] = sent[j];
            if :: st[j] != IDLE -> CLEAR(asked[m], j) :: else fi;
            if :: vote[AT(j, m)] > 0 || HAS(oks[m], j) -> SET(old[m], j) :: else fi;
            if :: HAS(yes[m], j) -> SET(old_yes[m], j) :: else fi)
}

#ifdef ENDS_FOR_OTHERS
#define FORGET_TOMB(m) tomb[m] = 0
#define COPY_KEPT(m) kept_copy[m] = kept[m]
#define KEPT_AGAIN(m) kept[m] = kept_copy[m]; kept_copy[m] = 0
#else
#define FORGET_TOMB(m) skip
#define COPY_KEPT(m) skip
#define KEPT_AGAIN(m) skip
#endif
#ifdef NO_PROMOTION_IS_KEPT /* who restarts is a restarted master, whatever it was before */
#define RESTARTED NO_LONGER_PROMOTED
#else
#define RESTARTED skip
#endif
#define RESTART(m)                                                                                                  \
    :: d_step { restarts > 0 && st[0] != IDLE -> free(m); cnt[m] = 0; FORGET_TOMB(m); RESTARTED; new_life(m) }
#if COPIES > 0
#define COPYING(m)                                                                                                  \
    :: d_step { copies > 0 && restarts > 0 && key[m] != 0 ->                                                        \
        copies--; copied[m] = 1; key_copy[m] = key[m]; tok_copy[m] = tok[m]; upto_copy[m] = upto[m];                \
        cnt_copy[m] = cnt[m]; COPY_KEPT(m) }                                                                                      \
    :: d_step { copied[m] && restarts > 0 ->                                                                        \
        key[m] = key_copy[m]; tok[m] = tok_copy[m]; upto[m] = upto_copy[m]; cnt[m] = cnt_copy[m];                   \
        FORGET_TOMB(m); KEPT_AGAIN(m);                                                                              \
        copied[m] = 0; key_copy[m] = 0; tok_copy[m] = 0; upto_copy[m] = 0; cnt_copy[m] = 0;                         \
        new_life(m) }
#else
#define COPYING(m)
#endif

/* ---- a replica is promoted, and broker 0 cannot hear of it (safety R17) ---- */

#ifdef PROMOTION
bit cut_off; /* it goes on with the old server, which is as it was */
byte key_there, tok_there, upto_there, cnt_there;

/* The old master of a shard and two more elect the new one. Both of those vote for it; whom they name is another matter: each
 * names the old one until it hears of the new one, at any later time or never. Who is asked for its word says for itself: so a
 * broker that hears the old master goes on as long as one of the two names the old one, and one that hears the new master is
 * served as soon as one of them names that. */
#ifdef CLUSTER
byte voted;    /* those of the two who have, in the term that is to come, as bits */
byte says_new; /* those who name the new one */
bit s_over;    /* S has passed since the promotion, and broker 0 has not stopped */
#define ELECTING(e)                                                                                                 \
    :: d_step { restarts > 0 && st[0] != IDLE && !cut_off && !quarantine[0] && !HAS(voted, e) -> SET(voted, e) }    \
    :: d_step { promoted && !HAS(says_new, e) -> SET(says_new, e) }
#define IS_ELECTED (voted == 3)
#define BEGIN_TERM promoted = 1; says_new = 0; s_over = 0; voted = 0
#define IS_NAMED_NEW (!promoted || says_new != 0)
#ifdef EPOCHS /* who has voted for somebody of whom he has not heard yet has no word */
#define IS_NAMED_OLD false
#else
#define IS_NAMED_OLD (says_new != 3)
#endif
#define FORGET_S s_over = 0
#else
#define ELECTING(e)
#define IS_ELECTED true
#define BEGIN_TERM skip
#define IS_NAMED_NEW true
#define FORGET_S skip
#endif

#define PROMOTING                                                                                                   \
    :: d_step { restarts > 0 && st[0] != IDLE && !cut_off && !quarantine[0] && IS_ELECTED ->                        \
        cut_off = 1; key_there = key[0]; tok_there = tok[0]; upto_there = upto[0]; cnt_there = cnt[0];              \
        BEGIN_TERM; new_life(0) }                                                                                   \
    :: d_step { restarts > 0 && st[0] != IDLE && !cut_off && !quarantine[0] && IS_ELECTED ->                        \
        cut_off = 1; key_there = key[0]; tok_there = tok[0]; upto_there = upto[0]; cnt_there = cnt[0];              \
        free(0); cnt[0] = 0; BEGIN_TERM; new_life(0) }                                                              \
    ELECTING(0) ELECTING(1)                                                                                         \
    STOPPING
#ifdef NO_LONGER_QUARANTINE /* it lasts for what was promised before the promotion */
#define WAIT_FOR_THE_LAST skip
#define IS_STOPPED true
#else
#define WAIT_FOR_THE_LAST FOR_OPS(out[AT(j, 0)] = sent[j])
#define IS_STOPPED (!cut_off)
#endif
#ifdef CLUSTER
/* S after the promotion, broker 0 has stopped: unless old master and somebody else still name the old one by then. */
#define STOPPING                                                                                                    \
    STOPPING_IN_TIME                                                                                                \
    :: d_step { cut_off && !s_over && IS_NAMED_OLD -> s_over = 1; WAIT_FOR_THE_LAST }
#undef IS_STOPPED
#define IS_STOPPED (!cut_off || s_over)
#elif defined(NO_STOP) /* it goes on although no majority of the Sentinels has named the old server */
byte stopped;
#define STOPPING :: d_step { cut_off && !stopped -> stopped = 1; WAIT_FOR_THE_LAST }
#undef IS_STOPPED
#define IS_STOPPED (!cut_off || stopped)
#else
#define STOPPING STOPPING_IN_TIME
#endif
/* S after the last word of a majority of the Sentinels for the old server. */
#define STOPPING_IN_TIME                                                                                            \
    :: d_step { cut_off ->                                                                                          \
        forget_the_old(); WAIT_FOR_THE_LAST;                                                                        \
        if :: st[0] != ENDED -> forget_votes(0) :: else fi;                                                         \
        if :: st[2] != ENDED -> forget_votes(2) :: else fi }
inline forget_the_old()
{
    FORGET_S; cut_off = 0; key_there = 0; tok_there = 0; upto_there = 0; cnt_there = 0
}
#define LEAVE_THE_OLD(b)                                                                                            \
    if                                                                                                              \
    :: b == 0 && cut_off ->                                                                                         \
        WAIT_FOR_THE_LAST; forget_the_old();                                                                        \
        if :: st[0] != ENDED -> forget_votes(0) :: else fi;                                                         \
        if :: st[2] != ENDED -> forget_votes(2) :: else fi                                                          \
    :: else                                                                                                         \
    fi
/* What broker 0 asks, the old server does. */
#define THERE(o)                                                                                                    \
    :: d_step { cut_off && st[o] == ASKING && vote[o] == 0 && key_there == 0 && over[o] < 1 ->                      \
        cnt_there++; key_there = o + 1; tok_there = cnt_there; upto_there = 1; vote[o] = cnt_there;                 \
        CLEAR(asked[0], o) }                                                                                        \
    :: d_step { cut_off && HAS(RENEWED, o) && LIVES(o) && told[o] < sent[o] && key_there == o + 1 &&                \
                !HAS(yes[0], o) -> upto_there = sent[o]; SET(yes[0], o) }                                           \
    :: d_step { cut_off && key_there == o + 1 && (st[o] == ENDED || over[o] >= upto_there) ->                       \
        key_there = 0; tok_there = 0; upto_there = 0 }
#define SERVES_ON THERE(0) THERE(2) :: d_step { cut_off && key_there == 2 && (st[1] == ENDED || over[1] >= upto_there) ->    \
        key_there = 0; tok_there = 0; upto_there = 0 }
#else
#define LEAVE_THE_OLD(b) skip
#define IS_STOPPED true
#define IS_NAMED_NEW true
#endif

/* A quarantine that lasts until every promise is over that was out when it began (safety R5). */
#define IS_OVER(o, m) (st[o] == ENDED || over[o] >= out[AT(o, m)])
#if OPS == 2
#define ALL_OVER(m) (IS_OVER(0, m) && IS_OVER(1, m))
#else
#define ALL_OVER(m) (IS_OVER(0, m) && IS_OVER(1, m) && IS_OVER(2, m))
#endif
/* The base: by two masters that are active; else by all that is known and a clock that nobody has set back. */
#if MASTERS == 1
#define FLOOR(m) MAX2(cnt[m], hi)
#define MAY_OPEN(m) true
#else
#define ACTIVE ((quarantine[0] == 0) + (quarantine[1] == 0) + (quarantine[2] == 0))
#define SAID(m) (quarantine[m] -> 0 : cnt[m])
#define WAITS(m) (quarantine[m] && !ALL_OVER(m))
#define FLOOR(m) (ACTIVE == 2 -> MAX2(cnt[m], MAX2(SAID(0), MAX2(SAID(1), SAID(2)))) : MAX2(cnt[m], hi))
#define MAY_OPEN(m) (ACTIVE == 2 || !(WAITS(0) || WAITS(1) || WAITS(2)))
#endif
inline open(m, floor)
{
    cnt[m] = MAX2(cnt[m], floor);
    quarantine[m] = 0; signatures[m] = 0; base[m] = 0; fresh[m] = 0;
    NO_LONGER_PROMOTED
}
#if defined(CLUSTER) && !defined(EPOCHS) && !defined(NO_ROLL_CALL_ALONE)
#define ENDS_BY_TIME (!promoted)
#else
#define ENDS_BY_TIME true
#endif
#define OPENING(m)                                                                                                  \
    :: d_step { quarantine[m] && ENDS_BY_TIME && IS_STOPPED && ALL_OVER(m) && MAY_OPEN(m) -> x = FLOOR(m); open(m, x); x = 0 }

/* ---- roll call ---- */

#ifdef NO_PLANT_OVER_A_COPY
#define LONG_ENOUGH(o, m) true
#else
#define LONG_ENOUGH(o, m) (upto[m] >= told[o])
#endif
#ifdef NO_PLANT_BEFORE_SIGNING
#define COVERED(o, b, m) true
#elif defined(NO_PLANTS_OF_LEASES)
#define COVERED(o, b, m)                                                                                            \
    (!HAS(RENEWED, o) || BROKER(o) != b || !LIVES(o) || (key[m] == o + 1 && fresh[m] && LONG_ENOUGH(o, m)))
#elif defined(NO_END_BY_NEWER) /* a plant that is refused counts as one that was made */
#define COVERED(o, b, m)                                                                                            \
    (BROKER(o) != b || !LIVES(o) || (key[m] == o + 1 && fresh[m] && LONG_ENOUGH(o, m)) ||                          \
     (key[m] != 0 && key[m] != o + 1 && fresh[m] && tok[m] > token[o]))
#else
#define COVERED(o, b, m) (BROKER(o) != b || !LIVES(o) || (key[m] == o + 1 && fresh[m] && LONG_ENOUGH(o, m)))
#endif
#ifdef NO_LONG_MEMORY
#define REMEMBERS(o, b) true
#else
#define REMEMBERS(o, b) (BROKER(o) != b || st[o] != ORPHAN)
#endif
#if CRASHES > 0 && !defined(NO_REGISTRATION)
#define IS_REGISTERED(b) (!HAS(unregistered, b))
#else
#define IS_REGISTERED(b) true
#endif
#if OPS == 2
#define READY(b, m) (HAS(knows[m], b) && COVERED(0, b, m) && COVERED(1, b, m) && IS_BURIED(b, m))
#define REMEMBERS_ALL(b) (REMEMBERS(0, b) && REMEMBERS(1, b))
#else
#define READY(b, m)                                                                                                 \
    (HAS(knows[m], b) && COVERED(0, b, m) && COVERED(1, b, m) && COVERED(2, b, m) && IS_BURIED(b, m))
#define REMEMBERS_ALL(b) (REMEMBERS(0, b) && REMEMBERS(1, b) && REMEMBERS(2, b))
#endif
#if BROKERS == 2
#define ALL_READY(m) (READY(0, m) && READY(1, m))
#else
#define ALL_READY(m) (READY(0, m) && READY(1, m) && READY(2, m))
#endif
#ifdef NO_HIGHEST_TOKEN
#define SIGNED_TOKEN(b) 0
#else
#define SIGNED_TOKEN(b) high[b]
#endif
#define SIGNING(b, m)                                                                                               \
    :: d_step { HAS(LIST, b) && quarantine[m] && !HAS(signatures[m], b) && READY(b, m) && REMEMBERS_ALL(b) && IS_REGISTERED(b) && SPEAKS_FOR_ITS_NAME(b, m) ->           \
        SET(signatures[m], b); base[m] = MAX2(base[m], SIGNED_TOKEN(b));                                                \
        if :: ALL_HAVE_SIGNED(m) -> x = base[m]; open(m, x); x = 0 :: else fi }

/* ---- brokers that crash, and are there again with an empty memory ---- */

#if CRASHES > 0
#define CRASH(b)                                                                                                    \
    :: d_step { crashes > 0 && st[0] != IDLE ->                                                                     \
        crashes--; high[b] = 0; SET(unregistered, b);                                                               \
        CRASH_EXTRA(b);                                                                                             \
        FOR_OPS(if                                                                                                  \
                :: BROKER(j) == b && (st[j] == ASKING || st[j] == COMMITTING) -> st[j] = ENDED; x = j + 1           \
                :: BROKER(j) == b && st[j] == HELD -> st[j] = ORPHAN; x = j + 1                                     \
                :: else                                                                                             \
                fi;                                                                                                 \
                if                                                                                                  \
                :: x > 0 -> x = 0; FOR_MASTERS(vote[AT(j, i)] = 0; CLEAR(oks[i], j); CLEAR(yes[i], j);              \
                                               CLEAR(old[i], j); CLEAR(old_yes[i], j))                              \
                :: else                                                                                             \
                fi) }                                                                                               \
    REGISTER(b)
/* What a majority of masters has given, none of which is in quarantine, is all that was ever granted. */
#define REGISTER_AT(b, m, n)                                                                                        \
    :: d_step { HAS(unregistered, b) && !quarantine[m] && !quarantine[n] ->                                         \
        CLEAR(unregistered, b); high[b] = MAX2(high[b], MAX2(cnt[m], cnt[n])) }
#if MASTERS == 1
#define REGISTER(b) REGISTER_AT(b, 0, 0)
#else
#define REGISTER(b) REGISTER_AT(b, 0, 1) REGISTER_AT(b, 0, 2) REGISTER_AT(b, 1, 2)
#endif
#ifdef ENDS_FOR_OTHERS
#define CRASH_EXTRA(b) if :: b == ENDER -> grave = 0 :: else fi
#else
#define CRASH_EXTRA(b) skip
#endif
#else
#define CRASH(b)
#endif

/* ---- states that differ in nothing that matters are one ---- */

#define FORGET_COPY(m) copied[m] = 0; key_copy[m] = 0; tok_copy[m] = 0; upto_copy[m] = 0; cnt_copy[m] = 0; kept_copy[m] = 0

inline tidy_operation(o)
{
    if
    :: st[o] == ENDED ->
        sent[o] = 0; told[o] = 0; over[o] = 0; rivals[o] = 0;
#ifdef ONE_NAME
        due[o] = 0;
#endif
        FOR_OPS(CLEAR(rivals[j], o));
        x = 0;
        FOR_MASTERS(x = x | HAS(planted[i], o));
        if
        :: !x -> token[o] = 0
        :: else
        fi;
        x = 0
    :: else
    fi;
    FOR_MASTERS(if
                :: !quarantine[i] || st[o] == ENDED || over[o] >= out[AT(o, i)] -> out[AT(o, i)] = 0
                :: else
                fi;
                if
                :: st[o] == ENDED && key[i] == o + 1 -> upto[i] = 1
                :: else
                fi)
}

#ifdef ONE_NAME
#define FORGET_FOLLOWED(m) had[m] = 0; followed[m] = 0; veto[m] = 0
#else
#define FORGET_FOLLOWED(m) skip
#endif
inline tidy_master(m)
{
    if
    :: !quarantine[m] -> fresh[m] = 0; FORGET_FOLLOWED(m)
    :: else
    fi;
#if COPIES > 0
    if
    :: restarts == 0 -> FORGET_COPY(m); copies = 0
    :: else
    fi;
#endif
#ifdef ENDS_FOR_OTHERS
    if
    :: st[0] == ENDED -> tomb[m] = 0; kept[m] = 0; grave = 0
    :: else
    fi
#endif
}

#if CRASHES > 0
#define NO_CRASHES crashes = 0; unregistered = 0
#else
#define NO_CRASHES skip
#endif
inline nothing_is_left()
{
    FOR_OPS(token[j] = 0);
    FOR_MASTERS(key[i] = 0; tok[i] = 0; upto[i] = 0; cnt[i] = 0; quarantine[i] = 0; fresh[i] = 0; knows[i] = 0;
                signatures[i] = 0; base[i] = 0; asked[i] = 0; planted[i] = 0);
    high[0] = 0; high[1] = 0; high[BROKERS - 1] = 0; hi = 0; restarts = 0;
#ifdef PROMOTION
    forget_the_old();
#ifdef CLUSTER
    voted = 0; says_new = 0; promoted = 0;
#endif
#endif
#ifdef ONE_NAME
    FOR_MASTERS(place[i] = 0; shut[i] = 0; had[i] = 0; followed[i] = 0; veto[i] = 0);
    FOR_OPS(due[j] = 0);
    placed[0] = 0; placed[1] = 0;
#endif
    NO_CRASHES
}

#if MASTERS > 1
/* Masters are alike: of states that differ only in their order one is enough. */
#define SWAP(a, m, n) x = a[m]; a[m] = a[n]; a[n] = x
#define SWAP_OP(a, o, m, n) x = a[AT(o, m)]; a[AT(o, m)] = a[AT(o, n)]; a[AT(o, n)] = x
#ifdef ENDS_FOR_OTHERS
#define SWAP_TOMBS(m, n) SWAP(tomb, m, n); SWAP(kept, m, n)
#define TOMB_WEIGHT(m) (tomb[m] << 4 | kept[m])
#else
#define SWAP_TOMBS(m, n) skip
#define TOMB_WEIGHT(m) 0
#endif
#if COPIES > 0
#define SWAP_COPIES(m, n)                                                                                           \
    SWAP(copied, m, n); SWAP(key_copy, m, n); SWAP(tok_copy, m, n); SWAP(upto_copy, m, n); SWAP(cnt_copy, m, n);    \
    SWAP(kept_copy, m, n)
#define COPY_WEIGHT(m) (((copied[m] << 4 | key_copy[m]) << 4 | tok_copy[m]) << 4 | cnt_copy[m])
#else
#define SWAP_COPIES(m, n) skip
#define COPY_WEIGHT(m) 0
#endif
#ifdef ONE_NAME
#define SWAP_PLACES(m, n)                                                                                           \
    SWAP(place, m, n); SWAP(shut, m, n); SWAP(had, m, n); SWAP(followed, m, n); SWAP(veto, m, n)
#define PLACE_WEIGHT(m) ((((place[m] << 2 | shut[m]) << 2 | had[m]) << 2 | followed[m]) << 1 | veto[m])
#else
#define SWAP_PLACES(m, n) skip
#define PLACE_WEIGHT(m) 0
#endif
#if OPS == 3
#define SWAP_THIRD(m, n) SWAP_OP(vote, 2, m, n); SWAP_OP(out, 2, m, n)
#define VOTE_WEIGHT(m) ((VOTE(0, m) << 4 | VOTE(1, m)) << 4 | VOTE(2, m))
#else
#define SWAP_THIRD(m, n) skip
#define VOTE_WEIGHT(m) (VOTE(0, m) << 4 | VOTE(1, m))
#endif
#define WEIGHT(m)                                                                                                   \
    ((((((((key[m] << 4 | tok[m]) << 3 | upto[m]) << 4 | cnt[m]) << 1 | quarantine[m]) << 1 | fresh[m]) << 3 |     \
       knows[m]) << 3 | signatures[m]) << 3 | oks[m])
#define WEIGHT2(m)                                                                                                  \
    ((((((yes[m] << 3 | old[m]) << 3 | old_yes[m]) << 3 | asked[m]) << 3 | planted[m]) << 4 | base[m]) << 8 |     \
     TOMB_WEIGHT(m))
int w[6];
inline in_order(m, n)
{
    w[0] = WEIGHT(m); w[1] = WEIGHT(n); w[2] = WEIGHT2(m); w[3] = WEIGHT2(n);
    w[4] = VOTE_WEIGHT(m) << 16 | COPY_WEIGHT(m) | PLACE_WEIGHT(m);
    w[5] = VOTE_WEIGHT(n) << 16 | COPY_WEIGHT(n) | PLACE_WEIGHT(n);
    if
    :: w[0] > w[1] || (w[0] == w[1] && (w[2] > w[3] || (w[2] == w[3] && w[4] > w[5]))) ->
        SWAP(key, m, n); SWAP(tok, m, n); SWAP(upto, m, n); SWAP(cnt, m, n);
        SWAP(quarantine, m, n); SWAP(fresh, m, n); SWAP(knows, m, n); SWAP(signatures, m, n); SWAP(base, m, n);
        SWAP(oks, m, n); SWAP(yes, m, n); SWAP(old, m, n); SWAP(old_yes, m, n);
        SWAP(asked, m, n); SWAP(planted, m, n);
        SWAP_OP(vote, 0, m, n); SWAP_OP(out, 0, m, n); SWAP_OP(vote, 1, m, n); SWAP_OP(out, 1, m, n);
        SWAP_THIRD(m, n); SWAP_TOMBS(m, n); SWAP_COPIES(m, n); SWAP_PLACES(m, n);
        x = 0
    :: else
    fi;
    w[0] = 0; w[1] = 0; w[2] = 0; w[3] = 0; w[4] = 0; w[5] = 0
}
#endif

#define OPERATION_AT(o, m) CLAIM_AT(o, m) RENEWAL_AT(o, m) PLANTING(o, m)
#if BROKERS == 2
#define BROKERS_AT(m) JOINING(0, m) JOINING(1, m) SIGNING(0, m) SIGNING(1, m)
#define ALL_CRASH CRASH(0) CRASH(1)
#else
#define BROKERS_AT(m) JOINING(0, m) JOINING(1, m) JOINING(2, m) SIGNING(0, m) SIGNING(1, m) SIGNING(2, m)
#define ALL_CRASH CRASH(0) CRASH(1) CRASH(2)
#endif
#define MASTER(m) BROKERS_AT(m) RESTART(m) COPYING(m) OPENING(m) BURYING(m) FORCING(m)
#if MASTERS == 1
#define OPERATION(o) CLAIM(o) RENEWAL(o) OPERATION_AT(o, 0) KEPT(o)
#define ALL_MASTERS MASTER(0)
#else
#define OPERATION(o) CLAIM(o) RENEWAL(o) OPERATION_AT(o, 0) OPERATION_AT(o, 1) OPERATION_AT(o, 2) KEPT(o)
#define ALL_MASTERS MASTER(0) MASTER(1) MASTER(2)
#endif

active proctype protocol()
{
#ifdef ONE_NAME /* the first one has been there for long */
    FOR_MASTERS(knows[i] = 1; place[i] = 1);
    placed[0] = 1;
#else
    FOR_MASTERS(knows[i] = BIT(BROKERS) - 1);
#endif
    do
    :: cnt[0] < START -> cnt[0] = cnt[0] + 1
#if MASTERS > 1
    :: cnt[1] < START -> cnt[1] = cnt[1] + 1
    :: cnt[2] < START -> cnt[2] = cnt[2] + 1
#endif
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
        ALL_MASTERS
        ALL_CRASH
#ifdef ONE_NAME
        PLACING(0) PLACING(1)
#endif
#ifdef PROMOTION
        PROMOTING
        SERVES_ON
#endif
        fi;
        d_step {
            tidy_operation(0); tidy_operation(1); tidy_master(0);
#if OPS == 3
            tidy_operation(2);
#endif
#if MASTERS > 1
            tidy_master(1); tidy_master(2);
#endif
            if
#if OPS == 3
            :: st[0] == ENDED && st[1] == ENDED && st[2] == ENDED -> nothing_is_left()
#else
            :: st[0] == ENDED && st[1] == ENDED -> nothing_is_left()
#endif
            :: else
            fi;
#if MASTERS > 1
#ifndef NAMED /* keep the masters apart: for trails that people read */
            in_order(0, 1); in_order(1, 2); in_order(0, 1)
#endif
#endif
        }
       }
    od
}
