/* Addresses of sockets as text. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/stream.h"

static void unix_address(char out[STREAM_ADDRESS_MAX], const struct sockaddr *addr, socklen_t len)
{
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t path_len = len > head ? len - head : 0;
    char path[sizeof(struct sockaddr_un)];

    memcpy(path, (const char *)addr + head, path_len);
    path[path_len] = 0;
    if (path_len > 0 && path[0] == 0) /* the abstract name space, where names are not terminated */
        path[0] = '@';
    snprintf(out, STREAM_ADDRESS_MAX, "unix:%s", path);
}

void stream_address(char out[STREAM_ADDRESS_MAX], const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_storage any = {0};
    char text[INET6_ADDRSTRLEN] = "?";

    memcpy(&any, addr, len < sizeof any ? len : sizeof any);
    if (any.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&any;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(out, STREAM_ADDRESS_MAX, "%s:%u", text, (unsigned)ntohs(in->sin_port));
    } else if (any.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&any;
        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
        snprintf(out, STREAM_ADDRESS_MAX, "[%s]:%u", text, (unsigned)ntohs(in6->sin6_port));
    } else {
        unix_address(out, addr, len <= sizeof(struct sockaddr_un) ? len : 0);
    }
}

static void address_of(char out[STREAM_ADDRESS_MAX], int fd,
                       int (*ask)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;

    if (ask(fd, (struct sockaddr *)&addr, &len) == 0)
        stream_address(out, (const struct sockaddr *)&addr, len);
    else
        strcpy(out, "?");
}

void stream_own_address(char out[STREAM_ADDRESS_MAX], int fd)
{
    address_of(out, fd, getsockname);
}

void stream_peer_address(char out[STREAM_ADDRESS_MAX], int fd)
{
    address_of(out, fd, getpeername);
}
