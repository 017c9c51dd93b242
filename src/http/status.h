#pragma once
/*
 * status: makes the JSON that fills the status page from a view of the broker. Pure: whoever fills
 * the view knows where things come from.
 */
#include <stddef.h>
#include <stdint.h>

#include "lock/view.h"

struct buf;
struct stats_gauges;

enum {
    HTTP_SAMPLES = 60, /* of a second each, for the curves */
    HTTP_ROWS = 10,    /* of the lists of waiters and of holds */
    HTTP_FOUND = 20    /* locks of a search that one answer shows, about */
};

/* A hold of a client that is connected, or by commands of Redis; or a request that waits. */
struct http_row {
    const char *name; /* of the lock, no NUL behind it */
    size_t name_len;
    uint64_t client;
    const char *peer, *client_name; /* address; CLIENT SETNAME or NULL */
    int64_t since_ms;               /* held or waited for so long */
    int64_t left_ms;                /* holds: until its lease ends */
    uint32_t waiters;               /* holds: of this broker */
    uint32_t holders;               /* holds: likewise, this one among them */
    const char *state, *library;    /* holds by commands of Redis: see dropin_hold; else NULL */
    size_t state_len;
};

struct http_sample {
    uint32_t granted, commands, refused, timed_out, errors; /* in that second */
    uint32_t held, waiting;                                 /* at its end */
};

/* All texts are only lent, for as long as the text is being made. */
struct http_view {
    const struct stats_gauges *gauges;
    const char *id;     /* of the broker */
    const char *status; /* "ready: 2 of 3 masters (c: down), ..." */
    int64_t now_ms;
    const char *notice;  /* something that somebody should see to; "": nothing */
    uint32_t n_jeopardy; /* holds whose last renewal has failed */
    struct http_row waits[HTTP_ROWS], holds[HTTP_ROWS]; /* the longest first, one for each lock */
    struct http_row in_jeopardy[HTTP_ROWS];             /* the next to end first */
    size_t n_waits, n_holds, n_in_jeopardy;
    struct view_lock contended[HTTP_ROWS]; /* for which most wait, first */
    size_t n_contended;
    struct http_sample samples[HTTP_SAMPLES]; /* the oldest first; filled by http */
    size_t n_samples;
};

/* Appends text as people may be shown it (utf8.h). */
void http_show(struct buf *out, const char *text, size_t len);

/* What somebody looks for, and what has been found. Texts are lent likewise. */
struct http_search {
    const char *text; /* a part of the names, or a pattern (glob.h) if one of *?[ stands in it */
    uint64_t cursor;  /* where to begin, 0 at first; then where to go on, 0: that was all */
    struct view_lock locks[HTTP_FOUND];
    struct http_row drop_in[HTTP_FOUND]; /* held by commands of Redis */
    size_t n_locks, n_drop_in;
};

/* Appends the JSON text of what was found. */
void http_found(struct buf *out, const struct http_search *search);

/* Appends the JSON text. */
void http_status(struct buf *out, const struct http_view *view);
