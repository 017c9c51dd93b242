#pragma once
/*
 * fake_mutations: deliberate mistakes, one at a time, each of which the simulation has to find.
 * Those in the scripts are changes of their text, made here; those in the broker are in
 * tests/sim/mutants.c.
 */
#include "redis/script.h"

enum fake_mutation {
    FAKE_AS_IT_SHOULD_BE,
    FAKE_COMMIT_ANYWHERE, /* writes the token back without looking who holds */
    FAKE_COMMIT_LOWERS,
    FAKE_NO_TOMBS,
    FAKE_OLD_CALLS, /* a copy of an earlier call does what it says */
    FAKE_NO_DEADLINE,
    FAKE_NO_QUARANTINE,
    FAKE_RELEASE_ANY, /* an undo frees whatever is there */
    FAKE_RENEW_CREATES,
    FAKE_PLANT_ANYWHERE,  /* over a hold of somebody else */
    FAKE_REPEAT_COUNTS,   /* an operation seen again takes the lock once more */
    FAKE_SEQ_IGNORED,     /* an old count overwrites a newer one */
    FAKE_NO_FLOOR,        /* counters begin where they begin */
    FAKE_SCRIPTS_SURVIVE, /* a restart goes unnoticed */
    FAKE_TAKEOVER_KEEPS_TOKEN,
    FAKE_LATE_COPIES,     /* of two operations of one broker the later to arrive wins */
    FAKE_JUMPS_UNSEEN,    /* nobody looks at the clocks of the masters */
    FAKE_SETTINGS_UNSEEN, /* other settings are refused at joining only */
    FAKE_VETO_UNHEARD,    /* who refuses a broker for them is one vote less, and no more */
    FAKE_READERS_UNSEEN,  /* who wants a lock alone does not look whether others read */
    FAKE_WRITER_UNSEEN,   /* a reader does not look whether somebody has it alone */
    FAKE_PERMIT_TWICE,    /* a permit that is taken is given away again */
    FAKE_GROUP_IN_PARTS,  /* of an all-or-none group the free ones are taken */
    FAKE_GUESS_UNSEEN,    /* drop-in: what stands there need not be what was guessed */
    FAKE_ABSENT_IS_MET,   /* what is absent has missed a change */
    FAKE_NUMBER_UNSEEN,   /* it need only have been written by the same broker */
    FAKE_BACK_ANYWHERE,   /* what was ended comes back where it was not ended by this */
    FAKE_FLOOR_IS_HOLD,   /* two holds that were asked for with the same floor are one */
    FAKE_HEALS_ANY,       /* a change goes over another hold than the one that it was made of */
    FAKE_PLANTED_COUNTS,  /* what was planted in quarantine is a vote at once */
    FAKE_PLANT_STAYS,     /* what an old copy has of it is left as it is */
    FAKE_COPY_WINS,       /* what an old copy has of others beats it */
    FAKE_OLDER_WINS,      /* of two that were planted the later to come wins */
    FAKE_PLANT_SHORTENS,  /* what replaces another one has its own time only */
    FAKE_LIVES_FORGOTTEN, /* nobody remembers that another server stood in for one */
    FAKE_ONE_UNSIGNED,    /* a quarantine ends though one broker has not signed */
    FAKE_NO_HIGHEST,      /* ... and tokens go on from anywhere */
    FAKE_NAME_TWICE,      /* who had a name before goes on */
    /* in what is known of Sentinels: fake_sentinels.c, fake_master.c */
    FAKE_WORDS_FOR_EVER,        /* a master counts however long nobody has named it */
    FAKE_PROMOTED_IS_RESTARTED, /* its quarantine is no longer than that of a restarted one */
    FAKE_PLANTED_BEFORE_NAMED,  /* what is planted there counts when no claim is open any more */
    /* in the broker, not in the scripts: tests/sim/mutants.c */
    FAKE_QUORUM_OF_CONNECTED,
    FAKE_NO_COMMIT,
    FAKE_VALID_FROM_ANSWER,
    FAKE_TOLD_LATE,
    FAKE_IDS_TWICE,
    FAKE_NO_UNDO,
    FAKE_SIGNS_FIRST,        /* before what it remembers has been planted */
    FAKE_SHORT_MEMORY,       /* though it has just begun */
    FAKE_NO_GRAVES,          /* what was ended for another broker is forgotten */
    FAKE_FORMER_LIFE,        /* a master that has forgotten what it said is believed all the same */
    FAKE_REPLY_OF_GUESS,     /* drop-in: the reply of a run that the masters have refused */
    FAKE_PUBLISH_FIRST,      /* before they have confirmed it */
    FAKE_NEVER_PUT_BACK,     /* what was refused stays where it was done */
    FAKE_LATEST_IS_TRUTH,    /* the latest version of all when they are split */
    FAKE_REFUSED_BY_ANSWERS, /* a majority has answered, and a majority may have done it */
    FAKE_MUTATIONS
};
extern enum fake_mutation fake_mutation; /* set before the first script runs */
extern const char *const fake_mutation_names[FAKE_MUTATIONS];

/* The script with the mistake of `fake_mutation` in it. Takes `text` (heap) and returns it or
 * another one, which the caller frees. A mistake whose place is no longer in the script ends the
 * test by abort(). */
char *fake_mutate(enum script script, char *text);
