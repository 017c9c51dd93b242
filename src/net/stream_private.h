#pragma once
/* Between stream.c, stream_dial.c, stream_quota.c and stream_tls.c. */
#include "net/stream.h"

/* Give the stream a descriptor, with its events set up and not armed; and take it away, closed. */
void stream_set_fd(struct stream *, int fd);
void stream_drop_fd(struct stream *);

/* Sets the options of a descriptor that is connected, and begins to read. */
void stream_start(struct stream *);

/* Closes the stream and tells its owner. */
void stream_fail(struct stream *, enum stream_end, int err, const char *text);

/* Goes on when the socket has an answer to connect(2), or tries the next address. */
void stream_dial_answered(struct stream *);

/* Begins the handshake on a descriptor that is connected and has its options: as the side that has
 * connected, or as that of stream_adopt_tls(). */
void stream_tls_start(struct stream *);
/* Goes on with the handshake, when the socket may be ready for its next step. */
void stream_tls_shake(struct stream *);
/* Read and write as recv(2) and send(2). With an errno of EPROTO tls_reason() says why. */
ssize_t stream_tls_read(struct stream *, void *p, size_t n);
ssize_t stream_tls_write(struct stream *, const void *p, size_t n);

/* Begins to read, or goes on. */
void stream_arm(struct stream *);
/* Closes the stream after an error of its connection, and tells its owner. */
void stream_io_failed(struct stream *, int err);

/* Reads or writes as the events of the socket, `what`, say. */
void stream_serve(struct stream *, short what);

/* stream_quota.c: */
/* Returns false when these events have to wait for the quota that the stream has. */
bool stream_quota_take(struct stream *, short what);
/* Ends that wait, if there is one. */
void stream_quota_leave(struct stream *);
/* Counts the bytes that were read or written. */
enum { STREAM_QUOTA_BYTES = 16 * 1024 };
static inline void stream_quota_spend(const struct stream *s, int64_t n_bytes)
{
    if (s->quota)
        s->quota->left -= (int)(n_bytes / STREAM_QUOTA_BYTES);
}

/* Ends a connect under way, if there is one. */
void stream_dial_cancel(struct stream *);
