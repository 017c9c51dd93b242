#ifndef HOLDFAST_STREAM_PRIVATE_H
#define HOLDFAST_STREAM_PRIVATE_H
/* Between stream.c and stream_dial.c. */
#include "stream.h"

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

/* Ends a connect under way, if there is one. */
void stream_dial_cancel(struct stream *);
#endif
