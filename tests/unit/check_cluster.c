/* cluster: its questions to nodes and its links, before a server that answers as it is told, in a
 * loop that is turned by hand. */
#include "redis/cluster.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "conf/conf.h"
#include "net/stream.h"
#include "redis/link.h"
#include "redis/master.h"
#include "suite.h"

enum { NODES = 2, PEERS = 16, REQUEST_MAX = 200, LIMIT_MS = 20000, TIMEOUT_MS = 60000, ID = 7 };

static struct event_base *base;
static struct conf conf;
static struct cluster *cluster;
static int words_heard; /* by the follower of partition 0 */

/* A server, and what it says. */
static struct node_server {
    int fd, port, asked;
    struct event *readable;
    char nodes[600]; /* its reply to CLUSTER NODES */
    bool holds;      /* it reads nothing of masters */
    int infos;
} servers[NODES];

static struct peer {
    struct node_server *at;
    struct stream st;
} peers[PEERS];
static int n_peers;

/* ---- the server ---- */

static const char *answer(struct node_server *n, const char *request)
{
    if (strcmp(request, "CLIENT ID ") == 0)
        return ":7\r\n";
    if (strncmp(request, "EXISTS ", 7) == 0)
        return ":0\r\n";
    if (strcmp(request, "INFO ") == 0) /* what comes behind the first one is not answered */
        return n->infos++ ? "" : "$0\r\n\r\n";
    return "+OK\r\n";
}

/* Takes one request apart: its words, with a blank behind each. Returns its length; 0: there is
 * more to come. */
static size_t read_request(const char *data, size_t len, char words[REQUEST_MAX])
{
    const char *at = data, *end = data + len;
    char *next;

    words[0] = 0;
    if (!memchr(data, '\n', len))
        return 0;
    long n = strtol(at + 1, &next, 10);
    for (at = next + 2; n > 0; n--) {
        if (at >= end || !memchr(at, '\n', (size_t)(end - at)))
            return 0;
        long size = strtol(at + 1, &next, 10);
        if (next + 2 + size + 2 > end)
            return 0;
        if (strlen(words) + (size_t)size + 2 < REQUEST_MAX)
            sprintf(words + strlen(words), "%.*s ", (int)size, next + 2);
        at = next + 2 + size + 2;
    }
    return (size_t)(at - data);
}

static size_t on_peer_bytes(void *arg, const char *data, size_t len)
{
    struct peer *p = arg;
    char words[REQUEST_MAX];
    size_t used = 0, part;

    while (used < len && (part = read_request(data + used, len - used, words)) > 0) {
        bool is_question = strcmp(words, "CLUSTER NODES ") == 0;
        if (p->at->holds && !is_question)
            break;
        const char *text = is_question ? p->at->nodes : answer(p->at, words);
        p->at->asked += is_question;
        buf_append(stream_out(&p->st), text, strlen(text));
        used += part;
    }
    stream_flush(&p->st);
    return used;
}

static void on_peer_end(void *arg, enum stream_end end, int err, const char *text)
{
    (void)arg, (void)end, (void)err, (void)text;
}

static const struct stream_events peer_events = {.on_bytes = on_peer_bytes, .on_end = on_peer_end};

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    ck_assert_int_lt(n_peers, PEERS);
    struct peer *p = &peers[n_peers++];
    p->at = arg;
    stream_init(&p->st, base, &peer_events, p);
    stream_adopt(&p->st, accept(fd, NULL, NULL));
}

/* Lets masters' requests through, those that have come already, too. */
static void release(struct node_server *n)
{
    n->holds = false;
    for (int i = 0; i < n_peers; i++)
        if (peers[i].at == n && stream_is_open(&peers[i].st))
            stream_offer(&peers[i].st);
}

/* Returns how many masters have greeted it that it has not read yet. */
static int waiting_greetings(const struct node_server *n)
{
    static const char word[] = "\nINFO\r";
    int found = 0;

    for (int i = 0; i < n_peers; i++) {
        const struct stream *st = &peers[i].st;
        for (size_t k = 0; peers[i].at == n && k + sizeof word <= stream_kept(st); k++)
            found += memcmp(buf_head(&st->in) + k, word, sizeof word - 1) == 0;
    }
    return found;
}

static void begin_server(struct node_server *n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    *n = (struct node_server){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    ck_assert_int_eq(bind(n->fd, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(getsockname(n->fd, (struct sockaddr *)&at, &len), 0);
    ck_assert_int_eq(listen(n->fd, PEERS), 0);
    n->port = ntohs(at.sin_port);
    n->readable = event_new(base, n->fd, EV_READ | EV_PERSIST, on_accept, n);
    event_add(n->readable, NULL);
}

/* The first server says that it keeps all, with these lines behind that. */
static void says_more(const char *lines)
{
    char text[500];

    snprintf(text, sizeof text, "%040d 127.0.0.1:%d@1 myself,master - 0 0 1 connected 0-16383\n%s",
             1, servers[0].port, lines);
    snprintf(servers[0].nodes, sizeof servers[0].nodes, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* ---- the scene ---- */

static void on_word(void *arg)
{
    (void)arg;
    words_heard++;
}

static void set_up(void)
{
    char url[64];
    struct conf_error err;

    partitions_use(2);
    base = event_base_new();
    n_peers = words_heard = 0;
    for (int i = 0; i < NODES; i++)
        begin_server(&servers[i]);
    says_more("");
    conf_init(&conf);
    snprintf(url, sizeof url, "cluster://127.0.0.1:%d", servers[0].port);
    ck_assert_int_eq(conf_set(&conf, "masters.c", url, &err), 0);
    const struct cluster_setup setup = {
        .base = base, .timeout_ms = TIMEOUT_MS, .max_reply = 1 << 20};
    cluster = cluster_new(&setup, &conf.masters[0]);
    cluster_follow(cluster, 0, on_word, NULL);
}

static void tear_down(void)
{
    cluster_free(cluster);
    for (int i = 0; i < n_peers; i++)
        stream_close(&peers[i].st);
    for (int i = 0; i < NODES; i++) {
        event_free(servers[i].readable);
        close(servers[i].fd);
    }
    conf_fini(&conf);
    event_base_free(base);
    libevent_global_shutdown();
}

static void turn(void)
{
    static const struct timeval soon = {.tv_usec = 10000};

    event_base_loopexit(base, &soon);
    event_base_loop(base, EVLOOP_ONCE);
}

/* Turns the loop until it is so. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        int64_t end_ms_ = clock_ms() + LIMIT_MS;                                                   \
        while (!(condition) && clock_ms() < end_ms_)                                               \
            turn();                                                                                \
        ck_assert_msg(condition, "not in time: %s", #condition);                                   \
    } while (0)

/* ---- asking ---- */

START_TEST(its_word_is_told)
{
    ck_assert(!cluster_has_spoken(cluster));
    ck_assert_ptr_nonnull(strstr(cluster_words(cluster, clock_ms()), "has not answered"));
    UNTIL(words_heard > 0);
    ck_assert(cluster_has_spoken(cluster));
    const struct shards_node *n = shards_keeper(cluster_shards(cluster), 1);
    ck_assert_ptr_nonnull(n);
    ck_assert_int_eq(n->address.port, servers[0].port);
    ck_assert_ptr_nonnull(strstr(cluster_words(cluster, clock_ms()), "keeps 2"));
    cluster_leave(cluster, 0);
    int heard = words_heard, asked = servers[0].asked;
    cluster_doubt(cluster);
    UNTIL(servers[0].asked > asked + 1 || (cluster_doubt(cluster), false));
    ck_assert_int_eq(words_heard, heard);
}
END_TEST

static const struct {
    const char *reply, *words;
} bad_replies[] = {
    {"-NOAUTH Authentication required.\r\n", ": it refuses: NOAUTH Authentication required."},
    {":1\r\n", ": it does not answer as a node of a Redis Cluster does"},
    {"$5\r\nhello\r\n", ": it does not answer as a node of a Redis Cluster does"},
    {"hello\r\n", ": "},
};

START_TEST(what_is_no_word_is_told_to_people)
{
    snprintf(servers[0].nodes, sizeof servers[0].nodes, "%s", bad_replies[_i].reply);
    UNTIL(cluster_has_spoken(cluster));
    ck_assert_int_eq(words_heard, 0);
    ck_assert_ptr_null(shards_keeper(cluster_shards(cluster), 0));
    const char *words = cluster_words(cluster, clock_ms());
    ck_assert_msg(strstr(words, bad_replies[_i].words) != NULL, "%s", words);
}
END_TEST

/* Who is told of is asked, too, by the address that was told. */
START_TEST(nodes_that_are_told_of_are_asked)
{
    char line[120];

    snprintf(line, sizeof line, "%040d 127.0.0.1:%d@1 master - 0 0 1 connected 5\n", 2,
             servers[1].port);
    says_more(line);
    strcpy(servers[1].nodes, "-ERR not today\r\n");
    UNTIL(servers[1].asked > 0);
    UNTIL(strstr(cluster_words(cluster, clock_ms()), "not today"));
    ck_assert(cluster_has_spoken(cluster));
}
END_TEST

/* ---- links ---- */

/* Has the nodes asked so often that a beat has passed in between. */
static void pass_beats(void)
{
    int asked = servers[0].asked;

    UNTIL(servers[0].asked > asked + 2 || (cluster_doubt(cluster), false));
}

START_TEST(a_link_lives_as_long_as_its_users)
{
    UNTIL(words_heard > 0);
    struct link *l = cluster_link(cluster, "h", 1);
    l->greeted = true; /* a new one is not */
    ck_assert_ptr_eq(cluster_link(cluster, "h", 1), l);
    ck_assert_ptr_ne(cluster_link(cluster, "h", 2), l);
    cluster_unlink(cluster, l);
    pass_beats();
    ck_assert_ptr_eq(cluster_link(cluster, "h", 1), l);
    cluster_unlink(cluster, l);
    cluster_unlink(cluster, l);
    ck_assert(l->greeted); /* not inside the call */
    pass_beats();
    ck_assert(!cluster_link(cluster, "h", 1)->greeted);
}
END_TEST

/* The master that has asked for the id of the connection that two share leaves before it is told.
 * The other one needs it, too: by it the requests of a link that is lost are kept from being run
 * later. */
START_TEST(the_id_of_a_link_whose_first_user_leaves)
{
    struct master_setup setup = {.base = base,
                                 .request_timeout_ms = LIMIT_MS,
                                 .quarantine_ms = -1,
                                 .max_lease_ms = 1000,
                                 .sentinel_timeout_ms = TIMEOUT_MS,
                                 .cluster = cluster,
                                 .max_reply = 1 << 20,
                                 .max_in_flight = 10};
    struct master *masters[2];

    servers[0].holds = true;
    for (int i = 0; i < 2; i++) {
        setup.partition = i;
        masters[i] = master_new(&setup, &conf.masters[0], i);
        master_start(masters[i]);
    }
    UNTIL(waiting_greetings(&servers[0]) == 2);
    struct link *l = cluster_link(cluster, "127.0.0.1", servers[0].port);
    ck_assert(l->greeted && !l->client_id);
    master_free(masters[0]);
    release(&servers[0]);
    UNTIL(l->client_id == ID);
    master_free(masters[1]);
    cluster_unlink(cluster, l);
    pass_beats(); /* answers are still to come on it when it ends */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster");
    TCase *t = tcase_create("asking");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, its_word_is_told);
    tcase_add_loop_test(t, what_is_no_word_is_told_to_people, 0,
                        sizeof bad_replies / sizeof bad_replies[0]);
    tcase_add_test(t, nodes_that_are_told_of_are_asked);
    suite_add_tcase(suite, t);
    t = tcase_create("links");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_link_lives_as_long_as_its_users);
    tcase_add_test(t, the_id_of_a_link_whose_first_user_leaves);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
