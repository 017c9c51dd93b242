/* TLS below streams: two streams that speak to each other over a Unix socket, with certificates
 * made here, and what is said of files that are not good. */
#include "net/tls.h"

#include <errno.h>
#include <event2/event.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/conf.h"
#include "net/stream.h"
#include "redis/master.h"
#include "suite.h"

enum { FLOOD = 3 * 1024 * 1024 };

/* One of the two sides. */
struct side {
    struct stream stream;
    struct buf got;
    int n_open, n_eof, n_end;
    enum stream_end end;
    char text[300];
};

static struct event_base *base;
static struct side server, client;
static struct ssl_ctx_st *server_context, *client_context;
static char dir[32], cert_path[64], other_path[64], socket_path[64];
static int listener = -1;

/* ---- the sides ---- */

static void on_open(void *arg)
{
    ((struct side *)arg)->n_open++;
}

static size_t on_bytes(void *arg, const char *data, size_t len)
{
    buf_append(&((struct side *)arg)->got, data, len);
    return len;
}

static void on_eof(void *arg)
{
    ((struct side *)arg)->n_eof++;
}

static void on_end(void *arg, enum stream_end end, int err, const char *text)
{
    struct side *side = arg;

    (void)err;
    side->n_end++;
    side->end = end;
    snprintf(side->text, sizeof side->text, "%s", text);
}

static const struct stream_events events = {
    .on_open = on_open, .on_bytes = on_bytes, .on_eof = on_eof, .on_end = on_end};

/* ---- certificates ---- */

/* A certificate for `name` that has signed itself, with its key behind it in one file. */
static void make_certificate(const char *path, const char *name)
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    EVP_PKEY *key = NULL;
    X509 *x = X509_new();
    char names[80];
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(EVP_PKEY_keygen_init(maker), 1);
    EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker, NID_X9_62_prime256v1);
    ck_assert_int_eq(EVP_PKEY_keygen(maker, &key), 1);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    snprintf(names, sizeof names, "DNS:%s,IP:127.0.0.1", name);
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    X509_add_ext(x, san, -1);
    X509_EXTENSION_free(san);
    ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
    PEM_write_X509(f, x);
    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(maker);
}

static void make_files(void)
{
    strcpy(dir, "/tmp/check_tls.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(cert_path, sizeof cert_path, "%s/cert.pem", dir);
    snprintf(other_path, sizeof other_path, "%s/other.pem", dir);
    snprintf(socket_path, sizeof socket_path, "%s/s", dir);
    make_certificate(cert_path, "good.example");
    make_certificate(other_path, "other.example");
}

static void remove_files(void)
{
    unlink(cert_path);
    unlink(other_path);
    unlink(socket_path);
    rmdir(dir);
}

/* ---- set up ---- */

static void turn(void)
{
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        for (int tries_ = 0; !(condition); tries_++) {                                             \
            ck_assert_msg(tries_ < 10000, "waited in vain for " #condition);                       \
            turn();                                                                                \
            if (tries_ % 16 == 15)                                                                 \
                usleep(1000);                                                                      \
        }                                                                                          \
    } while (0)

static void setup(void)
{
    char error[TLS_REASON_MAX] = "";

    signal(SIGPIPE, SIG_IGN);
    make_files();
    const struct tls_files files = {.certificate = cert_path}, trust = {.ca = cert_path};
    server_context = tls_server_new(&files, TLS_CLIENTS_ANY, error, sizeof error);
    ck_assert_msg(server_context != NULL, "%s", error);
    client_context = tls_client_new(&trust, error, sizeof error);
    ck_assert_msg(client_context != NULL, "%s", error);
    base = event_base_new();
    memset(&server, 0, sizeof server);
    memset(&client, 0, sizeof client);
    stream_init(&server.stream, base, &events, &server);
    stream_init(&client.stream, base, &events, &client);

    struct sockaddr_un un = {.sun_family = AF_UNIX};
    strcpy(un.sun_path, socket_path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
}

static void teardown(void)
{
    stream_close(&server.stream);
    stream_close(&client.stream);
    buf_fini(&server.got);
    buf_fini(&client.got);
    event_base_free(base);
    tls_context_free(server_context);
    tls_context_free(client_context);
    close(listener);
    remove_files();
}

/* Begins; the handshake runs in the loop. */
static void dial(const char *name)
{
    stream_secure(&client.stream, client_context, name);
    stream_connect(&client.stream, NULL, socket_path, 0);
    turn();
    stream_adopt_tls(&server.stream, accept(listener, NULL, NULL), server_context);
    ck_assert(stream_is_shaking(&server.stream) && stream_is_open(&server.stream));
}

static void meet(void)
{
    dial("good.example");
    UNTIL(client.n_open == 1 && !stream_is_shaking(&server.stream));
}

static void say(struct side *side, const char *text)
{
    buf_append(stream_out(&side->stream), text, strlen(text));
    stream_flush(&side->stream);
}

static bool has(const struct side *side, const char *text)
{
    size_t len = strlen(text);

    return buf_len(&side->got) == len && memcmp(buf_head(&side->got), text, len) == 0;
}

/* ---- tests ---- */

START_TEST(bytes_both_ways)
{
    dial("good.example");
    ck_assert(!stream_is_open(&client.stream));
    say(&server, "early"); /* kept until the handshake is done */
    UNTIL(client.n_open == 1);
    say(&client, "ping");
    UNTIL(has(&server, "ping"));
    UNTIL(has(&client, "early"));
    ck_assert_int_eq(server.stream.bytes_in, 4);
    ck_assert_int_eq(server.n_open, 0); /* as for any that is adopted */
    ck_assert_int_eq(server.n_end + client.n_end, 0);
}
END_TEST

START_TEST(numeric_names)
{
    dial("127.0.0.1");
    UNTIL(client.n_open == 1);
}
END_TEST

START_TEST(names_are_checked)
{
    dial("bad.example");
    UNTIL(client.n_end == 1 && server.n_end == 1);
    ck_assert_int_eq(client.end, STREAM_END_TLS);
    ck_assert_ptr_nonnull(strstr(client.text, "hostname mismatch"));
    ck_assert_int_eq(server.end, STREAM_END_TLS);
    ck_assert_int_eq(client.n_open, 0);
}
END_TEST

START_TEST(numbers_are_checked)
{
    dial("127.0.0.2");
    UNTIL(client.n_end == 1);
    ck_assert_ptr_nonnull(strstr(client.text, "IP address mismatch"));
}
END_TEST

START_TEST(strangers_are_not_believed)
{
    const struct tls_files trust = {.ca = other_path};
    char error[TLS_REASON_MAX];

    tls_context_free(client_context);
    client_context = tls_client_new(&trust, error, sizeof error);
    dial("good.example");
    UNTIL(client.n_end == 1);
    ck_assert_int_eq(client.end, STREAM_END_TLS);
    ck_assert_ptr_nonnull(strstr(client.text, "certificate of the peer is not good"));
}
END_TEST

START_TEST(a_flood_arrives_whole)
{
    char *data = util_alloc(FLOOD);

    meet();
    util_random(data, FLOOD);
    buf_append(stream_out(&client.stream), data, FLOOD);
    stream_flush(&client.stream);
    UNTIL(buf_len(&server.got) > 100000);
    stream_pause(&server.stream);
    size_t len = buf_len(&server.got);
    for (int i = 0; i < 50; i++)
        turn();
    ck_assert_uint_eq(buf_len(&server.got), len);
    stream_resume(&server.stream);
    UNTIL(buf_len(&server.got) == FLOOD);
    ck_assert_int_eq(memcmp(buf_head(&server.got), data, FLOOD), 0);
    ck_assert_uint_eq(buf_len(stream_out(&client.stream)), 0);
    free(data);
}
END_TEST

START_TEST(close_notify_is_an_orderly_end)
{
    meet();
    stream_shutdown(&client.stream);
    UNTIL(server.n_eof == 1);
    say(&server, "bye"); /* the other direction is still open */
    UNTIL(has(&client, "bye"));
    stream_close(&server.stream);
    UNTIL(client.n_eof == 1);
    ck_assert_int_eq(server.n_end + client.n_end, 0);
}
END_TEST

/* As over plain TCP: many libraries, and the kernel for a program that is killed, say no more. */
START_TEST(a_bare_fin_is_one_too)
{
    meet();
    say(&client, "last");
    shutdown(client.stream.fd, SHUT_WR);
    UNTIL(server.n_eof == 1);
    ck_assert(has(&server, "last"));
    say(&server, "bye"); /* the other direction is still open */
    UNTIL(has(&client, "bye"));
    ck_assert_int_eq(server.n_end, 0);
}
END_TEST

START_TEST(a_reset_says_nothing)
{
    meet();
    stream_reset(&client.stream);
    UNTIL(server.n_end == 1);
    ck_assert_int_eq(server.end, STREAM_END_RESET);
}
END_TEST

START_TEST(a_probe_sees_the_end)
{
    meet();
    stream_pause(&server.stream);
    ck_assert(!stream_probe(&server.stream));
    ck_assert_int_eq(server.n_end, 0);
    stream_close(&client.stream);
    ck_assert(!stream_probe(&server.stream));
    ck_assert_int_eq(server.end, STREAM_END_RESET);
}
END_TEST

START_TEST(what_is_not_tls_ends)
{
    int fd[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    stream_adopt_tls(&server.stream, fd[0], server_context);
    ck_assert_int_eq(write(fd[1], "PING\r\nPING\r\n", 12), 12);
    UNTIL(server.n_end == 1);
    ck_assert_int_eq(server.end, STREAM_END_TLS);
    ck_assert_ptr_nonnull(strstr(server.text, "TLS: "));
    close(fd[1]);
}
END_TEST

START_TEST(garbage_in_a_record_ends)
{
    meet();
    ck_assert_int_eq(
        write(client.stream.fd, "\x17\x03\x03\x00\x20 0123456789012345678901234567890", 37), 37);
    UNTIL(server.n_end == 1);
    ck_assert_int_eq(server.end, STREAM_END_TLS);
    ck_assert_uint_eq(buf_len(&server.got), 0);
}
END_TEST

START_TEST(an_end_in_the_handshake)
{
    int fd[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    stream_adopt_tls(&server.stream, fd[0], server_context);
    ck_assert_int_eq(write(fd[1], "\x16\x03\x01", 3), 3);
    turn();
    ck_assert_int_eq(server.n_end, 0);
    close(fd[1]);
    UNTIL(server.n_end == 1);
    ck_assert_int_eq(server.end, STREAM_END_EOF);
}
END_TEST

/* The client asks for a new key, which the server must answer, while the server's socket is full.
 */
START_TEST(a_new_key_while_the_socket_is_full)
{
    char *data = util_alloc(FLOOD);

    meet();
    stream_pause(&client.stream);
    buf_append(stream_out(&server.stream), data, FLOOD);
    stream_flush(&server.stream);
    ck_assert_uint_gt(buf_len(stream_out(&server.stream)), 0);
    ck_assert_int_eq(SSL_key_update(client.stream.tls, SSL_KEY_UPDATE_REQUESTED), 1);
    say(&client, "after the key");
    for (int i = 0; i < 100; i++)
        turn();
    stream_resume(&client.stream);
    UNTIL(buf_len(&client.got) == FLOOD);
    UNTIL(has(&server, "after the key"));
    ck_assert_int_eq(memcmp(buf_head(&client.got), data, FLOOD), 0);
    ck_assert(!server.stream.read_waits);
    say(&server, "!");
    UNTIL(buf_len(&client.got) == FLOOD + 1);
    free(data);
}
END_TEST

START_TEST(a_context_may_go_before_its_connections)
{
    meet();
    tls_context_free(server_context);
    server_context = NULL;
    say(&client, "ping");
    UNTIL(has(&server, "ping"));
}
END_TEST

START_TEST(closing_in_every_state)
{
    for (int turns = 0; turns < 8; turns++) {
        dial("good.example");
        for (int i = 0; i < turns; i++)
            turn();
        stream_close(&client.stream);
        for (int i = 0; i < 3; i++)
            turn();
        stream_close(&server.stream);
        ck_assert_ptr_null(server.stream.tls);
        ck_assert(!server.stream.shaking && !client.stream.connecting);
    }
}
END_TEST

/* ---- files ---- */

static void expect_refused(const struct tls_files *files, const char *expected)
{
    char error[TLS_REASON_MAX] = "";

    ck_assert_ptr_null(tls_server_new(files, TLS_CLIENTS_ANY, error, sizeof error));
    ck_assert_msg(strncmp(error, expected, strlen(expected)) == 0, "%s", error);
    ck_assert_ptr_null(tls_client_new(files, error, sizeof error));
    ck_assert_msg(strncmp(error, expected, strlen(expected)) == 0, "%s", error);
}

START_TEST(bad_files)
{
    char text[128];

    make_files();
    expect_refused(&(struct tls_files){.certificate = "/nowhere/x"},
                   "certificate /nowhere/x: No such file or directory");
    expect_refused(&(struct tls_files){.certificate = "/dev/null"}, "certificate /dev/null: ");
    expect_refused(&(struct tls_files){.certificate = cert_path, .key = "/nowhere/k"},
                   "key /nowhere/k: No such file or directory");
    snprintf(text, sizeof text, "key %s: key values mismatch", other_path);
    expect_refused(&(struct tls_files){.certificate = cert_path, .key = other_path}, text);
    expect_refused(&(struct tls_files){.ca = "/nowhere/ca"}, "ca /nowhere/ca: ");
    unsetenv("CREDENTIALS_DIRECTORY");
    expect_refused(&(struct tls_files){.certificate = "%d/x"},
                   "certificate %d/x: there are no credentials");
    remove_files();
}
END_TEST

START_TEST(the_name_of_a_master)
{
    ck_assert_str_eq(master_tls_name(NULL, "h"), "h");
    ck_assert_str_eq(master_tls_name("n", "h"), "n");
    ck_assert_str_eq(master_tls_name(NULL, NULL), ""); /* Sentinels name none */
}
END_TEST

static Suite *tls_suite(void)
{
    Suite *s = suite_create("tls");
    TCase *t = tcase_create("streams"), *files = tcase_create("files");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, bytes_both_ways);
    tcase_add_test(t, numeric_names);
    tcase_add_test(t, names_are_checked);
    tcase_add_test(t, numbers_are_checked);
    tcase_add_test(t, strangers_are_not_believed);
    tcase_add_test(t, a_flood_arrives_whole);
    tcase_add_test(t, close_notify_is_an_orderly_end);
    tcase_add_test(t, a_bare_fin_is_one_too);
    tcase_add_test(t, a_reset_says_nothing);
    tcase_add_test(t, a_probe_sees_the_end);
    tcase_add_test(t, what_is_not_tls_ends);
    tcase_add_test(t, garbage_in_a_record_ends);
    tcase_add_test(t, an_end_in_the_handshake);
    tcase_add_test(t, a_new_key_while_the_socket_is_full);
    tcase_add_test(t, a_context_may_go_before_its_connections);
    tcase_add_test(t, closing_in_every_state);
    suite_add_tcase(s, t);
    tcase_add_test(files, bad_files);
    tcase_add_test(files, the_name_of_a_master);
    suite_add_tcase(s, files);
    return s;
}

int main(void)
{
    return suite_run(tls_suite());
}
