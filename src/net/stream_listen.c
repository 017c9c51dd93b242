/* Opens sockets that listen on TCP addresses, for clients and for HTTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/stream.h"

enum { BACKLOG = 1024 }; /* the kernel cuts it to net.core.somaxconn */

/* Returns a listening socket; -1: errno says why there is none. */
static int bind_tcp(const struct sockaddr *addr, socklen_t len)
{
    int on = 1;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (addr->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, addr, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

static bool is_without_ipv6(int err)
{
    return err == EAFNOSUPPORT || err == EADDRNOTAVAIL;
}

int stream_listen(const char *host, int port, int fds[2], char where[STREAM_ADDRESS_MAX])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool all = strcmp(host, "*") == 0, v4 = all || inet_pton(AF_INET, host, &in.sin_addr) == 1,
         v6 = all || (!v4 && inet_pton(AF_INET6, host, &in6.sin6_addr) == 1);
    bool optional = all || IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);

    fds[0] = fds[1] = -1;
    if (!v4 && !v6) {
        snprintf(where, STREAM_ADDRESS_MAX, "%s", host);
        errno = EINVAL;
        return -1;
    }
    stream_address(where, (const struct sockaddr *)&in, sizeof in);
    if (v4 && (fds[0] = bind_tcp((const struct sockaddr *)&in, sizeof in)) < 0)
        return -1;
    if (!v6 || (fds[1] = bind_tcp((const struct sockaddr *)&in6, sizeof in6)) >= 0 ||
        (optional && is_without_ipv6(errno)))
        return 0;
    int err = errno;
    if (fds[0] >= 0)
        close(fds[0]);
    stream_address(where, (const struct sockaddr *)&in6, sizeof in6);
    errno = err;
    return -1;
}
