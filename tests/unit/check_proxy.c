/* Unit tests of proxy: headers as proxies send them, whole and in pieces, and what is none. */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define ROW(text, address)                                                                         \
    {                                                                                              \
        text, sizeof(text) - 1, address                                                            \
    }

struct row {
    const char *text;
    size_t len;
    const char *address; /* "": the proxy's own; NULL: no header */
};

static const struct row rows[] = {
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4711 5625\r\n", "192.0.2.7:4711"),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 0 65535\r\n", "192.0.2.7:0"),
    ROW("PROXY TCP6 2001:db8::1 ::1 65535 5625\r\n", "2001:db8::1:65535"),
    ROW("PROXY UNKNOWN\r\n", ""),
    ROW("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", ""),
    ROW("PROXY UNKNOWNX\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4711\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4711 5625 1\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7  127.0.0.1 4711 5625\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 65536 5625\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 -1 5625\r\n", NULL),
    ROW("PROXY TCP4 2001:db8::1 127.0.0.1 1 5625\r\n", NULL),
    ROW("PROXY TCP6 192.0.2.7 ::1 1 5625\r\n", NULL),
    ROW("PROXY UDP4 192.0.2.7 127.0.0.1 1 5625\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4711 5625\n", NULL),
    ROW("PROXY TCP4 192.0.2.7\0 127.0.0.1 4711 5625\r\n", NULL),
    ROW("PROXY \n", NULL),
    ROW("proxy TCP4 192.0.2.7 127.0.0.1 4711 5625\r\n", NULL),
    ROW("*1\r\n$4\r\nPING\r\n", NULL),
    ROW("PING\r\n", NULL),
    ROW("\x16\x03\x01", NULL),
    ROW(SIGNATURE "\x21\x11\0\x0c\xc0\0\2\7\x7f\0\0\1\x12\x67\x15\xf9", "192.0.2.7:4711"),
    ROW(SIGNATURE "\x21\x11\0\x10\xc0\0\2\7\x7f\0\0\1\x12\x67\x15\xf9\4\0\1\0", "192.0.2.7:4711"),
    ROW(SIGNATURE "\x21\x21\0\x24\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\xff\xff\x15\xf9",
        "2001:db8::1:65535"),
    ROW(SIGNATURE "\x20\0\0\0", ""),
    ROW(SIGNATURE "\x21\0\0\0", ""),
    ROW(SIGNATURE "\x21\x12\0\x0c\xc0\0\2\7\x7f\0\0\1\x12\x67\x15\xf9", ""),
    ROW(SIGNATURE "\x21\x11\0\x0b\xc0\0\2\7\x7f\0\0\1\x12\x67\x15", NULL),
    ROW(SIGNATURE "\x11\x11\0\x0c\xc0\0\2\7\x7f\0\0\1\x12\x67\x15\xf9", NULL),
    ROW(SIGNATURE "\x22\x11\0\x0c\xc0\0\2\7\x7f\0\0\1\x12\x67\x15\xf9", NULL),
    ROW(SIGNATURE "\x21\x11\xff\xff", NULL),
};

/* In a block of its own size, so that what reads on is caught by the sanitizer. */
static enum proxy_result parse(const char *text, size_t len, size_t *used, char address[80])
{
    struct sockaddr_storage peer = {0};
    socklen_t peer_len = 99;
    char *copy = malloc(len), host[64] = "";
    memcpy(copy, text, len);
    enum proxy_result result = proxy_parse(copy, len, used, &peer, &peer_len);
    free(copy);
    address[0] = '\0';
    if (result != PROXY_DONE || peer_len == 0)
        return result;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &peer, sizeof in);
    memcpy(&in6, &peer, sizeof in6);
    bool is_v6 = peer.ss_family == AF_INET6;
    ck_assert_uint_eq(peer_len, is_v6 ? sizeof in6 : sizeof in);
    inet_ntop(peer.ss_family, is_v6 ? (void *)&in6.sin6_addr : (void *)&in.sin_addr, host,
              sizeof host);
    snprintf(address, 80, "%s:%d", host, ntohs(is_v6 ? in6.sin6_port : in.sin_port));
    return result;
}

START_TEST(headers)
{
    const struct row *row = &rows[_i];
    char text[400], address[80];
    size_t used = 0;

    memcpy(text, row->text, row->len);
    memcpy(text + row->len, "PROXY", 5); /* what follows is not looked at */
    enum proxy_result result = parse(text, row->len + 5, &used, address);
    ck_assert_int_eq(result, row->address ? PROXY_DONE : PROXY_ERROR);
    if (!row->address)
        return;
    ck_assert_uint_eq(used, row->len);
    ck_assert_str_eq(address, row->address);
    for (size_t len = 1; len < row->len; len++)
        ck_assert_int_eq(parse(text, len, &used, address), PROXY_MORE);
    ck_assert_int_eq(parse(text, row->len, &used, address), PROXY_DONE);
}
END_TEST

START_TEST(a_line_has_an_end)
{
    char text[200] = "PROXY UNKNOWN ", address[80];
    size_t used;

    memset(text + 14, 'x', sizeof text - 14);
    ck_assert_int_eq(parse(text, 106, &used, address), PROXY_MORE);
    ck_assert_int_eq(parse(text, 107, &used, address), PROXY_ERROR);
    memcpy(text + 105, "\r\n", 2);
    ck_assert_int_eq(parse(text, sizeof text, &used, address), PROXY_DONE);
    ck_assert_uint_eq(used, 107);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("proxy");
    TCase *c = tcase_create("proxy");
    tcase_add_loop_test(c, headers, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(c, a_line_has_an_end);
    suite_add_tcase(s, c);
    return suite_run(s);
}
