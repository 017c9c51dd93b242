/* Where connections come from, and how many from each address, so that one machine cannot take them
 * all.
 *
 * An entry lives as long as it has a connection, so there are never more of them than clients. Of
 * IPv6 the first 64 bits count as the address: whoever has one address of a network has all of it.
 * Peers over Unix sockets have no address and are not counted; their uid is their origin. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "client/private.h"

/* A keyed hash, as strangers choose their addresses. */
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)util_hash((key), (len)))
#define uthash_fatal(text) util_die("client: %s", (text))
#include <uthash.h>

struct client_peer {
    UT_hash_handle hh;
    unsigned char key[CLIENT_PEER_KEY];
    uint32_t n_clients, n_strangers;
};

/* Makes the key of an address; returns false when it has none. */
static bool key_of(const struct sockaddr *addr, unsigned char key[CLIENT_PEER_KEY])
{
    memset(key, 0, CLIENT_PEER_KEY);
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof in);
        key[0] = 4;
        memcpy(key + 1, &in.sin_addr, 4);
        return true;
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, addr, sizeof in6);
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
        key[0] = mapped ? 4 : 6;
        memcpy(key + 1, (const char *)&in6.sin6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
        return true;
    }
    return false;
}

uint64_t client_peer_origin(const struct sockaddr *addr, int64_t uid)
{
    unsigned char key[CLIENT_PEER_KEY];

    if (!key_of(addr, key))
        memcpy(key + 1, &uid, sizeof uid);
    return util_hash(key, sizeof key);
}

static struct client_peer *find_peer(struct clients *set, const unsigned char *key)
{
    struct client_peer *p;

    HASH_FIND(hh, set->peers, key, CLIENT_PEER_KEY, p);
    return p;
}

void client_peer_count(struct clients *set, const struct sockaddr *addr, int64_t *n_clients,
                       int64_t *n_strangers)
{
    unsigned char key[CLIENT_PEER_KEY];
    const struct client_peer *p = key_of(addr, key) ? find_peer(set, key) : NULL;

    *n_clients = p ? p->n_clients : 0;
    *n_strangers = p ? p->n_strangers : 0;
}

struct client_peer *client_peer_join(struct clients *set, const struct sockaddr *addr)
{
    unsigned char key[CLIENT_PEER_KEY];
    struct client_peer *p;

    if (!key_of(addr, key))
        return NULL;
    p = find_peer(set, key);
    if (!p) {
        p = util_alloc(sizeof *p);
        memcpy(p->key, key, sizeof p->key);
        HASH_ADD(hh, set->peers, key, CLIENT_PEER_KEY, p);
    }
    p->n_clients++;
    return p;
}

void client_peer_stranger(struct client_peer *p, int change)
{
    if (p)
        p->n_strangers += (uint32_t)change;
}

void client_peer_leave(struct clients *set, struct client_peer *p)
{
    if (!p || --p->n_clients > 0)
        return;
    HASH_DEL(set->peers, p); /* NOLINT(clang-analyzer-core.NullDereference) */
    free(p);
}

char *client_local_address(int fd)
{
    char text[STREAM_ADDRESS_MAX];

    stream_own_address(text, fd);
    return util_strdup(text);
}

char *client_peer_address(int fd, const struct sockaddr *peer, socklen_t len)
{
    char text[STREAM_ADDRESS_MAX];

    if (peer->sa_family == AF_UNIX)
        return client_local_address(fd);
    stream_address(text, peer, len);
    return util_strdup(text);
}
