/* The two ends of a checked move: its trace line, and the end of the process when the table forbids
 * it. Owns nothing; the state is a byte in the object that moves. */
#include "base/sm.h"

#include <stdlib.h>

void sm_trace(const struct sm_state *table, uint8_t state, const char *object, int to)
{
    log_write(LOG_LEVEL_TRACE, object, "state %s -> %s", table[state].name, table[to].name);
}

_Noreturn void sm_refuse(const struct sm_state *table, uint8_t state, const char *object, int to)
{
    /* Whether `to` has a row is not known here, so it is named by its number. */
    log_write(LOG_LEVEL_ERROR, object, "forbidden move state=%s to=%d", table[state].name, to);
    abort();
}
