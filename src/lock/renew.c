/* See renew.h. Every result is a time in ms on the scale of its arguments. */
#include "lock/renew.h"

enum { RETRY_MIN_MS = 10, TELL_MS = 500, SLOTS = 60, SLOT_MAX_MS = 20 };

int64_t renew_next_ms(int64_t now_ms, int64_t lease_ms, uint64_t random)
{
    int64_t third = lease_ms / 3, slot = lease_ms / SLOTS;
    int64_t due_ms = now_ms + third - (int64_t)(random % (uint64_t)(third / 10 + 1));
    if (slot > SLOT_MAX_MS)
        slot = SLOT_MAX_MS;
    return slot > 1 ? due_ms - due_ms % slot : due_ms;
}

int64_t renew_retry_ms(int64_t now_ms, int64_t deadline_ms, uint64_t random)
{
    int64_t step = (deadline_ms - now_ms) / 8;
    if (step < RETRY_MIN_MS)
        step = RETRY_MIN_MS;
    return now_ms + step + (int64_t)(random % (uint64_t)(step / 4 + 1));
}

int64_t renew_lost_ms(int64_t deadline_ms, int64_t lease_ms)
{
    int64_t before = lease_ms / 10;
    return deadline_ms - (before < TELL_MS ? before : TELL_MS);
}

int64_t renew_lease_ms(int64_t now_ms, int64_t lease_ms, int64_t end_ms)
{
    return end_ms - now_ms < lease_ms ? end_ms - now_ms : lease_ms;
}
