#pragma once
/*
 * finish: gives a request its result. It is put on the work list with it (work.h): the request is
 * whole, and its session hears nothing, until the flow that finished it has returned.
 */
#include <stdint.h>

#include "lock/lock.h"

struct broker;

/* Exactly one of these for each request, when it stands in no list. */
void finish_as(struct broker *, struct lock_request *, enum lock_result);
/* RESULT_ERROR: code and text. */
void finish_error(struct broker *, struct lock_request *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* RESULT_GRANTED: this hold is its owner's. The reply refers to it (r->hold): it may end before. */
void finish_granted(struct broker *, struct lock_request *, struct hold *);
/* RESULT_NOT_GRANTED to a LOCK or MLOCK whose WAIT is over, or that had none; counted as that. */
void finish_not_granted(struct broker *, struct lock_request *);
/* RESULT_COUNT */
void finish_count(struct broker *, struct lock_request *, int64_t count);
