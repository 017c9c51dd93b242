#pragma once
/* monitor: the connections that said MONITOR, and the line that they get for each command. */
#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "net/resp.h"

struct session;
struct user;

/* Who watches at a time, and bytes of a line; what is longer is cut and ends in "...". */
enum { MONITOR_MAX = 16, MONITOR_LINE_MAX = 2048 };

/* Sets session->monitor and puts it on the list; idempotent, as is the end of it. -1: the list is
 * full. */
int monitor_join(struct session *) MUST_CHECK;
void monitor_leave(struct session *);

/* How many connections watch; monitor_feed() is called when it is not 0. */
extern uint32_t monitor_count;

enum monitor_view {
    MONITOR_HIDDEN,
    MONITOR_REDACTED, /* all words but the first are shown as (redacted) */
    MONITOR_SHOWN
};

struct monitor_request {
    const char *peer; /* the address of who sent it */
    int argc;
    const struct resp_arg *argv;
    bool secret; /* redacted for everybody */
    int64_t wall_ms;
    /* What of it this user may see; not asked for sessions without a user. NULL: all of it. */
    enum monitor_view (*view)(const struct user *, const struct monitor_request *);
    const void *of_view; /* for its use */
};

/* Sends everybody who watches the line of one request, as Redis prints it. */
void monitor_feed(const struct monitor_request *, int64_t now_ms);
