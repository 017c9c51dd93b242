/*
 * How many descriptors the process may have, and how many clients they leave room for.
 *
 * Masters, HTTP and listening sockets must not want for one because clients have taken all: so many
 * are kept back, and fewer clients are let in where the limit is low. When they run out all the
 * same, listener.c refuses who comes and waits.
 */
#include <inttypes.h>
#include <sys/resource.h>

#include "base/log.h"
#include "http/http.h"
#include "redis/partition.h"
#include "server/private.h"

/* For all that is no client and has no number of its own: logs, timers, files that are read. */
enum { FDS_SPARE = 32 };

static int64_t reserved(const struct conf *c)
{
    int64_t per_master = 2; /* the link, and the one that calls up */
    int64_t http = c->http_listen.count > 0 ? HTTP_CONNS_MAX : 0;

    int64_t n = conf_is_clustered(c) ? PARTITIONS : (int64_t)c->master_count;

    return FDS_SPARE + n * per_master + http +
           2 * (int64_t)(c->listen.count + c->http_listen.count);
}

static int64_t fds_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return INT64_MAX / 2;
    return (int64_t)limit.rlim_cur;
}

int64_t server_max_clients(const struct conf *c)
{
    int64_t limit = fds_limit(), room = limit - reserved(c);

    if (room < limit / 2)
        room = limit / 2;
    return c->client.max_clients < room ? c->client.max_clients : room;
}

void server_raise_fds(const struct conf *c)
{
    int64_t wanted = c->client.max_clients + reserved(c);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (int64_t)limit.rlim_cur < wanted) {
        bool enough = limit.rlim_max == RLIM_INFINITY || (int64_t)limit.rlim_max >= wanted;
        limit.rlim_cur = enough ? (rlim_t)wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (server_max_clients(c) < c->client.max_clients)
        log_warn("server",
                 "at most %" PRId64 " clients: max_clients=%" PRId64 " wants %" PRId64
                 " descriptors, and the limit is %" PRId64 " (LimitNOFILE=, ulimit -n)",
                 server_max_clients(c), c->client.max_clients, wanted, fds_limit());
}
