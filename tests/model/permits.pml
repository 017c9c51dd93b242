/*
 * permits: the tokens of shares of one lock, for spin. Readers, or permits of one lock, are asked for and granted at the
 * same time, each with a majority of its own; of locks.pml's rules only those for tokens are here (README.md).
 *
 * Three masters, OPS shares that exclude each other in nothing. Requests and answers may be late, come several times, or
 * get lost. Properties: no token is given twice, and a share that was asked for after another one had been granted has
 * the larger token.
 *
 * NO_STRICT: a commit does not look whether the master may have given the token to another share.
 */
#ifndef OPS
#define OPS 3
#endif
#ifndef TOP
#define TOP 5 /* no counter goes beyond it */
#endif
#ifndef START
#define START 1 /* counters begin anywhere up to it */
#endif

#define IDLE 0
#define ASKING 1
#define COMMITTING 2
#define HELD 3
byte st[OPS];
byte token[OPS];     /* of the commit round */
byte token1[OPS];    /* of the one before: its requests may still arrive */
byte begun[OPS];     /* highest token granted when it was asked for */
byte votes[OPS * 3]; /* token that this master has answered, and the broker has seen; 0: none */
byte oks[OPS];       /* masters of whose commit round it has a vote, as bits */
byte tok[OPS * 3];   /* of the share on this master; 0: it is not there */
byte cnt[3];

byte hi;   /* highest token granted */
int given; /* all of them, as bits */
byte o, m, t, n, k;

#define AT (o * 3 + m)
#define COUNT(x) (((x) & 1) + ((x) >> 1 & 1) + ((x) >> 2 & 1))

inline grant()
{
    assert(!(given >> t & 1));
    assert(t > begun[o]);
    given = given | (1 << t);
    hi = (t > hi -> t : hi);
    st[o] = HELD
}

/* What a majority, or all, have answered so far decides. */
inline decide()
{
    t = 0;
    for (k : 0 .. 2) {
        t = (votes[o * 3 + k] > t -> votes[o * 3 + k] : t)
    }
    n = 0;
    for (k : 0 .. 2) {
        n = n + (votes[o * 3 + k] == t)
    }
    if
    :: n >= 2 -> grant()
    :: else -> st[o] = COMMITTING; token[o] = t; oks[o] = 0
    fi
}

/* commit.lua for token t at master m; n: the larger one that it answers, or 0. */
inline commit()
{
    n = 0;
    if
    :: tok[AT] > t -> n = tok[AT]
#ifndef NO_STRICT
    :: tok[AT] < t && cnt[m] >= t -> cnt[m]++; tok[AT] = cnt[m]; n = cnt[m]
    :: tok[AT] < t && cnt[m] < t -> tok[AT] = t; cnt[m] = t
#else
    :: tok[AT] < t -> tok[AT] = t; cnt[m] = (cnt[m] < t -> t : cnt[m])
#endif
    :: tok[AT] == t -> skip
    fi
}

inline see_commit()
{
    if
    :: n > 0 -> token1[o] = token[o]; token[o] = n; oks[o] = 0
    :: else ->
        oks[o] = oks[o] | (1 << m);
        if
        :: COUNT(oks[o]) >= 2 -> grant()
        :: else
        fi
    fi
}

init
{
    d_step {
        m = 0
    }
    do
    :: m < 3 -> atomic { select(t : 0 .. START); cnt[m] = t; m++ }
    :: else -> break
    od;
    do
    :: atomic {
        select(o : 0 .. OPS - 1);
        select(m : 0 .. 2);
        if
        :: st[o] == IDLE -> st[o] = ASKING; begun[o] = hi
        :: st[o] != IDLE && tok[AT] == 0 && cnt[m] < TOP -> cnt[m]++; tok[AT] = cnt[m]
        :: st[o] == ASKING && tok[AT] != 0 && votes[AT] == 0 -> votes[AT] = tok[AT]
        :: st[o] == ASKING && (votes[o * 3] != 0) + (votes[o * 3 + 1] != 0) + (votes[o * 3 + 2] != 0) >= 2 -> decide()
        :: st[o] == COMMITTING && tok[AT] != 0 && cnt[m] < TOP -> t = token[o]; commit(); see_commit()
        :: st[o] >= COMMITTING && tok[AT] != 0 && token[o] != 0 && cnt[m] < TOP -> t = token[o]; commit() /* unseen */
        :: st[o] >= COMMITTING && tok[AT] != 0 && token1[o] != 0 && cnt[m] < TOP -> t = token1[o]; commit() /* late */
        :: else -> skip
        fi;
        o = 0; m = 0; t = 0; n = 0; k = 0
    }
    od
}
