#pragma once
/*
 * proxy: the header of the PROXY protocol, versions 1 and 2, with which a proxy says for whom it
 * has connected. Pure: bytes in, an address out.
 */
#include <stddef.h>
#include <sys/socket.h>

/* The longest header that is read; anything longer is none. */
enum { PROXY_HEADER_MAX = 1024 };

enum proxy_result {
    PROXY_MORE,  /* all of it may be the beginning of a header */
    PROXY_DONE,  /* the first *used bytes are one */
    PROXY_ERROR, /* no header begins like that */
};

/* Reads a header at the start of the bytes. On PROXY_DONE `peer` is the address of the client;
 * *peer_len 0 if the header names none (a health check of the proxy itself, or a family that is not
 * IP): the connection is then the proxy's own. */
enum proxy_result proxy_parse(const char *data, size_t len, size_t *used,
                              struct sockaddr_storage *peer, socklen_t *peer_len);
