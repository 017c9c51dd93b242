#pragma once
/*
 * inspect: questions about locks, put to the masters where this broker does not know the answer,
 * and the administrator's FORCEUNLOCK, which begins with such a question: it releases by operation,
 * never by name alone.
 */
#include <stdint.h>

struct broker;
struct lock_request;

void inspect_holds(struct broker *, struct lock_request *, int64_t now_ms); /* RESULT_COUNT */
void inspect_info(struct broker *, struct lock_request *, int64_t now_ms);  /* RESULT_INFO */
void inspect_force(struct broker *, struct lock_request *,
                   int64_t now_ms); /* RESULT_COUNT: 1 or 0 */
