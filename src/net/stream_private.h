#ifndef HOLDFAST_STREAM_PRIVATE_H
#define HOLDFAST_STREAM_PRIVATE_H
/* Between stream.c, stream_dial.c and stream_tls.c. */
#include "net/stream.h"

/* Gives the stream a descriptor, with its events set up and not armed; and takes it away, closed.
 */
void stream_set_fd(struct stream *, int fd);
void stream_drop_fd(struct stream *);

/* The descriptor is a connection: sets its options and begins to read. */
void stream_start(struct stream *);

/* Closes the stream and tells its owner. */
void stream_fail(struct stream *, enum stream_end, int err, const char *text);

/* The socket has an answer to connect(2): goes on, or tries the next address. */
void stream_dial_answered(struct stream *);

/* The descriptor is a connection and options are set: begins the handshake, as the side that has
 * connected, or by stream_adopt_tls(). */
void stream_tls_start(struct stream *);
/* The socket may be ready for the next step of the handshake. */
void stream_tls_shake(struct stream *);
/* As recv(2) and send(2). An errno of EPROTO: tls_reason() says why. */
ssize_t stream_tls_read(struct stream *, void *p, size_t n);
ssize_t stream_tls_write(struct stream *, const void *p, size_t n);

/* Reading goes on, or begins. */
void stream_arm(struct stream *);
/* An error of the established connection: closes the stream and tells its owner. */
void stream_io_failed(struct stream *, int err);

/* Ends a connect under way, if there is one. */
void stream_dial_cancel(struct stream *);
#endif
