/* client: how much one connection, and all together, run in one turn of the loop, and how many
 * connections there may be. Over socketpairs, in a loop that is turned by hand: what is counted is
 * turns, never time. */
#include "client/client.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hasher.h"
#include "command/command.h"
#include "conf/conf.h"
#include "lock/lock.h"
#include "session/user.h"
#include "stats/stats.h"
#include "suite.h"

enum { PEERS_MAX = 300 };

static struct event_base *base;
static struct clients *set;
static struct conf conf;
static struct peer {
    int fd;
    int64_t answered; /* lines that have come back */
    char last[128];   /* the last of them */
} peers[PEERS_MAX];
static int n_peers;
static uint64_t n_ran; /* commands in the last turn */
static int64_t clock_at_ms;
static enum { NO_PASSWORD, CHECKS, IS_WRONG } hasher; /* which answers when a test says so */

/* ---- in place of base/clock and base/hasher ---- */

int64_t clock_ms(void)
{
    return clock_at_ms;
}

int64_t clock_us(void)
{
    return clock_at_ms * 1000;
}

int64_t clock_wall_ms(void)
{
    return clock_at_ms;
}

int hasher_start(void)
{
    return -1;
}

void hasher_stop(void)
{
    hasher = NO_PASSWORD;
}

bool hasher_is_busy(void)
{
    return hasher != NO_PASSWORD;
}

void hasher_give(const char *hash, const char *password, size_t len, int iterations)
{
    (void)hash, (void)password, (void)len, (void)iterations;
    hasher = CHECKS;
}

bool hasher_take(bool *fits)
{
    bool is_done = hasher == IS_WRONG;

    *fits = false;
    hasher = is_done ? NO_PASSWORD : hasher;
    return is_done;
}

static struct conf_client limits = {
    .max_request_args = 128,
    .max_arg_len = 16384,
    .max_request = 65536,
    .max_inline = 65536,
    .max_clients = 250,
    .max_clients_per_address = 200,
    .max_pending_requests = 1024,
    .output_buffer_hard = 1 << 20,
    .output_buffer_soft = 1 << 19,
    .output_buffer_soft_time_ms = 10000,
};

static void on_start(void *arg, struct session *s, int64_t now_ms)
{
    (void)arg, (void)now_ms;
    s->owner = owner_get("x", 1);
}

static void on_end(void *arg, struct session *s, enum client_end end, int64_t now_ms)
{
    (void)arg, (void)end, (void)now_ms;
    owner_unref(s->owner);
    s->owner = NULL;
}

static const struct client_events events = {on_start, on_end};

static void setup(void)
{
    static const struct cmd_hooks hooks = {
        .conf = &conf, .peer = client_peer, .local = client_local, .fd = client_fd};

    clock_at_ms = 100000;
    base = event_base_new();
    conf_init(&conf);
    cmd_init(&hooks);
    stats_reset();
    n_peers = 0;
    set = client_init(base, &limits, &events, NULL);
}

static void teardown(void)
{
    client_fini(set);
    for (int i = 0; i < n_peers; i++)
        close(peers[i].fd);
    cmd_fini();
    users_fini();
    conf_fini(&conf);
    event_base_free(base);
}

/* Somebody connects from there: an address, or NULL for a Unix socket. */
static struct peer *come(const char *address)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct peer *p = &peers[n_peers++];
    int fd[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    *p = (struct peer){.fd = fd[1]};
    if (!address)
        client_accept(set, fd[0], false, (struct sockaddr *)&un, sizeof un);
    else if (inet_pton(AF_INET, address, &in.sin_addr) == 1)
        client_accept(set, fd[0], false, (struct sockaddr *)&in, sizeof in);
    else if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1)
        client_accept(set, fd[0], false, (struct sockaddr *)&in6, sizeof in6);
    return p;
}

static void say(struct peer *p, int n, const char *line)
{
    size_t len = strlen(line), size = (size_t)n * len;
    char *text = malloc(size);

    for (int i = 0; i < n; i++)
        memcpy(text + (size_t)i * len, line, len);
    ck_assert_int_eq(write(p->fd, text, size), (ssize_t)size);
    free(text);
}

static void hear(struct peer *p)
{
    char data[65536];
    ssize_t n;

    while ((n = read(p->fd, data, sizeof data)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            p->answered += data[i] == '\n';
        snprintf(p->last, sizeof p->last, "%.*s", (int)n, data);
    }
}

static void turn(void)
{
    uint64_t before = stats.total_commands_processed;

    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    client_flush_all(set);
    n_ran = stats.total_commands_processed - before;
    for (int i = 0; i < n_peers; i++)
        hear(&peers[i]);
}

static struct peer *refused_from(const char *address, const char *text)
{
    struct peer *p = come(address);

    hear(p);
    ck_assert_msg(strstr(p->last, text) != NULL, "'%s', not '%s'", p->last, text);
    return p;
}

/* ---- turns ---- */

/* One connection has sent 5,000 requests at once: it gets 32 of them answered a turn, and whoever
 * else asks is answered in the first turn. */
START_TEST(a_flood_is_served_in_small_parts)
{
    struct peer *flood = come(NULL), *other = come(NULL);
    int turns = 0;

    say(flood, 5000, "PING\r\n");
    say(other, 1, "PING\r\n");
    turn();
    ck_assert_int_eq(other->answered, 1);
    ck_assert_int_eq(flood->answered, CLIENT_TURN);
    for (turns = 1; flood->answered < 5000; turns++) {
        bool asks = turns % 10 == 0;
        if (asks)
            say(other, 1, "PING\r\n");
        int64_t before = other->answered;
        turn();
        ck_assert_int_eq(other->answered, before + asks);
        ck_assert_uint_le(n_ran, CLIENT_TURN + asks);
        ck_assert_int_lt(turns, 1000);
    }
    ck_assert_int_eq(turns, (5000 + CLIENT_TURN - 1) / CLIENT_TURN);
}
END_TEST

/* 249 connections with 400 requests each: a turn has a bound for all of them, nobody gets ahead of
 * the others by more than two parts, and whoever comes later with one request is answered within
 * the turn. */
START_TEST(many_floods_are_served_in_turn)
{
    enum { N = 249, EACH = 400 };

    for (int i = 0; i < N; i++)
        come(NULL);
    for (int k = 0; k < 5; k++) { /* so that libevent takes all in one turn */
        for (int i = 0; i < N; i++)
            say(&peers[i], 1, "PING\r\n");
        turn();
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(peers[i].answered, 5);
        peers[i].answered = 0;
        say(&peers[i], EACH, "PING\r\n");
    }
    struct peer *late = come(NULL);
    for (int turns = 0, done = 0; done < N; turns++) {
        int64_t least = EACH, most = 0;
        if (turns >= 4) /* until then all are new */
            say(late, 1, "PING\r\n");
        turn();
        ck_assert_int_eq(late->answered, turns >= 4 ? turns - 3 : 0);
        ck_assert_uint_le(n_ran, 2 * CLIENT_TURN_ALL);
        done = 0;
        for (int i = 0; i < N; i++) {
            done += peers[i].answered == EACH;
            least = peers[i].answered < least ? peers[i].answered : least;
            most = peers[i].answered > most ? peers[i].answered : most;
        }
        ck_assert_int_le(most - least, 2 * CLIENT_TURN);
        ck_assert_int_lt(turns, N * EACH / CLIENT_TURN_ALL + 20);
    }
}
END_TEST

/* ---- how many ---- */

START_TEST(one_address_cannot_take_all)
{
    struct peer *first = come("192.0.2.1");

    for (int i = 1; i < limits.max_clients_per_address; i++)
        come("192.0.2.1");
    refused_from("192.0.2.1", "-ERR max number of clients of one address reached");
    refused_from("::ffff:192.0.2.1", "-ERR max number of clients of one address reached");
    ck_assert_uint_eq(stats.rejected_per_address, 2);
    say(come("192.0.2.2"), 1, "PING\r\n");
    say(come(NULL), 1, "PING\r\n");
    turn();
    ck_assert_str_eq(peers[n_peers - 1].last, "+PONG\r\n");
    ck_assert_str_eq(peers[n_peers - 2].last, "+PONG\r\n");
    shutdown(first->fd, SHUT_WR); /* one goes, one may come */
    turn();
    say(come("192.0.2.1"), 1, "PING\r\n");
    turn();
    ck_assert_str_eq(peers[n_peers - 1].last, "+PONG\r\n");
    refused_from("192.0.2.1", "-ERR max number of clients of one address reached");
}
END_TEST

START_TEST(of_ipv6_a_network_is_one)
{
    char address[64];

    for (int i = 0; i < limits.max_clients_per_address; i++) {
        snprintf(address, sizeof address, "2001:db8:1:2:%x::1", i);
        come(address);
    }
    refused_from("2001:db8:1:2::ffff", "-ERR max number of clients of one address reached");
    say(come("2001:db8:1:3::1"), 1, "PING\r\n");
    turn();
    ck_assert_str_eq(peers[n_peers - 1].last, "+PONG\r\n");
}
END_TEST

static void keep_origin(struct session *s, void *arg)
{
    *(uint64_t *)arg = s->origin; /* of the last to come, in the end */
}

static uint64_t origin_from(const char *address)
{
    uint64_t origin;

    come(address);
    client_each(set, keep_origin, &origin);
    return origin;
}

/* Whom wrong passwords are held against. */
START_TEST(origins)
{
    uint64_t local = origin_from(NULL), v4 = origin_from("192.0.2.1"),
             v6 = origin_from("2001:db8:1:2::1");

    ck_assert(local != v4 && v4 != v6 && local != v6);
    ck_assert_uint_eq(origin_from("192.0.2.1"), v4);
    ck_assert_uint_eq(origin_from("::ffff:192.0.2.1"), v4);
    ck_assert_uint_ne(origin_from("192.0.2.2"), v4);
    ck_assert_uint_eq(origin_from("2001:db8:1:2:3:4:5:6"), v6);
    ck_assert_uint_ne(origin_from("2001:db8:1:3::1"), v6);
    ck_assert_uint_eq(origin_from(NULL), local);
}
END_TEST

START_TEST(in_all)
{
    char address[64];

    for (int i = 0; i < limits.max_clients; i++) {
        snprintf(address, sizeof address, "192.0.2.%d", i);
        come(address);
    }
    refused_from("198.51.100.1", "-ERR max number of clients reached");
    refused_from(NULL, "-ERR max number of clients reached");
    ck_assert_uint_eq(stats.rejected_max_clients, 2);
    ck_assert_uint_eq(client_count(set, &(size_t){0}), (size_t)limits.max_clients);
}
END_TEST

static void set_users(void)
{
    struct conf_error error;

    ck_assert_int_eq(conf_set(&conf, "users.ann", "none", &error), 0);
    users_configure(&conf);
}

START_TEST(limits_of_strangers)
{
    say(come("192.0.2.1"), 1, "*129\r\n");
    while (peers[0].answered == 0)
        turn();
    ck_assert_ptr_nonnull(strstr(peers[0].last, "129 is over max_request_args 128"));
    set_users();
    say(come("192.0.2.1"), 1, "*129\r\n");
    while (peers[1].answered == 0)
        turn();
    ck_assert_ptr_nonnull(strstr(peers[1].last, "129 is over the limit before authentication, 8"));
}
END_TEST

/* Half of the places for those who have not said who they are is for one address. */
START_TEST(strangers_of_one_address)
{
    set_users();
    for (int i = 0; i < CLIENT_STRANGERS_PEER_MAX; i++)
        come("192.0.2.1");
    refused_from("192.0.2.1", "-ERR max number of unauthenticated clients reached");
    say(come("192.0.2.2"), 1, "PING\r\n");
    turn();
    ck_assert_int_eq(strncmp(peers[n_peers - 1].last, "-NOAUTH", 7), 0);
    shutdown(peers[0].fd, SHUT_WR);
    turn();
    say(come("192.0.2.1"), 1, "PING\r\n");
    turn();
    ck_assert_int_eq(strncmp(peers[n_peers - 1].last, "-NOAUTH", 7), 0);
}
END_TEST

/* Returns true when the broker has closed this connection. */
static bool has_ended(const struct peer *p)
{
    return recv(p->fd, &(char){0}, 1, MSG_PEEK) == 0;
}

/* So late that who has not said who he is has had his time: turns until that has been looked at. */
static void time_is_up_for(const struct peer *silent)
{
    clock_at_ms += CLIENT_AUTH_MS;
    while (!has_ended(silent))
        turn();
}

/* Who has said in time who he is gets the answer, however long the passwords before his take; then
 * he has no second try. */
START_TEST(a_password_that_is_being_checked)
{
    set_users();
    struct peer *first = come("192.0.2.1"), *behind = come("192.0.2.2");
    say(first, 2, "AUTH bob x\r\n");
    say(behind, 1, "AUTH bob x\r\n");
    turn();
    time_is_up_for(come("192.0.2.3"));
    ck_assert(!has_ended(first) && !has_ended(behind));
    for (struct peer *p = first; p <= behind; p++) {
        hasher = IS_WRONG;
        client_users_changed(set); /* takes what the hasher has */
        while (p->answered == 0)
            turn();
        ck_assert_int_eq(strncmp(p->last, "-WRONGPASS", 10), 0);
    }
    while (!has_ended(first) || !has_ended(behind))
        turn();
    ck_assert_int_eq(first->answered, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client");
    TCase *t = tcase_create("client");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_flood_is_served_in_small_parts);
    tcase_add_test(t, many_floods_are_served_in_turn);
    tcase_add_test(t, one_address_cannot_take_all);
    tcase_add_test(t, of_ipv6_a_network_is_one);
    tcase_add_test(t, origins);
    tcase_add_test(t, in_all);
    tcase_add_test(t, limits_of_strangers);
    tcase_add_test(t, strangers_of_one_address);
    tcase_add_test(t, a_password_that_is_being_checked);
    suite_add_tcase(s, t);
    return suite_run(s);
}
