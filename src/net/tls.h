#pragma once
/*
 * tls: what the broker wants of OpenSSL: contexts made from files, and one connection over a
 * non-blocking socket. TLS 1.2 and 1.3; the choice of ciphers is OpenSSL's. No renegotiation, no
 * compression, no early data.
 *
 * The types are OpenSSL's own (SSL_CTX and SSL), named here as it names them, so that its headers
 * stay out of everybody else's files.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct ssl_ctx_st;
struct ssl_st;

/* Paths of PEM files, as they stand in the configuration (credential_expand); NULL: none. */
struct tls_files {
    const char *certificate; /* ours, and behind it those between it and the root */
    const char *key;         /* of it, without a passphrase; none: it is in `certificate` */
    const char *ca;          /* whom to believe; none: a client believes whom the system believes */
};

/* What is asked of clients. */
enum tls_clients { TLS_CLIENTS_ANY, TLS_CLIENTS_OPTIONAL, TLS_CLIENTS_REQUIRED };

enum { TLS_REASON_MAX = 300 };

/* Makes a context for connections of clients. Reads the files, so it blocks. NULL: `error` says
 * which file and why. With TLS_CLIENTS_OPTIONAL a client may come without a certificate, but not
 * with a bad one. */
struct ssl_ctx_st *tls_server_new(const struct tls_files *, enum tls_clients, char *error,
                                  size_t error_size) MUST_CHECK;
struct ssl_ctx_st *tls_client_new(const struct tls_files *, char *error,
                                  size_t error_size) MUST_CHECK;
/* Returns when the first of the certificates that it shows expires, in seconds since 1970; 0 if it
 * shows none. */
int64_t tls_context_expiry_s(struct ssl_ctx_st *);
/* Frees a context; connections made from it go on. NULL is allowed. */
void tls_context_free(struct ssl_ctx_st *);

/* Make a connection over `fd`, which stays the caller's. `name` is the name or the numeric address
 * that the certificate of the server must be for. */
struct ssl_st *tls_accept(struct ssl_ctx_st *, int fd);
struct ssl_st *tls_connect(struct ssl_ctx_st *, int fd, const char *name);
/* Frees a connection without a word to the peer. NULL is allowed. */
void tls_free(struct ssl_st *);

enum tls_result {
    TLS_DONE,
    TLS_WANT_READ,  /* again when the socket has bytes */
    TLS_WANT_WRITE, /* again when the socket takes bytes */
    TLS_CLOSED,     /* the peer has said that nothing more will come (close_notify) */
    TLS_CUT,        /* the bytes have ended without that */
    TLS_BROKEN,     /* an error of the socket: errno */
    TLS_FAILED      /* not TLS, or not as we want it: tls_reason() */
};

enum tls_result tls_shake(struct ssl_st *);
/* Reads at most one record, and all of it when n is 16 KB or more: then nothing is ever held back
 * here that the socket does not know of. tls_write() may write less than n; a try that was not
 * TLS_DONE has to be repeated with the same bytes first, wherever they are by then. */
enum tls_result tls_read(struct ssl_st *, void *p, size_t n, size_t *done);
enum tls_result tls_write(struct ssl_st *, const void *p, size_t n, size_t *done);
/* Writes the common name in the peer's certificate, which has been verified; false if there is
 * none. */
bool tls_peer_name(struct ssl_st *, char *out, size_t size);
/* Tells the peer that nothing more will come, if the socket takes it. */
void tls_goodbye(struct ssl_st *);

/* Returns in words why the last call here has failed. */
const char *tls_reason(void);
