/*
 * Version 1 is a line of text of at most 107 bytes, version 2 a signature of 12 bytes, a fixed part
 * and as many bytes as that says: the addresses, and what else the proxy tells, which is skipped.
 */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

enum { LINE_MAX_LEN = 107, V2_FIXED = 16, V2_TCP4 = 12, V2_TCP6 = 36 };

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
enum { SIGNATURE_LEN = sizeof signature - 1 };

static void set_peer(struct sockaddr_storage *peer, socklen_t *peer_len, bool is_v6,
                     const void *address, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memcpy(is_v6 ? (void *)&in6.sin6_addr : &in.sin_addr, address,
           is_v6 ? sizeof in6.sin6_addr : sizeof in.sin_addr);
    *peer_len = is_v6 ? sizeof in6 : sizeof in;
    memcpy(peer, is_v6 ? (void *)&in6 : &in, *peer_len);
}

/* ---- version 1 ---- */

/* Reads "TCP4 source destination port port", which it splits at its spaces. */
static bool parse_words(char *text, struct sockaddr_storage *peer, socklen_t *peer_len)
{
    unsigned char source[sizeof(struct in6_addr)], destination[sizeof(struct in6_addr)];
    char *word[5], *rest = text;
    int64_t port, port_there;

    for (int i = 0; i < 5; i++) {
        if (!(word[i] = strsep(&rest, " ")))
            return false;
    }
    bool is_v6 = strcmp(word[0], "TCP6") == 0;
    int family = is_v6 ? AF_INET6 : AF_INET;
    if (rest || (!is_v6 && strcmp(word[0], "TCP4") != 0) ||
        inet_pton(family, word[1], source) != 1 || inet_pton(family, word[2], destination) != 1 ||
        util_parse_int(word[3], strlen(word[3]), 0, 65535, &port) != 0 ||
        util_parse_int(word[4], strlen(word[4]), 0, 65535, &port_there) != 0)
        return false;
    set_peer(peer, peer_len, is_v6, source, (uint16_t)port);
    return true;
}

static enum proxy_result parse_line(const char *data, size_t len, size_t *used,
                                    struct sockaddr_storage *peer, socklen_t *peer_len)
{
    char text[LINE_MAX_LEN + 1];
    size_t most = len < LINE_MAX_LEN ? len : LINE_MAX_LEN;
    const char *end = memchr(data, '\n', most);

    if (!end)
        return len < LINE_MAX_LEN ? PROXY_MORE : PROXY_ERROR;
    size_t n = (size_t)(end - data);
    if (data[n - 1] != '\r' || memchr(data, '\0', n))
        return PROXY_ERROR;
    memcpy(text, data, n - 1);
    text[n - 1] = '\0';
    *used = n + 1;
    if (strcmp(text, "PROXY UNKNOWN") == 0 || strncmp(text, "PROXY UNKNOWN ", 14) == 0)
        return PROXY_DONE;
    return parse_words(text + 6, peer, peer_len) ? PROXY_DONE : PROXY_ERROR;
}

/* ---- version 2 ---- */

static uint16_t get_u16(const unsigned char *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static enum proxy_result parse_binary(const unsigned char *data, size_t len, size_t *used,
                                      struct sockaddr_storage *peer, socklen_t *peer_len)
{
    if (len < V2_FIXED)
        return PROXY_MORE;
    size_t body = get_u16(data + 14);
    unsigned char command = data[12], family = data[13];
    const unsigned char *addresses = data + V2_FIXED;
    if ((command != 0x20 && command != 0x21) || V2_FIXED + body > PROXY_HEADER_MAX)
        return PROXY_ERROR;
    if (len < V2_FIXED + body)
        return PROXY_MORE;
    *used = V2_FIXED + body;
    if (command == 0x20) /* LOCAL: by the proxy itself */
        return PROXY_DONE;
    if ((family == 0x11 && body < V2_TCP4) || (family == 0x21 && body < V2_TCP6))
        return PROXY_ERROR;
    if (family == 0x11) /* source, destination, their ports */
        set_peer(peer, peer_len, false, addresses, get_u16(addresses + 8));
    else if (family == 0x21)
        set_peer(peer, peer_len, true, addresses, get_u16(addresses + 32));
    return PROXY_DONE;
}

enum proxy_result proxy_parse(const char *data, size_t len, size_t *used,
                              struct sockaddr_storage *peer, socklen_t *peer_len)
{
    *peer_len = 0;
    if (memcmp(data, signature, len < SIGNATURE_LEN ? len : SIGNATURE_LEN) == 0)
        return parse_binary((const unsigned char *)data, len, used, peer, peer_len);
    if (memcmp(data, "PROXY ", len < 6 ? len : 6) != 0)
        return PROXY_ERROR;
    return len < 7 ? PROXY_MORE : parse_line(data, len, used, peer, peer_len);
}
