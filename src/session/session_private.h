#pragma once
/* Between session.c (replies in order) and session_async.c (ends that are told by a tag). */
#include "session/session.h"

/* Lets the edge know that something can be written. */
void session_announce(struct session *);
/* Stand around the writing of one reply or push: messages that it causes go behind it. */
struct resp_writer session_write_begin(struct session *);
void session_write_end(struct session *);
