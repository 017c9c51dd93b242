/*
 * calls: numbers in the place of tombstones, for spin. One broker and one master; the calls about one lock, each with one
 * item. README.md says in plain words what is here and what is not; run.sh has what can be taken out.
 *
 * What has been sent may arrive at any later time, any number of times, or never; so its answers may be late or get lost
 * too, and the broker knows of nothing that it has not seen. It asks anew only when the operation before has ended, and
 * says that an operation has ended as often as it likes. Somebody else may end one by force at any time, and any key may
 * expire.
 *
 * Property: where an operation has been ended, its key never comes back.
 *
 * NO_..., each a rule that is taken out: see there.
 */
#ifndef OPS
#define OPS 2
#endif
#ifndef CALLS
#define CALLS 5
#endif

#define ACQUIRE 1
#define RELEASE 2
#define PLANT 3

/* ---- the broker ---- */
#define IDLE 0
#define ASKED 1
#define HELD 2
#define ENDED 3
byte st[OPS];
byte kind[CALLS], about[CALLS], number[CALLS]; /* of the calls that were sent */
byte sent;

/* ---- the master ---- */
byte key;  /* operation + 1, 0: free */
byte last; /* number of the last call that took or released something */
byte tombs, gone; /* operations, as bits */

byte o, c;

inline send(what)
{
    kind[sent] = what;
    about[sent] = o;
#ifdef NO_NEW_NUMBER /* for a release */
    number[sent] = (what == RELEASE -> number[sent - 1] : sent + 1);
#else
    number[sent] = sent + 1;
#endif
    sent++
}

/* The key of operation o comes into being. */
inline put()
{
    assert(!(gone >> o & 1));
    key = o + 1
}

inline end_there()
{
    key = (key == o + 1 -> 0 : key);
    gone = gone | (1 << o)
}

#ifdef NO_NUMBERS
#define IS_REPEATED(what) false
#elif defined(NO_NUMBERS_FOR_PLANTS)
#define IS_REPEATED(what) (what != PLANT && number[c] < last)
#else
#define IS_REPEATED(what) (number[c] < last)
#endif

inline remember()
{
    last = (number[c] > last -> number[c] : last)
}

/* A call arrives, once more perhaps. */
inline arrives()
{
    o = about[c];
    if
    :: kind[c] == RELEASE ->
#ifndef NO_NUMBER_OF_RELEASES
        remember();
#endif
        end_there()
    :: kind[c] != RELEASE && IS_REPEATED(kind[c]) -> skip
    :: kind[c] == ACQUIRE && !IS_REPEATED(ACQUIRE) ->
        remember();
        if
        :: key == o + 1 || tombs >> o & 1 -> skip
        :: key == 0 && !(tombs >> o & 1) -> put()
        :: key > o + 1 && !(tombs >> o & 1) -> skip /* an older try */
        :: key != 0 && key < o + 1 && !(tombs >> o & 1) -> key = 0; put() /* that was given up */
        fi
    :: kind[c] == PLANT && !IS_REPEATED(PLANT) ->
        if
        :: key == 0 && !(tombs >> o & 1) -> put()
        :: else
        fi
    fi
}

init
{
    do
    :: atomic {
        select(o : 0 .. OPS - 1);
        select(c : 0 .. CALLS - 1);
        if
        :: sent < CALLS && st[o] == IDLE && (o == 0 || st[(o == 0 -> 0 : o - 1)] == ENDED) -> st[o] = ASKED; send(ACQUIRE)
        :: st[o] == ASKED && key == o + 1 -> st[o] = HELD
        :: sent < CALLS && st[o] == HELD -> send(PLANT)
        :: sent < CALLS && (st[o] == ASKED || st[o] == HELD || st[o] == ENDED) -> st[o] = ENDED; send(RELEASE)
#ifdef NO_LAST_WORD
        :: sent < CALLS && st[o] == ENDED -> send(PLANT)
#endif
        :: c < sent -> arrives()
        :: st[o] != IDLE -> /* by force */
#ifndef NO_TOMB
            tombs = tombs | (1 << o);
#endif
            end_there()
        :: key != 0 -> key = 0
#ifdef NO_HOUR /* the number is forgotten while calls are under way */
        :: last != 0 -> last = 0
#endif
        :: else -> skip
        fi;
        o = 0; c = 0
    }
    od
}
