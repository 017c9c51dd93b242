/*
 * dropin: conditional changes of one name by brokers that remember, for spin. README.md says in plain words what is here
 * and what is not; run.sh has the list of configurations and of the rules that can be taken out.
 *
 * Three masters, two or three brokers with EXCHANGES exchanges each: take (from free), change in place, end, hand-over,
 * each on the condition that its guess is the truth; and one that looks, again and again. The network is that of locks.pml:
 * what has been asked may arrive at each master at any later time or never, and its answer may be lost. But links keep their
 * order, and the numbers of calls shut the way to what comes late (calls.pml): so a call is executed once at most, and never
 * after a later one of its broker.
 *
 * Parts (-D): RESTART  EXPIRY. A rule that is taken out: NO_..., see there.
 */
#ifndef BROKERS
#define BROKERS 2
#endif
#ifndef EXCHANGES
#define EXCHANGES 1
#endif
#define NEED 2

/* Versions: what stands under the name is known by the operation that wrote it. 0 is "free". */
#define OLD 1  /* an earlier version of the same hold */
#define HELD 2 /* what stands there at the beginning, if anything does */
#define ID(b, i) (3 + (b) * EXCHANGES + (i))
#define VERSIONS (3 + BROKERS * EXCHANGES)
#define BIT(x) (1 << (x))
#define IN(set, x) ((set) >> (x) & 1)

byte parent[VERSIONS]; /* the guess */
byte birth[VERSIONS];  /* the operation that has taken the hold */
byte number[VERSIONS];
#define UNASKED 0
#define ASKED 1
#define CONFIRMED 2
#define REFUSED 3 /* it is certain that no majority did it: its broker may run again */
#define FAILED 4  /* nobody knows; its client is told so */
byte st[VERSIONS];
#define TAKE 1
#define CHANGE 2 /* in place */
#define END 3
#define HAND 4   /* over: a hold of its own in the place of another */
byte what[VERSIONS];

/* Of a broker */
byte n[BROKERS];      /* exchanges that it has begun */
byte memory[BROKERS];
byte answer[BROKERS * 3];
#define NONE 0
#define DONE 100
#define NOT_ASKED 101 /* or an error that proves that nothing was done */
#define SAYS(x) ((x) + 1)
int tips[BROKERS + 1]; /* what has been the truth since it began; the last one: of who looks */

/* Of a master */
byte at[3];
int served[3]; /* operations that have been executed or come too late */
int did[3];    /* those that its broker knows to have been done there */
int undone[3];
int healed[3]; /* no longer to be made whole */
int gone[3];   /* versions with a tombstone */

/* Who looks */
byte look_at, look_saw;
byte whole;    /* what a look has confirmed last: made good at the third master, at any later time */
byte third;    /* that master + 1 */
byte over_one; /* another hold that stood there */
int old_ones;  /* holds that nothing was on its way for when the look began */

/* What is true: the last confirmed version, or a later one that somebody has seen */
byte tip;
int happened; /* all that have been the tip */
int left;     /* those that were followed by "free" */
int claimed;  /* where a confirmed end is known to have done that */
int over;     /* those whose time is over */
int published;

#ifdef RESTART
byte phase; /* 1: in quarantine, 2: active again */
int before; /* asked before it */
#define VOTES(m) ((m) != 2 || phase != 1)
#else
#define VOTES(m) true
#endif

/* ---- the rules ---- */
#ifdef NO_IDENTITY /* two holds of the same floor are one */
#define NOT_LATER(x, y) (number[x] <= number[y])
#else
#define NOT_LATER(x, y) (birth[x] == birth[y] && number[x] <= number[y])
#endif
#ifdef NO_OPERATION /* the same hold is good enough */
#define MET(stands, g) (stands != 0 && birth[stands] == birth[g])
#else
#ifdef NO_AGREEMENT
#define MET(stands, g) (stands == g || (stands != 0 && NOT_LATER(stands, g)))
#else
#ifdef NO_PRESENCE /* what is absent missed a change */
#define MET(stands, g) (stands == g || stands == 0)
#else
#define MET(stands, g) (stands == g)
#endif
#endif
#endif

/* ---- the properties ---- */
byte y, u, z, found;
int path;
bit on_the_chain, was_free;

/* All that led from the tip to x has happened: into `path`. `y` is where it ended: the tip, or 0, or a rival of the tip. */
inline follow(x)
{
    y = x;
    path = 0;
    do
    :: y == tip || y == 0 || IN(happened, y) || st[y] == REFUSED -> break
    :: else -> path = path | BIT(y); y = parent[y]
    od
}

/* The tip may have ended, or what came after it: then `found` is what has. */
inline find_end()
{
    found = 0;
    u = 1;
    do
    :: u < VERSIONS ->
        z = (what[u] == END -> (st[u] == ASKED || st[u] == FAILED -> parent[u] : 0) :
                               (IN(over, u) && st[u] != REFUSED -> u : 0));
        if
        :: z != 0 ->
            follow(z);
            if
            :: y == tip -> found = z; break
            :: else
            fi
        :: else
        fi;
        u = u + 1
    :: else -> break
    od;
    u = 0; z = 0
}

/* What failed has been seen, and is put back. It may be seen again: until that has been done everywhere. */
#define STEPS_BACK (tip != 0 && st[tip] == FAILED)
inline step_back()
{
    happened = happened & ~BIT(tip);
    tip = (what[tip] == TAKE -> 0 : parent[tip])
}

inline advance(x)
{
    happened = happened | path;
    left = left & ~path;
    for (u : 0 .. BROKERS) {
        tips[u] = tips[u] | path | BIT(x)
    }
    u = 0;
    tip = x
}

/* Free now, whatever has ended it. */
inline be_free()
{
    do
    :: tip == 0 -> break
    :: else ->
        find_end();
        if
        :: found != 0 ->
            follow(found);
            advance(0);
            left = left | BIT(found)
        :: found == 0 && STEPS_BACK -> step_back()
        :: else ->
            was_free = false;
            assert(was_free);
            break
        fi
    od
}

/* The version x is true now, or has been since its broker began. */
inline be_true(x, since)
{
    if
    :: IN(since, x)
    :: else ->
        assert(st[x] != REFUSED);
        do
        :: true ->
            follow(x);
            if
            :: y == tip -> break
            :: y != tip && STEPS_BACK -> step_back()
            :: y == 0 && tip != 0 && !STEPS_BACK -> be_free()
            :: else ->
                on_the_chain = false;
                assert(on_the_chain);
                break
            fi
        od;
        advance(x)
    fi
}

/* A look is confirmed that has begun when the truth was one of `since`, or has been since. */
inline look(x, since)
{
    if
    :: x == 0 ->
        if
        :: IN(since, 0)
        :: else -> be_free()
        fi
    :: st[x] == FAILED && !IN(happened, x) /* nobody relies on it */
    :: else -> be_true(x, since)
    fi
}

/* All that may be seen now. What has failed, and what it was to follow, may be seen, be gone, and be seen again, until it has
 * been put right everywhere or somebody has built upon it; so may a hold while it is being ended. */
inline may_be_seen()
{
    y = tip;
    path = BIT(tip);
    do
    :: y != 0 && st[y] == FAILED -> y = (what[y] == TAKE -> 0 : parent[y]); path = path | BIT(y)
    :: else -> break
    od;
    u = HELD + 1;
    do
    :: u < VERSIONS ->
        path = path | (tip == 0 && (st[u] == FAILED || st[u] == ASKED) && what[u] == END && IN(left, parent[u]) ->
                           BIT(parent[u]) : 0);
        u = u + 1
    :: else -> break
    od;
    u = 0;
    do
    :: u <= BROKERS -> tips[u] = (tips[u] != 0 -> tips[u] | path : 0); u = u + 1
    :: else -> break
    od
}

inline confirm(b, x)
{
    st[x] = CONFIRMED;
    if
    :: what[x] == END ->
        if
        :: IN(left, parent[x]) && !IN(claimed, parent[x])
        :: else ->
            be_true(parent[x], BIT(tip));
            path = 0;
            advance(0)
        fi;
        left = left | BIT(parent[x]);
        claimed = claimed | BIT(parent[x]);
        memory[b] = 0
    :: else ->
        be_true(x, happened);
        memory[b] = x
    fi
}

/* Nothing that has happened relies on x, which is refused. */
inline refuse(x)
{
    st[x] = REFUSED;
    assert(!IN(happened, x));
    assert(!IN(published, x))
}

/* ---- the steps of a broker ---- */
#define NOW(b) ID(b, n[b] - 1)
#define ASKING(b) (n[b] > 0 && st[NOW(b)] == ASKED)
#define ANSWER(b, m) answer[(b) * 3 + (m)]
#define COUNT(b, which) ((ANSWER(b, 0) == which) + (ANSWER(b, 1) == which) + (ANSWER(b, 2) == which))
#define UNDONE(b, m) (ANSWER(b, m) != NONE && ANSWER(b, m) != DONE)
#define NOT_DONE(b) (UNDONE(b, 0) + UNDONE(b, 1) + UNDONE(b, 2))
#define AGREED(b, i, j) (ANSWER(b, i) == ANSWER(b, j) && ANSWER(b, i) != NONE && ANSWER(b, i) < DONE)
#define IS_AGREED(b) (AGREED(b, 0, 1) || AGREED(b, 1, 2) || AGREED(b, 0, 2))

inline ask(b, g, w)
{
    n[b] = n[b] + 1;
    st[NOW(b)] = ASKED;
    parent[NOW(b)] = g;
    what[NOW(b)] = w;
    if
    :: w == CHANGE -> birth[NOW(b)] = birth[g]; number[NOW(b)] = number[g] + 1
    :: else -> birth[NOW(b)] = NOW(b)
    fi;
    tips[b] = BIT(tip);
#ifdef NO_COMMIT_FIRST /* what a script publishes leaves before its change is confirmed */
    published = published | BIT(NOW(b))
#endif
}

inline fail(b, x)
{
    st[x] = FAILED;
    u = 0;
    do
    :: u <= BROKERS && IN(happened, x) ->
        tips[u] = (tips[u] != 0 -> tips[u] | BIT((what[x] == TAKE -> 0 : parent[x])) : 0);
        u = u + 1
    :: else -> break
    od;
    u = 0
}

inline forget_answers(b)
{
    ANSWER(b, 0) = NONE; ANSWER(b, 1) = NONE; ANSWER(b, 2) = NONE;
    tips[b] = 0
}

inline learn(b)
{
    if
    :: AGREED(b, 0, 1) || AGREED(b, 0, 2) -> y = ANSWER(b, 0) - 1
    :: else -> y = ANSWER(b, 1) - 1
    fi;
    memory[b] = y;
    look(memory[b], tips[b]);
    y = 0
}

#define ABSENT(b) COUNT(b, SAYS(0))
#ifdef NO_CERTAINTY /* one that has not done it is enough */
#define IS_REFUSED(b) (NOT_DONE(b) >= 1 && COUNT(b, DONE) < NEED)
#else
#ifdef NO_ABSENCE /* where nothing stands, nothing was ended */
#define IS_REFUSED(b) (NOT_DONE(b) >= NEED)
#else
#define IS_REFUSED(b) (what[NOW(b)] != END -> NOT_DONE(b) >= NEED :                                                   \
                           NOT_DONE(b) - ABSENT(b) >= NEED ||                                                       \
                               (COUNT(b, DONE) == 0 && (ABSENT(b) >= NEED || NOT_DONE(b) == 3)))
#endif
#endif

/* What a broker may ask: 2 take, 4 change, 8 end, 16 hand over. */
#ifndef FIRST
#define FIRST 30
#endif
#ifndef OTHERS
#define OTHERS 30
#endif
#define ASKS(b, w) ((b) == 0 -> IN(FIRST, w) : IN(OTHERS, w))

#define BROKER(b)                                                                                                   \
    :: d_step { n[b] < EXCHANGES && !ASKING(b) && ASKS(b, TAKE) -> ask(b, 0, TAKE) }                                                 \
    :: d_step { n[b] < EXCHANGES && !ASKING(b) && memory[b] != 0 && ASKS(b, CHANGE) -> ask(b, memory[b], CHANGE) }                     \
    :: d_step { n[b] < EXCHANGES && !ASKING(b) && memory[b] != 0 && ASKS(b, END) -> ask(b, memory[b], END) }                        \
    :: d_step { n[b] < EXCHANGES && !ASKING(b) && memory[b] != 0 && ASKS(b, HAND) -> ask(b, memory[b], HAND) }                       \
    GUESSES(b)                                                                                                      \
    :: d_step { ASKING(b) && COUNT(b, DONE) >= NEED && !IN(over, NOW(b)) -> confirm(b, NOW(b)); forget_answers(b) }                      \
    :: d_step { ASKING(b) && IS_REFUSED(b) ->                                                                       \
        refuse(NOW(b));                                                                                             \
        if                                                                                                          \
        :: IS_AGREED(b) -> learn(b)                                                                                 \
        :: else -> memory[b] = 0                                                                                    \
        fi;                                                                                                         \
        forget_answers(b) }                                                                                         \
    :: d_step { ASKING(b) && (COUNT(b, DONE) < NEED || IN(over, NOW(b))) -> fail(b, NOW(b)); forget_answers(b) }                      \
    AT(b, 0) AT(b, 1) AT(b, 2)

#ifdef NO_ANSWER /* the reply of a run that only looks, from the guess */
#define GUESSES(b) :: d_step { n[b] < EXCHANGES && !ASKING(b) -> look(memory[b], BIT(tip)) }
#else
#define GUESSES(b)
#endif

/* ---- what a master does ---- */
/* All that an earlier exchange of this broker has to put right here has been put right: links keep their order. */
#ifdef NO_UNDO
#define IS_RIGHT(x, m) true
#else
#define IS_RIGHT(x, m) (st[x] == CONFIRMED || IN(undone[m], x))
#endif
#if EXCHANGES == 1
#define ALL_RIGHT(b, i, m) true
#else
#if EXCHANGES == 2
#define ALL_RIGHT(b, i, m) ((i) < 1 || IS_RIGHT(ID(b, 0), m))
#else
#define ALL_RIGHT(b, i, m) (((i) < 1 || IS_RIGHT(ID(b, 0), m)) && ((i) < 2 || IS_RIGHT(ID(b, 1), m)))
#endif
#endif

#ifdef NO_TOMBS
#define IS_GONE(x, m) false
#else
#define IS_GONE(x, m) IN(gone[m], x)
#endif
#define WANTS(x, m) (!IS_GONE(x, m) && ((what[x] == TAKE && at[m] == 0) || (what[x] != TAKE && MET(at[m], parent[x]))))
#ifdef OWN_END /* of what its own broker ends no tombstone is left: the numbers of its calls shut the way */
#define BURIES(x) (what[x] == TAKE || what[x] == END -> 0 : BIT(parent[x]))
#else
#define BURIES(x) (what[x] == TAKE -> 0 : BIT(parent[x]))
#endif
#define WRITES(x) (what[x] == END -> 0 : x)
#ifdef NO_ONCE /* a copy of a call is executed as the call was */
#define FRESH(x, m) (!IN(undone[m], x))
#else
#define FRESH(x, m) (!IN(served[m], x))
#endif

/* The way is shut to all earlier exchanges of this broker. */
inline serve(b, i, m)
{
    u = 0;
    do
    :: u < i -> served[m] = served[m] | BIT(ID(b, u)); healed[m] = healed[m] | BIT(ID(b, u)); u = u + 1
    :: else -> break
    od;
    served[m] = served[m] | BIT(ID(b, i));
    u = 0
}

#define ARRIVE_UNHEARD(b, i, m)                                                                                     \
    :: d_step { n[b] > (i) && FRESH(ID(b, i), m) && VOTES(m) && ALL_RIGHT(b, i, m) && WANTS(ID(b, i), m) &&         \
                    !IN(over, ID(b, i)) ->                                                                          \
        at[m] = WRITES(ID(b, i)); gone[m] = gone[m] | BURIES(ID(b, i));                                                                                       \
        serve(b, i, m) }

#ifdef NO_HEAL_CONDITION /* whatever stands there missed a change */
#define MISSED(x, m) true
#else
#define MISSED(x, m) (at[m] != 0 && (at[m] == parent[x] || (parent[x] != 0 && NOT_LATER(at[m], parent[x])) ||       \
                                     (what[x] != END && NOT_LATER(at[m], x))))
#endif
#ifdef PLANTING
#define PLANTS(x, m) (at[m] == 0 && what[x] != END)
#else
#define PLANTS(x, m) false
#endif
/* What a majority has confirmed, where it is missing: no vote. */
#define HEAL_ONE(x, m)                                                                                              \
    :: d_step { st[x] == CONFIRMED && !IN(healed[m], x) && !IN(did[m], x) && !IN(over, x) ->                        \
        healed[m] = healed[m] | BIT(x);                                                                             \
        served[m] = served[m] | BIT(x);                                                                             \
        if                                                                                                          \
        :: at[m] != x && !IS_GONE(x, m) && (MISSED(x, m) || PLANTS(x, m)) ->                      \
            at[m] = WRITES(x); gone[m] = gone[m] | BURIES(x)                                                        \
        :: else                                                                                                     \
        fi }

#ifdef NO_STANDING /* whatever stands there is put back */
#define STILL_OURS(x, m) (IN(did[m], x) || at[m] == x)
#else
#define STILL_OURS(x, m) (at[m] == x)
#endif
#define ENDED_BY(x, m) (IN(did[m], x) && at[m] == 0)
#ifdef NO_PURSUIT /* also an end that may have been seen is put back */
#define IS_PURSUED(x) false
#else
#define IS_PURSUED(x) (what[x] == END && st[x] == FAILED)
#endif

#ifdef NO_UNDO
#define UNDO_ONE(x, m)
#else
#define UNDO_ONE(x, m)                                                                                              \
    :: d_step { (st[x] == REFUSED || st[x] == FAILED) && !IN(undone[m], x) ->                                       \
        undone[m] = undone[m] | BIT(x);                                                                             \
        served[m] = served[m] | BIT(x);                                                                             \
        if                                                                                                          \
        :: what[x] == TAKE -> at[m] = (at[m] == x -> 0 : at[m])                                                     \
        :: IS_PURSUED(x) ->                                                                                         \
            at[m] = (at[m] == parent[x] -> 0 : at[m]); gone[m] = gone[m] | BURIES(x)                                \
        :: what[x] == END && !IS_PURSUED(x) && ENDED_BY(x, m) && !IN(over, parent[x]) ->                                    \
            at[m] = parent[x]; gone[m] = gone[m] & ~BURIES(x)             \
        :: (what[x] == CHANGE || what[x] == HAND) && STILL_OURS(x, m) ->                                            \
            at[m] = parent[x]; gone[m] = gone[m] & ~BURIES(x)                                                       \
        :: else                                                                                                     \
        fi;                                                                                                         \
        did[m] = did[m] & ~BIT(x) }
#endif
#if EXCHANGES == 1
#define ANY_TIME(b, m) ARRIVE_UNHEARD(b, 0, m) UNDO_ONE(ID(b, 0), m) HEAL_ONE(ID(b, 0), m)
#else
#if EXCHANGES == 2
#define ANY_TIME(b, m)                                                                                              \
    ARRIVE_UNHEARD(b, 0, m) ARRIVE_UNHEARD(b, 1, m) UNDO_ONE(ID(b, 0), m) UNDO_ONE(ID(b, 1), m)                     \
    HEAL_ONE(ID(b, 0), m) HEAL_ONE(ID(b, 1), m)
#else
#define ANY_TIME(b, m)                                                                                              \
    ARRIVE_UNHEARD(b, 0, m) ARRIVE_UNHEARD(b, 1, m) ARRIVE_UNHEARD(b, 2, m)                                         \
    UNDO_ONE(ID(b, 0), m) UNDO_ONE(ID(b, 1), m) UNDO_ONE(ID(b, 2), m)                                               \
    HEAL_ONE(ID(b, 0), m) HEAL_ONE(ID(b, 1), m) HEAL_ONE(ID(b, 2), m)
#endif
#endif

/* What this broker took before and is not to have. */
#define LEFT_BEHIND(b, m)                                                                                           \
    (at[m] > HELD && at[m] != NOW(b) && at[m] >= ID(b, 0) && at[m] < NOW(b) && st[at[m]] == REFUSED)

#define AT(b, m)                                                                                                    \
    :: d_step { ASKING(b) && !IN(served[m], NOW(b)) && VOTES(m) && !IN(over, NOW(b)) &&                             \
                    ALL_RIGHT(b, n[b] - 1, m) ->                                                                    \
        serve(b, n[b] - 1, m);                                                                                      \
        assert(!LEFT_BEHIND(b, m));                                                                                 \
        if                                                                                                          \
        :: WANTS(NOW(b), m) ->                                                                                      \
            at[m] = WRITES(NOW(b)); gone[m] = gone[m] | BURIES(NOW(b));                                             \
            ANSWER(b, m) = DONE; did[m] = did[m] | BIT(NOW(b))                                                      \
        :: else ->                                                                                                  \
            ANSWER(b, m) = SAYS(at[m]); gone[m] = gone[m] | (at[m] == 0 -> BURIES(NOW(b)) : 0)                      \
        fi }                                                                                                        \
    :: d_step { ASKING(b) && !VOTES(m) && ANSWER(b, m) == NONE && !IN(served[m], NOW(b)) ->                         \
        served[m] = served[m] | BIT(NOW(b));                                                                        \
        ANSWER(b, m) = NOT_ASKED }                                                                                  \
    ANY_TIME(b, m)

/* ---- who looks ---- */
#define LOOKER BROKERS
#ifndef LOOKS
#define LOOK(m)
#else
#define LOOK(m)                                                                                                     \
    :: d_step { look_at == 0 && VOTES(m) -> look_at = (m) + 1; look_saw = at[m]; tips[LOOKER] = BIT(tip); BEGINS }  \
    :: d_step { look_at != 0 && look_at != (m) + 1 && VOTES(m) && LOOKS_SAME(at[m]) ->                              \
        look(look_saw, tips[LOOKER]);                                                                               \
        memory[BROKERS - 1] = look_saw; SEES_WHOLE(m)                                                                \
        look_at = 0; look_saw = 0; tips[LOOKER] = 0 }                                                               \
    TAKE_LATEST(m) MAKE_WHOLE(m)
#ifdef NO_AGREEMENT /* of two versions of one hold the later one is taken for the truth, and for a vote */
#define TAKE_LATEST(m)                                                                                              \
    :: d_step { look_at != 0 && look_at != (m) + 1 && at[m] != 0 && look_saw != 0 && at[m] != look_saw &&           \
                    birth[at[m]] == birth[look_saw] ->                                                              \
        memory[BROKERS - 1] = (number[at[m]] > number[look_saw] -> at[m] : look_saw);                               \
        look_at = 0; look_saw = 0; tips[LOOKER] = 0 }
#else
#define TAKE_LATEST(m)
#endif
#endif
#ifdef LOOKS_HEAL
#define SEES_WHOLE(m) sees_whole(m);
#define MAKE_WHOLE(m)                                                                                               \
    :: d_step { whole != 0 && third == (m) + 1 && at[m] != whole && !IS_GONE(whole, m) && !IN(over, whole) &&       \
                    ((at[m] != 0 && IS_EARLIER(at[m], whole)) || LOOKER_PLANTS(m) || (at[m] != 0 && at[m] == over_one)) -> \
        at[m] = whole }
#else
#define SEES_WHOLE(m)
#define MAKE_WHOLE(m)
#endif
#ifdef NO_LESS /* also one of the same number: what a look has seen may have been put back */
#define IS_EARLIER(x, y) NOT_LATER(x, y)
#else
#define IS_EARLIER(x, y) (NOT_LATER(x, y) && number[x] < number[y])
#endif
#ifdef NO_OWNER /* whoever looks plants what is absent, though its own broker may be ending it */
#define LOOKER_PLANTS(m) (at[m] == 0)
#else
#define LOOKER_PLANTS(m) false
#endif
/* What else stands there, if nothing is on its way for it: none of it comes to a master that has not had it yet, and its broker
 * waits for no answer. */
#ifdef NO_WAITING /* it is overwritten at once */
#define IS_OVER(x) true
#else
#define IS_OVER(x) (st[x] != ASKED && IN(served[0] & served[1] & served[2], x))
#endif
#ifdef OVERWRITES
#define BEGINS old_ones = OLD_ONE(0) | OLD_ONE(1) | OLD_ONE(2)
#define OLD_ONE(m) (at[m] != 0 && IS_OVER(at[m]) -> BIT(at[m]) : 0)
#define IS_RIVAL(x, y) (x != 0 && x != y && !IS_EARLIER(x, y))
#else
#define BEGINS skip
#define IS_RIVAL(x, y) false
#endif
inline sees_whole(m)
{
    whole = look_saw;
    third = (whole != 0 -> 4 - (look_at - 1) - (m) : 0);
    over_one = (whole != 0 && IS_RIVAL(at[third - 1], whole) && IN(old_ones, at[third - 1]) -> at[third - 1] : 0);
    old_ones = 0
}
#ifdef NO_EXACT_LOOK /* an earlier version confirms it */
#define LOOKS_SAME(x) (x == look_saw || (x != 0 && look_saw != 0 && NOT_LATER(x, look_saw)))
#else
#define LOOKS_SAME(x) (x == look_saw)
#endif

/* ---- time, restarts ---- */
#if defined(EXPIRY) || defined(RESTART)
#define EXPIRE(m) :: d_step { at[m] != 0 && IN(over, at[m]) -> at[m] = 0 }
#else
#define EXPIRE(m)
#endif
#ifdef EXPIRY
#define TIME(m) :: d_step { at[m] != 0 && !IN(over, at[m]) -> over = over | BIT(at[m]) }
#else
#define TIME(m)
#endif
#ifdef RESTART
#ifdef NO_QUARANTINE
#define ALL_OVER true
#else
#define ALL_OVER ((before & ~over) == 0)
#endif
inline all_asked()
{
    before = BIT(OLD) | BIT(HELD);
    u = HELD + 1;
    do
    :: u < VERSIONS ->
        if
        :: st[u] != UNASKED ->
            served[2] = served[2] | BIT(u);
            if
            :: what[u] != END -> before = before | BIT(u)
            :: else
            fi
        :: else
        fi;
        u = u + 1
    :: else -> break
    od;
    u = 0
}
#define RESTARTS                                                                                                    \
    :: d_step { phase == 0 -> phase = 1; at[2] = 0; all_asked(); undone[2] = served[2]; healed[2] = served[2]; did[2] = 0; gone[2] = 0 } \
    :: d_step { phase == 1 && !ALL_OVER -> over = over | before }                                                   \
    :: d_step { phase == 1 && ALL_OVER -> phase = 2; before = 0 }
#else
#define RESTARTS
#endif

/* Masters are alike: of states that differ only in their order one is enough. */
byte x;
int w;
#define SWAP(a, i, j) w = a[i]; a[i] = a[j]; a[j] = w
#define SWAP_ANSWERS(b, i, j) SWAP(answer, (b) * 3 + i, (b) * 3 + j)
#if BROKERS == 3
#define LATER_ANSWER(i, j) (ANSWER(2, i) > ANSWER(2, j))
#define SWAP_MORE(i, j) SWAP_ANSWERS(2, i, j)
#else
#define LATER_ANSWER(i, j) false
#define SWAP_MORE(i, j) skip
#endif
#define WEIGHT(m)                                                                                                   \
    (((ANSWER(0, m) << 7 | ANSWER(1, m)) << 4 | at[m]) << 2 | (look_at == (m) + 1) << 1 | (third == (m) + 1))
#define BEFORE(i, j)                                                                                                \
    (WEIGHT(i) > WEIGHT(j) ||                                                                                       \
     (WEIGHT(i) == WEIGHT(j) &&                                                                                     \
      (served[i] > served[j] ||                                                                                     \
       (served[i] == served[j] &&                                                                                   \
        (undone[i] > undone[j] ||                                                                                   \
         (undone[i] == undone[j] &&                                                                                  \
          (did[i] > did[j] ||                                                                                       \
           (did[i] == did[j] &&                                                                                     \
            (healed[i] > healed[j] || (healed[i] == healed[j] &&                                                    \
             (gone[i] > gone[j] || (gone[i] == gone[j] && LATER_ANSWER(i, j)))))))))))))
inline in_order(i, j)
{
    if
    :: BEFORE(i, j) ->
        SWAP(at, i, j); SWAP(served, i, j); SWAP(undone, i, j); SWAP(did, i, j);
        SWAP(healed, i, j); SWAP(gone, i, j);
        SWAP_ANSWERS(0, i, j);
        SWAP_ANSWERS(1, i, j);
        SWAP_MORE(i, j);
        if
        :: look_at == (i) + 1 -> look_at = (j) + 1
        :: look_at == (j) + 1 -> look_at = (i) + 1
        :: else
        fi;
        if
        :: third == (i) + 1 -> third = (j) + 1
        :: third == (j) + 1 -> third = (i) + 1
        :: else
        fi;
        w = 0
    :: else
    fi
}

init
{
    birth[OLD] = OLD; birth[HELD] = OLD; number[HELD] = 1; parent[HELD] = OLD;
    st[OLD] = CONFIRMED; st[HELD] = CONFIRMED; what[OLD] = TAKE; what[HELD] = CHANGE;
    happened = BIT(OLD) | BIT(HELD);
    if
#ifndef HELD_FIRST
    :: tip = 0; left = BIT(HELD); claimed = BIT(HELD);
        if
        :: true
        :: at[2] = HELD
        :: at[2] = OLD
        fi
#endif
#ifndef FREE_FIRST
    :: tip = HELD; at[0] = HELD; at[1] = HELD; memory[0] = HELD;
        if
        :: true
        :: at[2] = HELD
        :: at[2] = OLD
        :: at[2] = HELD; at[1] = 0
        fi
#endif
    fi;
    for (u : 1 .. BROKERS - 1) {
        if
        :: true
#if OTHERS != 2
        :: memory[u] = HELD
        :: memory[u] = OLD
#endif
        fi
    }
    u = 0;
    do
    :: atomic {
        if
        BROKER(0)
#if BROKERS > 1
        BROKER(1)
#endif
#if BROKERS > 2
        BROKER(2)
#endif
        LOOK(0) LOOK(1) LOOK(2)
        EXPIRE(0) EXPIRE(1) EXPIRE(2)
        TIME(0) TIME(1) TIME(2)
        RESTARTS
        fi;
        d_step {
            may_be_seen();
            y = 0; z = 0; u = 0; found = 0; path = 0;
#ifndef NAMED /* keep the masters apart: for trails that people read */
            in_order(0, 1);
#ifndef RESTART
            in_order(1, 2);
            in_order(0, 1);
#endif
            x = 0
#endif
        }
       }
    od
}
