/* The clients whose passwords are being checked: gives login.h its turn, and goes on with a client
 * after its verdict. A client that waits for a verdict runs nothing (CLIENT_LOGIN); the request
 * stays in its stream and is given to cmd_dispatch() again. */
#include "session/login.h"
#include "base/clock.h"
#include "base/hasher.h"
#include "client/private.h"

void client_login_arm(struct clients *set)
{
    int64_t left_ms = login_next_ms();

    if (left_ms == INT64_MAX)
        return;
    left_ms -= clock_ms();
    left_ms = left_ms < 1 ? 1 : left_ms;
    struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    event_add(&set->login_due, &left);
}

void client_login_turn(struct clients *set)
{
    login_turn(clock_ms());
    client_login_arm(set);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_login_turn(arg);
}

void client_login_init(struct clients *set)
{
    int fd = hasher_start();

    login_init(client_on_ready);
    event_assign(&set->login_due, set->base, -1, 0, on_due, set);
    event_assign(&set->login_done, set->base, fd, EV_READ | EV_PERSIST, on_due, set);
    if (fd >= 0)
        event_add(&set->login_done, NULL);
}

void client_login_fini(struct clients *set)
{
    event_del(&set->login_due);
    event_del(&set->login_done);
    hasher_stop();
}
