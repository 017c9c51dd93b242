/* Contexts from files, and connections, by OpenSSL.
 *
 * Owns nothing but the text of the last failure. Knows the two kinds of peers: a server is held to
 * its name, a client to the authority that we were given for clients.
 *
 * Invariant: OpenSSL's queue of errors is empty before each call of it, so that what is found there
 * after a failure belongs to it. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/credential.h"

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#define SSL_get1_peer_certificate SSL_get_peer_certificate
#endif

enum { PATH_ROOM = 1024 };

static char reason[TLS_REASON_MAX];

/* Returns the first error, which is the cause: those behind it are its consequences. */
static const char *first_error(void)
{
    unsigned long err = ERR_get_error();
    const char *text = ERR_reason_error_string(err);

    if (ERR_SYSTEM_ERROR(err))
        text = strerror(ERR_GET_REASON(err));
    ERR_clear_error();
    return text ? text : "no reason given";
}

/* ---- contexts ---- */

/* Knows no passphrase; without this function OpenSSL would ask for one on the terminal. */
static int on_passphrase(char *buf, int size, int for_writing, void *arg)
{
    (void)buf, (void)size, (void)for_writing, (void)arg;
    return 0;
}

static SSL_CTX *context_new(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);

    if (!ctx)
        util_die("cannot make a TLS context: %s", first_error());
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF); /* we can still write after it */
#endif
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    /* A record without bytes of the application ends a read, so that a flood of them holds up
     * nobody else. */
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory here */
    SSL_CTX_set_default_passwd_cb(ctx, on_passphrase);
    return ctx;
}

/* Writes "what path: why" and returns -1. */
static int refuse_file(char *error, size_t size, const char *what, const char *path,
                       const char *why)
{
    snprintf(error, size, "%s %s: %s", what, path, why);
    ERR_clear_error();
    return -1;
}

static int load_certificate(SSL_CTX *ctx, const struct tls_files *f, char *error, size_t size)
{
    const char *key = f->key ? f->key : f->certificate;
    char path[PATH_ROOM];
    const char *why;

    if (!f->certificate)
        return 0;
    if ((why = credential_expand(f->certificate, path, sizeof path)))
        return refuse_file(error, size, "certificate", f->certificate, why);
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1)
        return refuse_file(error, size, "certificate", path, first_error());
    if ((why = credential_expand(key, path, sizeof path)))
        return refuse_file(error, size, "key", key, why);
    if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
        return refuse_file(error, size, "key", path, first_error());
    return 0;
}

/* Loads the authorities to believe. `for_clients`: tells clients their names, which helps them to
 * choose their certificate. */
static int load_ca(SSL_CTX *ctx, const struct tls_files *f, bool for_clients, char *error,
                   size_t size)
{
    char path[PATH_ROOM];
    const char *why;

    if (!f->ca)
        return 0;
    if ((why = credential_expand(f->ca, path, sizeof path)))
        return refuse_file(error, size, "ca", f->ca, why);
    if (SSL_CTX_load_verify_locations(ctx, path, NULL) != 1)
        return refuse_file(error, size, "ca", path, first_error());
    if (for_clients)
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(path));
    return 0;
}

struct ssl_ctx_st *tls_server_new(const struct tls_files *f, enum tls_clients clients, char *error,
                                  size_t error_size)
{
    static const unsigned char id[] = "holdfast";
    static const int verify[] = {
        [TLS_CLIENTS_ANY] = SSL_VERIFY_NONE,
        [TLS_CLIENTS_OPTIONAL] = SSL_VERIFY_PEER,
        [TLS_CLIENTS_REQUIRED] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    };
    SSL_CTX *ctx;

    ERR_clear_error();
    ctx = context_new(TLS_server_method());
    if (load_certificate(ctx, f, error, error_size) != 0 ||
        load_ca(ctx, f, clients != TLS_CLIENTS_ANY, error, error_size) != 0) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, verify[clients], NULL);
    SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
    return ctx;
}

struct ssl_ctx_st *tls_client_new(const struct tls_files *f, char *error, size_t error_size)
{
    SSL_CTX *ctx;

    ERR_clear_error();
    ctx = context_new(TLS_client_method());
    if (load_certificate(ctx, f, error, error_size) != 0 ||
        load_ca(ctx, f, false, error, error_size) != 0) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (!f->ca)
        SSL_CTX_set_default_verify_paths(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return ctx;
}

static int64_t expiry_s(const X509 *certificate)
{
    struct tm tm;

    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1 ? (int64_t)timegm(&tm)
                                                                      : INT64_MAX;
}

int64_t tls_context_expiry_s(struct ssl_ctx_st *ctx)
{
    const X509 *own = SSL_CTX_get0_certificate(ctx);
    STACK_OF(X509) *chain = NULL;

    if (!own)
        return 0;
    int64_t first_s = expiry_s(own);
    SSL_CTX_get0_chain_certs(ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t s = expiry_s(sk_X509_value(chain, i));
        first_s = s < first_s ? s : first_s;
    }
    ERR_clear_error();
    return first_s == INT64_MAX ? 0 : first_s;
}

void tls_context_free(struct ssl_ctx_st *ctx)
{
    SSL_CTX_free(ctx);
}

/* ---- a connection ---- */

static SSL *connection_new(SSL_CTX *ctx, int fd)
{
    SSL *ssl = SSL_new(ctx);

    if (!ssl || SSL_set_fd(ssl, fd) != 1)
        util_die("cannot make a TLS connection: %s", first_error());
    return ssl;
}

struct ssl_st *tls_accept(struct ssl_ctx_st *ctx, int fd)
{
    SSL *ssl = connection_new(ctx, fd);

    SSL_set_accept_state(ssl);
    return ssl;
}

/* Sends the name to the server (SNI). OpenSSL copies it, but its macro takes a pointer that is not
 * const. */
static bool name_server(SSL *ssl, const char *name)
{
    char *copy = util_strdup(name);
    bool done = SSL_set_tlsext_host_name(ssl, copy) == 1;
    free(copy);
    return done;
}

struct ssl_st *tls_connect(struct ssl_ctx_st *ctx, int fd, const char *name)
{
    SSL *ssl = connection_new(ctx, fd);
    unsigned char address[sizeof(struct in6_addr)];
    assert(*name); /* OpenSSL would look at no name then */
    bool numeric =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    int rc = numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name)
                     : SSL_set1_host(ssl, name) && name_server(ssl, name);

    if (rc != 1) /* never without a name to hold the server to */
        util_die("cannot set the name of a TLS server: %s", first_error());
    SSL_set_connect_state(ssl);
    return ssl;
}

void tls_free(struct ssl_st *ssl)
{
    SSL_free(ssl);
    ERR_clear_error();
}

static void take_reason(const SSL *ssl)
{
    unsigned long err = ERR_peek_error();
    long verify = SSL_get_verify_result(ssl);

    if (ERR_GET_LIB(err) == ERR_LIB_SSL && ERR_GET_REASON(err) == SSL_R_CERTIFICATE_VERIFY_FAILED &&
        verify != X509_V_OK)
        snprintf(reason, sizeof reason, "TLS: the certificate of the peer is not good: %s",
                 X509_verify_cert_error_string(verify));
    else
        snprintf(reason, sizeof reason, "TLS: %s", first_error());
    ERR_clear_error();
}

static bool is_cut(void)
{
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    unsigned long err = ERR_peek_error();

    return ERR_GET_LIB(err) == ERR_LIB_SSL &&
           ERR_GET_REASON(err) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
#else
    return false; /* then it is an error of the socket without an errno */
#endif
}

static enum tls_result result_of(const SSL *ssl, int rc)
{
    int err = errno;

    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_NONE:
        return TLS_DONE;
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_CLOSED;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        errno = err;
        return err ? TLS_BROKEN : TLS_CUT;
    default:
        if (is_cut()) {
            ERR_clear_error();
            return TLS_CUT;
        }
        take_reason(ssl);
        return TLS_FAILED;
    }
}

enum tls_result tls_shake(struct ssl_st *ssl)
{
    ERR_clear_error();
    errno = 0;
    return result_of(ssl, SSL_do_handshake(ssl));
}

enum tls_result tls_read(struct ssl_st *ssl, void *p, size_t n, size_t *done)
{
    ERR_clear_error();
    errno = 0;
    return result_of(ssl, SSL_read_ex(ssl, p, n, done));
}

enum tls_result tls_write(struct ssl_st *ssl, const void *p, size_t n, size_t *done)
{
    ERR_clear_error();
    errno = 0;
    return result_of(ssl, SSL_write_ex(ssl, p, n, done));
}

bool tls_peer_name(struct ssl_st *ssl, char *out, size_t size)
{
    X509 *cert = SSL_get_verify_result(ssl) == X509_V_OK ? SSL_get1_peer_certificate(ssl) : NULL;
    int len = -1;

    if (cert)
        len =
            X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, out, (int)size);
    X509_free(cert);
    ERR_clear_error();
    return len > 0 && strlen(out) == (size_t)len; /* a NUL in it would make it another's */
}

void tls_goodbye(struct ssl_st *ssl)
{
    ERR_clear_error();
    if (SSL_is_init_finished(ssl))
        SSL_shutdown(ssl);
    ERR_clear_error();
}

const char *tls_reason(void)
{
    return reason;
}
