/* stream: over socketpairs and TCP on the loopback, in a loop that is turned by hand. */
#include "net/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "suite.h"

static struct event_base *base;
static struct stream st;
static int peer = -1;

/* What the callbacks have seen. */
static struct {
    char bytes[64]; /* of the last on_bytes */
    size_t len, total;
    int n_bytes, n_open, n_eof, n_drain, n_end;
    enum stream_end end;
    int err;
    char text[128];
} seen;
static size_t consume;        /* bytes that on_bytes takes; SIZE_MAX: all */
static bool close_in_bytes;   /* on_bytes closes the stream, */
static const char *then_dial; /* and connects to this path */
static bool inside;           /* a call that must not call back */

static size_t flood; /* the peer goes on writing until this many bytes were read */
static void refill(void);

static void on_open(void *arg)
{
    ck_assert_ptr_eq(arg, &st);
    ck_assert(!inside && stream_is_open(&st));
    seen.n_open++;
}

static size_t on_bytes(void *arg, const char *data, size_t len)
{
    (void)arg;
    ck_assert(!inside && !st.paused && len > 0);
    seen.n_bytes++;
    seen.len = len;
    memcpy(seen.bytes, data, len < sizeof seen.bytes ? len : sizeof seen.bytes);
    if (close_in_bytes) {
        close_in_bytes = false;
        stream_close(&st);
        if (then_dial)
            stream_connect(&st, NULL, then_dial, 0);
        return len;
    }
    size_t used = len < consume ? len : consume;
    seen.total += used;
    if (seen.total < flood)
        refill();
    return used;
}

static void on_eof(void *arg)
{
    (void)arg;
    ck_assert(stream_is_open(&st));
    seen.n_eof++;
}

static void on_drain(void *arg)
{
    (void)arg;
    seen.n_drain++;
}

static void on_end(void *arg, enum stream_end end, int err, const char *text)
{
    (void)arg;
    ck_assert(!inside);
    ck_assert_int_eq(st.fd, -1); /* closed already */
    seen.n_end++;
    seen.end = end;
    seen.err = err;
    snprintf(seen.text, sizeof seen.text, "%s", text);
}

static const struct stream_events all_events = {on_open, on_bytes, on_eof, on_drain, on_end};
static const struct stream_events few_events = {.on_bytes = on_bytes, .on_end = on_end};

static void turn(void)
{
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Turns the loop until it is true; gives up after 5 s. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        for (int tries_ = 0; !(condition); tries_++) {                                             \
            ck_assert_msg(tries_ < 5000, "waited in vain for " #condition);                        \
            turn();                                                                                \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static void setup(void)
{
    int fd[2];

    base = event_base_new();
    memset(&seen, 0, sizeof seen);
    consume = SIZE_MAX;
    then_dial = NULL;
    flood = 0;
    close_in_bytes = inside = false;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    peer = fd[1];
    stream_init(&st, base, &all_events, &st);
    stream_adopt(&st, fd[0]);
}

static void teardown(void)
{
    stream_close(&st);
    if (peer >= 0)
        close(peer);
    event_base_free(base);
    ck_assert_ptr_null(st.in.data);
    ck_assert_ptr_null(st.out.data);
}

static int listen_tcp(int *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    getsockname(fd, (struct sockaddr *)&in, &len);
    *port = ntohs(in.sin_port);
    return fd;
}

/* As setup(), over TCP. */
static void use_tcp(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int port, listening = listen_tcp(&port);

    stream_close(&st);
    close(peer);
    peer = socket(AF_INET, SOCK_STREAM, 0);
    in.sin_port = htons((uint16_t)port);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&in, sizeof in), 0);
    stream_adopt(&st, accept(listening, NULL, NULL));
    ck_assert(st.tcp);
    close(listening);
}

static void peer_says(const char *text)
{
    ck_assert_int_eq(write(peer, text, strlen(text)), (ssize_t)strlen(text));
}

static void reset_peer(void)
{
    struct linger l = {1, 0};

    setsockopt(peer, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close(peer);
    peer = -1;
}

START_TEST(writes_are_gathered)
{
    char got[64];

    buf_append(stream_out(&st), "one ", 4);
    buf_append(stream_out(&st), "two", 3);
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), -1);
    stream_flush(&st);
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), 7);
    ck_assert_int_eq(memcmp(got, "one two", 7), 0);
    ck_assert_int_eq(st.bytes_out, 7);
    ck_assert(!event_pending(&st.writable, EV_WRITE, NULL));
    ck_assert_uint_le(st.out.cap, 1024);
}
END_TEST

START_TEST(unconsumed_bytes_come_again)
{
    consume = 2;
    peer_says("abcde");
    turn();
    ck_assert_int_eq(seen.n_bytes, 1);
    ck_assert_uint_eq(stream_kept(&st), 3);
    turn();
    ck_assert_int_eq(seen.n_bytes, 1); /* not by themselves, */
    consume = 0;
    stream_offer(&st); /* but when asked for */
    ck_assert_int_eq(seen.n_bytes, 2);
    ck_assert_uint_eq(seen.len, 3);
    consume = SIZE_MAX;
    peer_says("fg");
    turn();
    ck_assert_uint_eq(seen.len, 5);
    ck_assert_int_eq(memcmp(seen.bytes, "cdefg", 5), 0);
    ck_assert_uint_eq(stream_kept(&st), 0);
    ck_assert_int_eq(st.bytes_in, 7);
}
END_TEST

START_TEST(an_idle_stream_has_no_buffers)
{
    char big[100000];

    memset(big, 'x', sizeof big);
    peer_says("PING\r\n");
    turn();
    ck_assert_ptr_null(st.in.data); /* read and consumed without one */
    consume = 10;
    ck_assert_int_eq(send(peer, big, sizeof big, 0), sizeof big);
    UNTIL(st.bytes_in == 6 + (int64_t)sizeof big);
    ck_assert_uint_gt(st.in.cap, 1024);
    consume = SIZE_MAX;
    stream_offer(&st);
    ck_assert_ptr_null(st.in.data);
    buf_append(stream_out(&st), big, sizeof big);
    stream_flush(&st);
    while (buf_len(&st.out) > 0 || recv(peer, big, sizeof big, MSG_DONTWAIT) > 0)
        turn();
    ck_assert_ptr_null(st.out.data);
}
END_TEST

START_TEST(a_full_socket_is_waited_for)
{
    enum { TOTAL = 4 * 1024 * 1024 };
    static char big[TOTAL], got[TOTAL];
    size_t n_got = 0;

    for (size_t i = 0; i < TOTAL; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    buf_append(stream_out(&st), big, TOTAL);
    stream_flush(&st);
    ck_assert(event_pending(&st.writable, EV_WRITE, NULL));
    size_t left = buf_len(&st.out);
    stream_flush(&st); /* changes nothing */
    ck_assert_uint_eq(buf_len(&st.out), left);
    ck_assert_int_eq(seen.n_drain, 0);
    while (n_got < TOTAL) {
        ssize_t n = recv(peer, got + n_got, TOTAL - n_got, MSG_DONTWAIT);
        n_got += n > 0 ? (size_t)n : 0;
        turn();
    }
    ck_assert_int_eq(memcmp(big, got, TOTAL), 0);
    ck_assert_int_gt(seen.n_drain, 0);
    ck_assert(!event_pending(&st.writable, EV_WRITE, NULL));
    ck_assert_ptr_null(st.out.data);
}
END_TEST

START_TEST(pause_and_resume)
{
    consume = 1;
    peer_says("abc");
    turn();
    stream_pause(&st);
    peer_says("def");
    turn();
    ck_assert_int_eq(seen.n_bytes, 1);
    consume = SIZE_MAX;
    inside = true;
    stream_resume(&st); /* never calls back from inside, */
    inside = false;
    turn(); /* but from the loop, what was kept first */
    ck_assert_int_eq(seen.n_bytes, 3);
    ck_assert_uint_eq(seen.total, 6);
    consume = 1;
    peer_says("gh");
    turn();
    stream_pause(&st);
    stream_resume(&st);
    stream_pause(&st); /* takes the offer back */
    turn();
    ck_assert_int_eq(seen.n_bytes, 4);
}
END_TEST

static void refill(void)
{
    static const char zeros[64 * 1024];

    while (send(peer, zeros, sizeof zeros, MSG_DONTWAIT) > 0) {
    }
}

START_TEST(one_flood_does_not_take_the_whole_turn)
{
    enum { TURN_MAX = 256 * 1024, FLOOD = 8 * TURN_MAX };

    flood = FLOOD;
    refill();
    turn();
    ck_assert_uint_gt(seen.total, 64 * 1024);
    ck_assert_uint_le(seen.total, TURN_MAX);
    UNTIL(seen.total >= FLOOD);
}
END_TEST

/* ---- a quota for several streams ---- */

enum { MEMBERS = 5 };
static struct stream members[MEMBERS];
static int served[64], n_served;

static size_t on_bytes_of_member(void *arg, const char *data, size_t len)
{
    (void)data;
    served[n_served++] = (int)((struct stream *)arg - members);
    return len;
}

static const struct stream_events member_events = {.on_bytes = on_bytes_of_member,
                                                   .on_end = on_end};

static void open_members(struct stream_quota *q, int peers[MEMBERS])
{
    int fd[2];

    n_served = 0;
    stream_quota_init(q);
    for (int i = 0; i < MEMBERS; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        peers[i] = fd[1];
        stream_init(&members[i], base, &member_events, &members[i]);
        members[i].quota = q;
        stream_adopt(&members[i], fd[0]);
    }
}

static void close_members(const int peers[MEMBERS])
{
    for (int i = 0; i < MEMBERS; i++) {
        stream_close(&members[i]);
        close(peers[i]);
    }
}

/* One turn of the loop in which only so many are served. */
static bool turn_with(struct stream_quota *q, int left)
{
    q->left = left;
    turn();
    stream_quota_serve(q);
    return stream_quota_refill(q);
}

START_TEST(a_quota_bounds_a_turn_and_passes_nobody_over)
{
    struct stream_quota q;
    int peers[MEMBERS];
    bool seen_one[MEMBERS] = {0};

    open_members(&q, peers);
    for (int i = 0; i < MEMBERS; i++)
        ck_assert_int_eq(write(peers[i], "x", 1), 1);
    for (int done = 2; done <= 4; done += 2) {
        ck_assert(turn_with(&q, 2));
        ck_assert_int_eq(n_served, done);
        for (int i = done - 2; i < done; i++) { /* who was served is ready again at once */
            ck_assert(!seen_one[served[i]]);
            seen_one[served[i]] = true;
            ck_assert_int_eq(write(peers[served[i]], "x", 1), 1);
        }
    }
    while (turn_with(&q, 2)) {
    }
    ck_assert_int_eq(n_served, MEMBERS + 4);
    ck_assert(!seen_one[served[4]]);
    close_members(peers);
}
END_TEST

START_TEST(many_bytes_count_as_several_streams)
{
    static char much[48 * 1024];
    struct stream_quota q;
    int peers[MEMBERS];

    open_members(&q, peers);
    ck_assert_int_eq(write(peers[0], much, sizeof much), (ssize_t)sizeof much);
    turn();
    ck_assert_int_eq(n_served, 1);
    ck_assert_int_eq(q.left, STREAM_QUOTA - 4);
    close_members(peers);
}
END_TEST

START_TEST(a_stream_that_waits_can_be_closed_or_paused)
{
    struct stream_quota q;
    int peers[MEMBERS];

    open_members(&q, peers);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(write(peers[i], "x", 1), 1);
    ck_assert(turn_with(&q, 0));
    stream_close(&members[0]);
    stream_pause(&members[1]);
    ck_assert(!turn_with(&q, STREAM_QUOTA));
    ck_assert_int_eq(n_served, 1);
    ck_assert_int_eq(served[0], 2);
    stream_resume(&members[1]);
    ck_assert(!turn_with(&q, STREAM_QUOTA));
    ck_assert_int_eq(n_served, 2);
    ck_assert_int_eq(served[1], 1);
    close_members(peers);
}
END_TEST

START_TEST(eof)
{
    peer_says("last");
    close(peer);
    peer = -1;
    UNTIL(seen.n_eof == 1);
    ck_assert_uint_eq(seen.total, 4);
    ck_assert_int_eq(seen.n_end, 0);
    turn();
    ck_assert_int_eq(seen.n_eof, 1);
    ck_assert(!event_pending(&st.readable, EV_READ, NULL)); /* else it would spin */
}
END_TEST

START_TEST(eof_leaves_the_other_direction)
{
    char got[8];

    shutdown(peer, SHUT_WR);
    UNTIL(seen.n_eof == 1);
    buf_append(stream_out(&st), "bye", 3);
    stream_flush(&st);
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), 3);
    stream_shutdown(&st);
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), 0);
}
END_TEST

START_TEST(eof_without_on_eof_is_the_end)
{
    st.events = &few_events;
    consume = 0;
    peer_says("x");
    turn();
    close(peer);
    peer = -1;
    UNTIL(seen.n_end == 1);
    ck_assert_int_eq(seen.end, STREAM_END_EOF);
    ck_assert_int_eq(seen.err, 0);
    ck_assert_str_eq(seen.text, "closed by the peer");
}
END_TEST

START_TEST(a_reset_is_told_from_an_orderly_end)
{
    use_tcp();
    reset_peer();
    UNTIL(seen.n_end == 1);
    ck_assert_int_eq(seen.end, STREAM_END_RESET);
    ck_assert_int_eq(seen.err, ECONNRESET);
    ck_assert_int_eq(seen.n_eof, 0);
}
END_TEST

START_TEST(a_refused_write_is_a_reset)
{
    close(peer);
    peer = -1;
    buf_append(stream_out(&st), "x", 1);
    stream_flush(&st);
    ck_assert_int_eq(seen.n_end, 1); /* inside */
    ck_assert_int_eq(seen.end, STREAM_END_RESET);
    ck_assert_int_eq(seen.err, EPIPE);
    stream_flush(&st); /* harmless on a closed one */
}
END_TEST

START_TEST(close_never_calls_back)
{
    char got[8];

    consume = 0;
    peer_says("x");
    turn();
    buf_append(stream_out(&st), "x", 1);
    inside = true;
    stream_close(&st);
    stream_close(&st);
    inside = false;
    turn();
    ck_assert_int_eq(seen.n_end + seen.n_eof, 0);
    ck_assert_int_eq(recv(peer, got, sizeof got, MSG_DONTWAIT), 0); /* nothing unsent has left */
}
END_TEST

START_TEST(close_inside_on_bytes)
{
    peer_says("x");
    consume = 0;
    turn();
    peer_says("y");
    close_in_bytes = true; /* while the bytes come from `in` */
    turn();
    ck_assert_int_eq(seen.n_bytes, 2);
    ck_assert_int_eq(st.fd, -1);
    ck_assert_int_eq(seen.n_end, 0);
}
END_TEST

START_TEST(reset_gives_the_peer_an_error)
{
    char got[8];

    use_tcp();
    stream_reset(&st);
    ck_assert_int_eq(recv(peer, got, sizeof got, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
}
END_TEST

START_TEST(probe_sees_what_pause_hides)
{
    use_tcp();
    stream_pause(&st);
    ck_assert(!stream_probe(&st));
    peer_says("x");
    ck_assert(!stream_probe(&st));
    shutdown(peer, SHUT_WR);
    UNTIL(stream_probe(&st));
    ck_assert_int_eq(seen.n_bytes + seen.n_eof + seen.n_end, 0);
    reset_peer();
    UNTIL((stream_probe(&st), seen.n_end == 1));
    ck_assert_int_eq(seen.end, STREAM_END_RESET);
}
END_TEST

START_TEST(keepalive_is_set_on_tcp)
{
    const struct stream_keepalive k = {.idle_ms = 15000, .timeout_ms = 20000};
    int value = 0;
    socklen_t len = sizeof value;

    stream_keepalive(&st, &k); /* harmless on a Unix socket */
    use_tcp();
    stream_keepalive(&st, &k);
    getsockopt(st.fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len);
    ck_assert_int_eq(value, 1);
    getsockopt(st.fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len);
    ck_assert_int_eq(value, 15);
    getsockopt(st.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &len);
    ck_assert_int_eq(value, 20000);
    getsockopt(st.fd, IPPROTO_TCP, TCP_NODELAY, &value, &len);
    ck_assert_int_eq(value, 1);
}
END_TEST

/* ---- connecting ---- */

static void dial(struct evdns_base *dns, const char *host, int port)
{
    stream_close(&st);
    inside = true;
    stream_connect(&st, dns, host, port);
    ck_assert(!stream_is_open(&st));
    inside = false;
}

START_TEST(connect_to_an_address)
{
    int port, listening = listen_tcp(&port);
    char got[8];

    dial(NULL, "127.0.0.1", port);
    buf_append(stream_out(&st), "early", 5);
    stream_flush(&st); /* not open: stays */
    UNTIL(seen.n_open == 1);
    stream_flush(&st);
    int fd = accept(listening, NULL, NULL);
    ck_assert_int_eq(recv(fd, got, sizeof got, 0), 5);
    ck_assert_int_eq(write(fd, "hi", 2), 2);
    UNTIL(seen.total == 2);
    ck_assert_int_eq(seen.n_open, 1);
    ck_assert_ptr_null(st.dial);
    close(fd);
    close(listening);
}
END_TEST

START_TEST(connect_refused)
{
    int port, listening = listen_tcp(&port);

    close(listening);
    dial(NULL, "127.0.0.1", port);
    UNTIL(seen.n_end == 1);
    ck_assert_int_eq(seen.end, STREAM_END_ERROR);
    ck_assert_int_eq(seen.err, ECONNREFUSED);
    ck_assert_int_eq(seen.n_open, 0);
    dial(NULL, "::1", port); /* usable again; fails one way or the other */
    UNTIL(seen.n_end == 2);
}
END_TEST

START_TEST(connect_to_a_path)
{
    char dir[] = "/tmp/check_stream.XXXXXX", path[64], longer[200];
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    dial(NULL, path, 0);
    UNTIL(seen.n_end == 1);
    ck_assert_int_eq(seen.err, ENOENT);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    dial(NULL, longer, 0);
    UNTIL(seen.n_end == 2);
    ck_assert_int_eq(seen.err, ENAMETOOLONG);

    strcpy(un.sun_path, path);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    dial(NULL, path, 0);
    UNTIL(seen.n_open == 1);

    int fd = accept(listening, NULL, NULL); /* closed in on_bytes, and connected again there */
    close_in_bytes = true;
    then_dial = path;
    ck_assert_int_eq(write(fd, "x", 1), 1);
    UNTIL(seen.n_open == 2);
    ck_assert_int_eq(seen.n_end, 2);
    close(fd);
    close(listening);
    unlink(path);
    rmdir(dir);
}
END_TEST

START_TEST(connect_by_name)
{
    char hosts[] = "/tmp/check_stream.XXXXXX";
    int port, listening = listen_tcp(&port);
    FILE *f = fdopen(mkstemp(hosts), "w");
    struct evdns_base *dns = evdns_base_new(base, 0);

    fputs("127.0.0.2 twin\n127.0.0.1 twin\n127.0.0.1 one\n", f);
    fclose(f);
    ck_assert_int_eq(evdns_base_load_hosts(dns, hosts), 0);
    dial(dns, "one", port);
    UNTIL(seen.n_open == 1);
    dial(dns, "twin", port); /* nobody listens at its first address */
    UNTIL(seen.n_open == 2);
    ck_assert_int_eq(seen.n_end, 0);
    evdns_base_free(dns, 1);
    close(listening);
    unlink(hosts);
}
END_TEST

/* A name server on the loopback; returns its socket. */
static int dns_server(struct evdns_base *dns)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    char text[STREAM_ADDRESS_MAX];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    getsockname(fd, (struct sockaddr *)&in, &len);
    stream_address(text, (struct sockaddr *)&in, len);
    ck_assert_int_eq(evdns_base_nameserver_ip_add(dns, text), 0);
    return fd;
}

/* Answers every question: there is no such name (RFC 1035, 4.1.1). */
static bool deny_name(int fd)
{
    unsigned char packet[512];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t n;

    while ((n = recvfrom(fd, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&from, &len)) >
           12) {
        packet[2] = 0x81;
        packet[3] = 0x83;
        sendto(fd, packet, (size_t)n, 0, (struct sockaddr *)&from, len);
    }
    return true;
}

START_TEST(connect_to_an_unknown_name)
{
    struct evdns_base *dns = evdns_base_new(base, 0);
    int server = dns_server(dns);

    dial(dns, "no.such.name", 1);
    UNTIL(deny_name(server) && seen.n_end == 1);
    ck_assert_int_eq(seen.end, STREAM_END_ERROR);
    ck_assert_str_eq(seen.text, evutil_gai_strerror(EVUTIL_EAI_NONAME));
    evdns_base_free(dns, 1);
    close(server);
}
END_TEST

START_TEST(close_while_a_name_is_looked_up)
{
    struct evdns_base *dns = evdns_base_new(base, 0);
    int server = dns_server(dns); /* never answers */

    dial(dns, "some.name.example", 1);
    turn();
    ck_assert_ptr_nonnull(st.dial);
    stream_close(&st);
    ck_assert_ptr_null(st.dial);
    for (int i = 0; i < 10; i++)
        turn();
    dial(dns, "other.name.example", 1);
    turn();
    stream_close(&st);
    evdns_base_free(dns, 1);
    turn();
    ck_assert_int_eq(seen.n_open + seen.n_end, 0);
    close(server);
}
END_TEST

START_TEST(addresses_in_words)
{
    char text[STREAM_ADDRESS_MAX];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(5625)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    in.sin_addr.s_addr = htonl(0x01020304);
    stream_address(text, (struct sockaddr *)&in, sizeof in);
    ck_assert_str_eq(text, "1.2.3.4:80");
    in6.sin6_addr.s6_addr[15] = 1;
    stream_address(text, (struct sockaddr *)&in6, sizeof in6);
    ck_assert_str_eq(text, "[::1]:5625");
    stream_address(text, (struct sockaddr *)&un, sizeof un.sun_family);
    ck_assert_str_eq(text, "unix:");
    strcpy(un.sun_path, "/run/x");
    stream_address(text, (struct sockaddr *)&un, sizeof un);
    ck_assert_str_eq(text, "unix:/run/x");
    memset(un.sun_path, 'y', sizeof un.sun_path); /* not terminated */
    stream_address(text, (struct sockaddr *)&un, sizeof un);
    ck_assert_uint_eq(strlen(text), 5 + sizeof un.sun_path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *bytes = tcase_create("bytes"), *ends = tcase_create("ends");
    TCase *dials = tcase_create("connect");

    tcase_add_checked_fixture(bytes, setup, teardown);
    tcase_add_test(bytes, writes_are_gathered);
    tcase_add_test(bytes, unconsumed_bytes_come_again);
    tcase_add_test(bytes, an_idle_stream_has_no_buffers);
    tcase_add_test(bytes, a_full_socket_is_waited_for);
    tcase_add_test(bytes, pause_and_resume);
    tcase_add_test(bytes, one_flood_does_not_take_the_whole_turn);
    tcase_add_test(bytes, a_quota_bounds_a_turn_and_passes_nobody_over);
    tcase_add_test(bytes, many_bytes_count_as_several_streams);
    tcase_add_test(bytes, a_stream_that_waits_can_be_closed_or_paused);
    tcase_add_test(bytes, keepalive_is_set_on_tcp);
    tcase_add_test(bytes, addresses_in_words);
    suite_add_tcase(suite, bytes);
    tcase_add_checked_fixture(ends, setup, teardown);
    tcase_add_test(ends, eof);
    tcase_add_test(ends, eof_leaves_the_other_direction);
    tcase_add_test(ends, eof_without_on_eof_is_the_end);
    tcase_add_test(ends, a_reset_is_told_from_an_orderly_end);
    tcase_add_test(ends, a_refused_write_is_a_reset);
    tcase_add_test(ends, close_never_calls_back);
    tcase_add_test(ends, close_inside_on_bytes);
    tcase_add_test(ends, reset_gives_the_peer_an_error);
    tcase_add_test(ends, probe_sees_what_pause_hides);
    suite_add_tcase(suite, ends);
    tcase_add_checked_fixture(dials, setup, teardown);
    tcase_add_test(dials, connect_to_an_address);
    tcase_add_test(dials, connect_refused);
    tcase_add_test(dials, connect_to_a_path);
    tcase_add_test(dials, connect_by_name);
    tcase_add_test(dials, connect_to_an_unknown_name);
    tcase_add_test(dials, close_while_a_name_is_looked_up);
    suite_add_tcase(suite, dials);
    return suite_run(suite);
}
