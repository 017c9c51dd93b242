#pragma once
/*
 * renew: when a hold is next due, as arithmetic on times in ms. Knows neither clocks nor masters.
 *
 *   told --- lease/3 (less jitter) ---> renew ... retry ... retry ..... lost ... deadline
 */
#include <stdint.h>

/* When to renew after a success at `now_ms`. A third of the lease, up to a tenth of that earlier,
 * so that holds taken together do not stay together. `random` is any number. */
int64_t renew_next_ms(int64_t now_ms, int64_t lease_ms, uint64_t random);
/* When to try again after a failure: an eighth of the time that is left, at least 10 ms, with
 * jitter. */
int64_t renew_retry_ms(int64_t now_ms, int64_t deadline_ms, uint64_t random);
/* From when on a hold that could not be renewed is reported lost: before its deadline, so that its
 * holder hears of it in time. */
int64_t renew_lost_ms(int64_t deadline_ms, int64_t lease_ms);
/* Lease to ask for, so that the promise does not go beyond the end of MAXHOLD. */
int64_t renew_lease_ms(int64_t now_ms, int64_t lease_ms, int64_t end_ms);
