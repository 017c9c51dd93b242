/* conf: the configuration as a value.
 *
 * The room conf has the options, where their values come from, and what is wrong with them; nothing
 * is applied here. One table of options (table.c) serves the file, `-o section.key=value`, CONFIG
 * GET and SET, and the check of the manual. Code that needs a value reads it from struct conf;
 * after a reload the server asks conf_diff() what has changed.
 *
 *   The usual way to a configuration:
 *     conf_init, conf_load_file, conf_override for each -o, conf_read_secrets, conf_check
 *   and for CONFIG SET: conf_copy, conf_set_live, conf_check, conf_diff, conf_fini the old one.
 *
 * Units: durations are milliseconds, sizes bytes, ratios parts per million (ppm). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct glob;

enum {
    CONF_OPTIONS_MAX = 64,      /* rows in the table, at most */
    CONF_MASTERS_MAX = 15,      /* masters in one configuration */
    CONF_MASTER_NAME_MAX = 32,  /* bytes of a master's name, [a-z0-9_-] */
    CONF_USERS_MAX = 256,       /* users in one configuration */
    CONF_USER_NAME_MAX = 60,    /* bytes of a user's name */
    CONF_USER_KEYS = 5,         /* options of a user, its password first */
    CONF_MASTER_KEYS = 15,      /* options of a master, its address first */
    CONF_SENTINELS_MAX = 15,    /* of one master */
    CONF_HOST_MAX = 253,        /* bytes of the name of a host */
    CONF_BROKERS_MAX = 16,      /* brokers in one list */
    CONF_PEERS_MAX = 15,        /* addresses of other brokers */
    CONF_BROKER_NAME_MAX = 32,  /* bytes of a broker's name */
    CONF_LISTEN_MAX = 16,       /* addresses in one list */
    CONF_FILE_MAX = 1024 * 1024 /* bytes of a configuration file */
};

/* Values of conf.quarantine_ms that are no duration. */
enum { CONF_QUARANTINE_OFF = 0, CONF_QUARANTINE_AUTO = -1 };

enum conf_on_disconnect {
    CONF_DISCONNECT_AUTO,    /* release after an orderly close, else expire */
    CONF_DISCONNECT_RELEASE, /* always release at once */
    CONF_DISCONNECT_EXPIRE   /* never release: stop renewing */
};

enum conf_tls_clients {
    CONF_TLS_CLIENTS_OFF,
    CONF_TLS_CLIENTS_OPTIONAL, /* without a certificate, or with a good one */
    CONF_TLS_CLIENTS_REQUIRED
};

enum conf_on_lost { CONF_LOST_NOTIFY, CONF_LOST_CLOSE };
enum conf_log { CONF_LOG_STDERR, CONF_LOG_SYSLOG };

/* An address to listen on.  host: a numeric IPv4 or IPv6 address without brackets, "*" (all of
 * both families), or, when is_unix, the absolute path of the socket.  Port 0: any free one. */
struct conf_listen {
    char *host;
    int port;
    bool is_unix;
    bool tls;
    bool proxy; /* each connection begins with a PROXY header */
};
/* Returns what stands before such an address: "", "tls://", "proxy://" or "proxy+tls://". */
const char *conf_listen_prefix(bool tls, bool proxy);
/* Returns the address behind its prefix, which says what is spoken there. */
const char *conf_listen_skip_prefix(const char *address, bool *tls, bool *proxy);

struct conf_listens {
    struct conf_listen *v;
    size_t count;
};

/* A master.  host is a name or an address without brackets, or, when is_unix, an absolute path, or,
 * when by_sentinels, "host:port,host:port/name" (conf_sentinels), or, when by_cluster,
 * "host:port,host:port" (conf_cluster_nodes), and port is 0 in both.
 * user, password: NULL when there is none; the password is there after conf_read_secrets(). */
struct conf_master {
    char *name;
    char *host;
    int port;
    bool is_unix;
    bool by_cluster; /* all partitions of a Redis Cluster */
    bool tls;
    char *user;
    char *password;
    char *id;                  /* NULL, or what names it to brokers in place of its address */
    char *password_file;       /* NULL, or where the password is read from; may begin with %d/ */
    char *password_credential; /* NULL, or its name in $CREDENTIALS_DIRECTORY */
    /* For TLS; NULL when there is none. */
    char *ca, *certificate, *key; /* paths, see credential_expand() */
    char *server_name;            /* in place of host */
    int db;
    /* How to log in to the Sentinels that name it; all above is about the server that they name. */
    bool by_sentinels, sentinel_tls;
    bool has_login; /* tls, user, password and db come from the option .master */
    char *sentinel_user, *sentinel_password;
    char *sentinel_password_file, *sentinel_password_credential;
    char *sentinel_ca, *sentinel_certificate, *sentinel_key, *sentinel_server_name;
    int line[CONF_MASTER_KEYS]; /* in the file; 0: not from the file */
};

struct conf_sentinel {
    char host[CONF_HOST_MAX + 1];
    int port;
};

/* Classes of commands that a user may run. */
enum conf_allow {
    CONF_ALLOW_LOCK = 1,
    CONF_ALLOW_INSPECT = 2,
    CONF_ALLOW_ADMIN = 4,
    CONF_ALLOW_DROP_IN = 8
};

struct conf_user {
    char *name;
    char *hash;        /* password.h; NULL: no password is right */
    bool nopass;       /* "default" only: any password is right, and so is no login at all */
    bool defined;      /* has a line of its own name */
    unsigned allow;    /* enum conf_allow */
    char *names;       /* patterns with blanks between */
    int64_t uid;       /* of peers over Unix sockets; -1: none */
    char *certificate; /* common name in the certificate of a client; NULL: none */
    int line[CONF_USER_KEYS];
};

/* What the room lock reads; durations in ms. */
struct conf_lock {
    int64_t lease_ms, max_lease_ms, min_validity_ms;
    int64_t drift_ppm;
    int64_t request_timeout_ms, claim_timeout_ms;
    int on_disconnect;            /* enum conf_on_disconnect */
    int on_lost;                  /* enum conf_on_lost */
    int64_t handover_max_count;   /* in a row within this broker while others wait */
    int64_t handover_max_time_ms; /* the same */
    int64_t max_locks;            /* of all owners; 0: no limit */
    int64_t max_locks_per_client, max_waiters_per_lock, max_waiters;
    int64_t drop_in_patience_ms; /* how long a refused drop-in call waits for the lock */
    int64_t drop_in_max_hold_ms; /* what a drop-in lock without a time lives for */
};

/* What the room client reads. */
struct conf_client {
    int64_t max_clients, max_clients_per_address;
    int64_t max_pending_requests; /* of one client */
    int64_t max_request_args, max_arg_len, max_request, max_inline;
    int64_t output_buffer_hard, output_buffer_soft; /* bytes that the peer does not take */
    int64_t output_buffer_soft_time_ms;
    int64_t request_time_ms;     /* to send one request, from its first byte; 0: no limit */
    int64_t idle_timeout_ms;     /* 0: never */
    int64_t tcp_keepalive_ms;    /* 0: off */
    int64_t tcp_user_timeout_ms; /* 0: the kernel's own */
};

struct conf {
    struct conf_lock lock;
    struct conf_client client;
    /* [holdfast] */
    struct conf_listens listen;
    int64_t unix_socket_mode;    /* permission bits */
    int protected_mode;          /* 0, 1 */
    int64_t quarantine_ms;       /* or CONF_QUARANTINE_AUTO, CONF_QUARANTINE_OFF */
    int64_t sentinel_timeout_ms; /* how long the word of Sentinels counts */
    int64_t drain_timeout_ms;
    int64_t pause_limit_ms;
    char *name;       /* of this broker; NULL: none */
    char *brokers;    /* names of all, with CONF_HOSTS_BETWEEN between them; NULL: no list */
    char *service;    /* names that Sentinels' clients call the brokers by, likewise; NULL: none */
    char *announce;   /* where clients reach this broker; NULL: where they have connected to */
    char *peers;      /* where they reach the others; conf_addresses() reads both; NULL: none */
    int log_level;    /* enum log_level */
    int log;          /* enum conf_log */
    int log_facility; /* LOG_DAEMON... of <syslog.h> */
    /* [limits] */
    int64_t max_async_per_client; /* requests with a tag */
    int64_t max_master_reply;
    int64_t max_master_inflight;
    /* [drop_in] */
    int drop_in; /* 0, 1 */
    int mirror;  /* 0, 1 */
    /* [http] */
    struct conf_listens http_listen; /* TCP only; may be empty: off */
    char *http_hosts;                /* names with CONF_HOSTS_BETWEEN between them; NULL: none */
    /* [tls]; paths, see credential_expand(); NULL: none */
    char *tls_certificate;
    char *tls_key;
    char *tls_ca;
    char *tls_peer_ca;
    int tls_clients; /* enum conf_tls_clients */
    int64_t tls_expiry_warning_ms;
    /* [masters], in the order of the file */
    struct conf_master *masters;
    size_t master_count;
    /* [users], in the order of the file */
    struct conf_user *users;
    size_t user_count;
    /* where it comes from */
    char *path;                   /* the file that was loaded, or NULL */
    int line[CONF_OPTIONS_MAX];   /* of each row of the table in that file; 0: not from the file */
    bool given[CONF_OPTIONS_MAX]; /* set by the file, -o or the program; else as by default */
};

/* ---- the table ---- */

#define CONF_HOSTS_BETWEEN " ,\t"

enum conf_type {
    CONF_INT,
    CONF_SIZE,     /* 64k, 1m */
    CONF_DURATION, /* 250ms, 30s; may have named values besides */
    CONF_RATIO,    /* 0.5% or 0.005, kept as ppm */
    CONF_MODE,     /* octal permission bits */
    CONF_ENUM,
    CONF_PATH,      /* absolute, or %d/ and the name of a credential, or none */
    CONF_NAMES,     /* of brokers, separated by spaces or commas, or none */
    CONF_HOSTS,     /* names separated by spaces or commas, or none */
    CONF_ADDRESSES, /* host:port, up to `max` of them, separated likewise, or none */
    CONF_LISTEN     /* addresses separated by spaces or commas; a name stands for none */
};

struct conf_name {
    const char *name;
    int64_t value;
};

struct conf_option {
    const char *section;
    const char *key;
    enum conf_type type;
    bool is_live;  /* SIGHUP and CONFIG SET take effect without a restart */
    size_t offset; /* of the field in struct conf */
    const char *def;
    int64_t min, max;
    const struct conf_name *names; /* ended by a NULL name; or NULL */
    const char *help;              /* half a sentence, no full stop */
};

/* Returns all rows. Masters are not rows: their keys are names that the operator chose. */
const struct conf_option *conf_options(size_t *count);

/* Names the type for people: "duration", "size"... */
const char *conf_type_name(enum conf_type type);

/* ---- errors ---- */

/* An error in one line without a newline, safe to print: control bytes are replaced, passwords
 * never shown. */
struct conf_error {
    char text[512];
};

/* Hears of each thing found wrong, once, in the order of the file; text is only lent. */
typedef void (*conf_report_fn)(void *arg, bool is_warning, const char *text);

/* ---- life ---- */

/* Sets everything to its default, with no masters. */
void conf_init(struct conf *conf);
void conf_fini(struct conf *conf);

/* Copies src; dst is uninitialised before and owns copies of everything afterwards. */
void conf_copy(struct conf *dst, const struct conf *src);

/* Makes the users of dst those of src. */
void conf_take_users(struct conf *dst, const struct conf *src);

/* Takes over user, password and files for TLS of all masters; the lists are the same. */
void conf_take_logins(struct conf *dst, const struct conf *src);

/* Reads redis://, rediss:// or unix:// into host, port (if there is none in it the given one), db,
 * is_unix, tls, user and password of m, in place of those before. -1: err says why, without the
 * password, and m is as it was. */
int conf_address_set(struct conf_master *m, const char *text, int port,
                     struct conf_error *err) MUST_CHECK;

/* Frees what conf_address_set() has made; passwords are wiped. */
void conf_address_fini(struct conf_master *m);

/* ---- setting ---- */

/* Reads a file into conf, over what is there; masters are added. Reports all errors (at most 100).
 * Returns -1 when there was one, or the file cannot be read; conf then holds a part of it and must
 * not be used, only passed to conf_fini. */
int conf_load_file(struct conf *conf, const char *path, conf_report_fn report,
                   void *arg) MUST_CHECK;

/* Reads bytes in memory likewise; path stands in the messages and in conf->path. */
int conf_load_bytes(struct conf *conf, const char *data, size_t len, const char *path,
                    conf_report_fn report, void *arg) MUST_CHECK;

/* Sets "section.key=value", as given to -o. */
int conf_override(struct conf *conf, const char *assignment, struct conf_error *err) MUST_CHECK;

/* Sets one option. name: "section.key", or the key alone; "masters.<name>" sets or adds a master.
 * On -1 conf is as it was. */
int conf_set(struct conf *conf, const char *name, const char *value,
             struct conf_error *err) MUST_CHECK;

/* Sets one option for CONFIG SET: refuses what needs a restart, masters and users. */
int conf_set_live(struct conf *conf, const char *name, const char *value,
                  struct conf_error *err) MUST_CHECK;

void conf_clear_masters(struct conf *conf);
void conf_clear_users(struct conf *conf);

/* Reads password files and credentials into the masters' passwords; once for a struct conf, as a
 * second password for a master is an error. Returns -1 when one cannot be read. Blocks on the
 * files. */
int conf_read_secrets(struct conf *conf, conf_report_fn report, void *arg) MUST_CHECK;

/* Checks what no option can see alone: lease against max_lease and the like. Warnings do not fail.
 * masters_optional: having none is no error (dev mode brings its own). */
int conf_check(const struct conf *conf, bool masters_optional, conf_report_fn report,
               void *arg) MUST_CHECK;

/* ---- reading ---- */

/* Returns true when nobody has set this option. */
bool conf_is_default(const struct conf *conf, const char *section, const char *key);

/* Gets a name and its value, both lent. The value can be given to conf_set again. */
typedef void (*conf_get_fn)(void *arg, const char *name, const char *value);

/* Calls fn for each option whose name any of the patterns fits, once, in the order of the table,
 * then for each master. Options of [holdfast] go by their key, others by section.key; a pattern may
 * fit the key alone or section.key. Returns how many there were. */
size_t conf_get(const struct conf *conf, const struct glob *const *globs, size_t n, conf_get_fn fn,
                void *arg);

/* Returns what names a master to all brokers: its address, and the database, as another one has
 * other locks. Where the way there differs from broker to broker (a Unix socket here, TCP there),
 * its `id` says that it is the same. Heap, the caller frees it. */
char *conf_master_identity(const struct conf_master *);

/* Steps through names with CONF_HOSTS_BETWEEN between them, or none if *rest is NULL: returns the
 * next one, not terminated; NULL: there is no more. */
const char *conf_next_name(const char **rest, size_t *len);
/* Returns whether such a list, which may be NULL, has this name. */
bool conf_lists_name(const char *list, const char *name, size_t len);

struct conf_address {
    char host[CONF_HOST_MAX + 1]; /* a name or an address without brackets */
    bool tls;                     /* tls:// stands before it */
    int port;
};
/* Reads `announce` or `peers`, which may be NULL. Returns how many addresses there are. */
int conf_addresses(const char *text, struct conf_address out[CONF_PEERS_MAX]);

/* Returns the number of Sentinels of a master that is found by them, and writes them, sorted. */
int conf_sentinels(const struct conf_master *, struct conf_sentinel out[CONF_SENTINELS_MAX]);
/* Returns the name that they have for it. */
const char *conf_sentinels_call_it(const struct conf_master *);
/* Returns the number of nodes that are asked first, and writes them, sorted. */
int conf_cluster_nodes(const struct conf_master *, struct conf_sentinel out[CONF_SENTINELS_MAX]);
/* Tells whether the one master of [masters] is a Redis Cluster. */
bool conf_is_clustered(const struct conf *);

struct conf_change {
    const char *name;
    const char *old_value;
    const char *new_value;
    bool needs_restart;
};
typedef void (*conf_diff_fn)(void *arg, const struct conf_change *change);

/* Calls fn for each option that differs; "users", without values, when one of them differs;
 * "masters" when their list or an address differs (needs a restart), "masters.<name>" when only a
 * user, a password or a file for TLS does (is used at the next connect). Returns how many there
 * were. */
size_t conf_diff(const struct conf *old_conf, const struct conf *new_conf, conf_diff_fn fn,
                 void *arg);
