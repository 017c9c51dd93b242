#pragma once
/*
 * status: makes the JSON that fills the status page from a view of the broker. Pure: whoever fills
 * the view knows where things come from.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct stats_gauges;

enum {
    HTTP_SAMPLES = 60, /* of a second each, for the curves */
    HTTP_ROWS = 10     /* of the lists of waiters and of holds */
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
    const char *state, *library;    /* holds by commands of Redis: see dropin_hold; else NULL */
    size_t state_len;
};

struct http_sample {
    uint32_t granted, commands; /* in that second */
    uint32_t held, waiting;     /* at its end */
};

/* All texts are only lent, for as long as the text is being made. */
struct http_view {
    const struct stats_gauges *gauges;
    const char *id;     /* of the broker */
    const char *status; /* "ready: 2 of 3 masters (c: down), ..." */
    int64_t now_ms;
    const char *notice;  /* something that somebody should see to; "": nothing */
    uint32_t n_jeopardy; /* holds whose last renewal has failed */
    struct http_row waits[HTTP_ROWS], holds[HTTP_ROWS]; /* the longest first */
    size_t n_waits, n_holds;
    struct http_sample samples[HTTP_SAMPLES]; /* the oldest first; filled by http */
    size_t n_samples;
};

/* Appends text as people may be shown it (utf8.h). */
void http_show(struct buf *out, const char *text, size_t len);

/* Appends the JSON text. */
void http_status(struct buf *out, const struct http_view *view);
