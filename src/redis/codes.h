#pragma once
/*
 * codes: the numbers by which scripts answer, for C and for Lua.
 *
 * lua/embed.awk makes the locals of a script from them, under the same names: `--@ codes acquire`
 * there stands for all of enum acquire_code. So each line is one name, one number and, when the
 * name does not say it, one comment.
 *
 * The code of an item is the first integer of its answer. The script's first comment says what
 * stands behind it.
 */

/* Of every script that is asked for votes: yes, the vote counts for a majority. */
enum { CODE_YES = 1 };

enum acquire_code {
    ACQUIRE_ALL_NEEDED = -5, /* free, but another one of its group is not */
    ACQUIRE_DEADLOCK = -4,   /* a reader wants it alone, as another reader does */
    ACQUIRE_OTHER_KIND = -3, /* in use as another kind, see enum in_use_code */
    ACQUIRE_FOREIGN = -2,    /* something else than a hold stands under its key */
    ACQUIRE_GONE = -1,       /* the operation has ended, or is older than what holds */
    ACQUIRE_HELD = 0,        /* by another owner; or free, and another one's turn */
    ACQUIRE_TAKEN = 1,
    ACQUIRE_SAME_OWNER = 2,   /* held by this owner, under an operation of another broker */
    ACQUIRE_OTHER_PERMIT = 3, /* this permit is taken, and that one is not */
};

/* What ACQUIRE_OTHER_KIND says of those who have it; n permits: n. */
enum in_use_code {
    IN_USE_SHARED = -1,
    IN_USE_EXCLUSIVE = 0,
};

enum exchange_code {
    EXCHANGE_PLAIN = -5,      /* held by a program that does not use holdfast (R23) */
    EXCHANGE_ALL_NEEDED = -4, /* as expected, but another one of its group is not */
    EXCHANGE_FOREIGN = -3,    /* something else than a hold stands under its key */
    EXCHANGE_SHARED = -2,     /* readers or permits have it */
    EXCHANGE_GONE = -1,       /* the operation has ended */
    EXCHANGE_OTHER = 0,       /* not what was expected */
    EXCHANGE_DONE = 1,
};

enum commit_code {
    COMMIT_MISSING = 0,
    COMMIT_WRITTEN = 1,
    COMMIT_LARGER = 2, /* the hold has a larger token */
};

enum takeover_code {
    TAKEOVER_GONE = -1,   /* the operation has ended, or is older than what holds */
    TAKEOVER_NOT_OWN = 0, /* this owner has no such hold */
    TAKEOVER_TAKEN = 1,
};

/* Which part of a lock an owner has; permit i of n: n * SHARE_PERMIT + i. */
enum share_code {
    SHARE_WHOLE = 0,
    SHARE_READER = 1,
    SHARE_PERMIT = 65536,
};

enum renew_code {
    RENEW_FORGOTTEN = -4, /* in quarantine, and not planted in this life */
    RENEW_EARLY = -3,     /* planted in this life, too short a time ago */
    RENEW_MOVED = -2,     /* taken over under another operation */
    RENEW_OTHER = -1,     /* held under another operation */
    RENEW_MISSING = 0,
    RENEW_HELD = 1,
    RENEW_PLANTED = 2, /* in quarantine, and planted in this life */
};

enum plant_code {
    PLANT_REFUSED = 0, /* somebody has it, or the operation has ended */
    PLANT_THERE = 1,
};

enum replant_code {
    REPLANT_REFUSED = 0, /* the operation has ended, or the key is no lock */
    REPLANT_THERE = 1,
    REPLANT_NEWER = 2, /* somebody has it who was planted in this life, by a later token */
    REPLANT_NONE = 3,  /* no new life has begun, or its quarantine is over */
};

enum release_code {
    RELEASE_OTHER = -1, /* held under another operation */
    RELEASE_MISSING = 0,
    RELEASE_ENDED = 1,
};

enum pass_code {
    PASS_HELD = 0, /* somebody has it as a whole */
    PASS_FREE = 1,
};
