#pragma once
/*
 * truth: what is known to stand under a name, as masters have said it. Copies of a truth share its
 * text, which never changes: it is counted.
 */
#include <stddef.h>
#include <stdint.h>

enum { DROPIN_STATE_MAX = 4096, DROPIN_OP_MAX = 63 };

enum truth_kind {
    TRUTH_UNKNOWN,
    TRUTH_FREE,
    TRUTH_DROPIN,  /* text is a state (state.h) */
    TRUTH_NATIVE,  /* held by LOCK: text is the owner; "" for readers and permits */
    TRUTH_PLAIN,   /* held by a program that does not use holdfast (R23): text is a state */
    TRUTH_FOREIGN, /* something that is no hold stands there */
    TRUTH_SPLIT,   /* no majority agrees: somebody has it or is about to, and nobody knows who */
};

struct truth_text {
    uint32_t refs, len;
    char bytes[];
};

struct truth {
    uint8_t kind;                  /* enum truth_kind */
    char op[DROPIN_OP_MAX + 1];    /* of whichever broker; "" unless DROPIN or NATIVE */
    int64_t token, number;         /* of its version: see lua/hold.lua */
    char birth[DROPIN_OP_MAX + 1]; /* the operation that took it: no other hold has it */
    int64_t fence;                 /* its fencing token */
    int64_t expires_ms;            /* by our clock (BOOTTIME): the least that a majority says */
    int64_t slack_ms;              /* by so much later, at most, it is over */
    struct truth_text *text;       /* any bytes, one reference; NULL: none */
};

/* Makes a text with one reference; NULL when it is empty. */
struct truth_text *truth_text_new(const char *bytes, size_t len);
struct truth_text *truth_text_ref(struct truth_text *); /* also NULL */
void truth_text_unref(struct truth_text *);             /* also NULL */

/* Each of these takes a truth that has been initialised, by zeros or by one of them. */
void truth_copy(struct truth *to, const struct truth *from);
/* Makes it one of this kind, of which nothing else is known. */
void truth_set(struct truth *, enum truth_kind);
void truth_set_text(struct truth *, const char *bytes, size_t len);
void truth_fini(struct truth *);

/* Returns when it is over on all masters that have it. */
static inline int64_t truth_over_ms(const struct truth *t)
{
    return t->expires_ms + t->slack_ms;
}

static inline const char *truth_bytes(const struct truth *t)
{
    return t->text ? t->text->bytes : "";
}

static inline size_t truth_len(const struct truth *t)
{
    return t->text ? t->text->len : 0;
}
