/* table: the rows of the configuration, and finding one by name.
 *
 * To add an option: a field in conf.h (in conf_lock for lock/, in conf_client for client/, which
 * get it from there), a row here, an entry in man/holdfast.ini.5 and a line in etc/holdfast.ini.
 * tests/check_docs.sh fails when one of the last two is missing.
 *
 * Invariants: a row's default parses and lies within its bounds; (section, key) is unique. */
#include "conf/private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/log.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIVE true

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define MILLION INT64_C(1000000)

static const struct conf_name quarantine_names[] = {
    {"auto", CONF_QUARANTINE_AUTO}, {"off", CONF_QUARANTINE_OFF}, {NULL, 0}};

static const struct conf_name on_disconnect_names[] = {{"auto", CONF_DISCONNECT_AUTO},
                                                       {"release", CONF_DISCONNECT_RELEASE},
                                                       {"expire", CONF_DISCONNECT_EXPIRE},
                                                       {NULL, 0}};

static const struct conf_name on_lost_names[] = {
    {"notify", CONF_LOST_NOTIFY}, {"close", CONF_LOST_CLOSE}, {NULL, 0}};

static const struct conf_name log_names[] = {
    {"stderr", CONF_LOG_STDERR}, {"syslog", CONF_LOG_SYSLOG}, {NULL, 0}};

static const struct conf_name log_facility_names[] = {{"daemon", LOG_DAEMON},
                                                      {"user", LOG_USER},
                                                      {"local0", LOG_LOCAL0},
                                                      {"local1", LOG_LOCAL1},
                                                      {"local2", LOG_LOCAL2},
                                                      {"local3", LOG_LOCAL3},
                                                      {"local4", LOG_LOCAL4},
                                                      {"local5", LOG_LOCAL5},
                                                      {"local6", LOG_LOCAL6},
                                                      {"local7", LOG_LOCAL7},
                                                      {NULL, 0}};

static const struct conf_name log_level_names[] = {
    {"error", LOG_LEVEL_ERROR}, {"warn", LOG_LEVEL_WARN},   {"info", LOG_LEVEL_INFO},
    {"debug", LOG_LEVEL_DEBUG}, {"trace", LOG_LEVEL_TRACE}, {NULL, 0}};

static const struct conf_name off_names[] = {{"off", 0}, {NULL, 0}};

static const struct conf_name yes_no_names[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};

static const struct conf_name tls_clients_names[] = {{"off", CONF_TLS_CLIENTS_OFF},
                                                     {"optional", CONF_TLS_CLIENTS_OPTIONAL},
                                                     {"required", CONF_TLS_CLIENTS_REQUIRED},
                                                     {NULL, 0}};

/* CONF_ROW(section, key, TYPE, field, default, min, max, is_live, help)
 * CONF_NAMED: the same with a table of names, which stand for values of their own. */
#define CONF_ROW(section, key, type, field, def, min, max, is_live, help)                          \
    {#section, #key, CONF_##type, is_live, offsetof(struct conf, field), def, min, max, NULL, help},
#define CONF_NAMED(section, key, type, field, def, min, max, is_live, names, help)                 \
    {#section, #key, CONF_##type, is_live, offsetof(struct conf, field),                           \
     def,      min,  max,         names,   help},

static const struct conf_option options[] = {
    /* clang-format off */
    CONF_ROW(holdfast, listen, LISTEN, listen, "127.0.0.1:5625 [::1]:5625", 0, 0, 0,
        "addresses that clients connect to")
    CONF_ROW(holdfast, unix_socket_mode, MODE, unix_socket_mode, "0660", 0, 0777, 0,
        "permissions of the unix sockets")
    CONF_NAMED(holdfast, protected_mode, ENUM, protected_mode, "yes", 0, 0, 0,
        yes_no_names, "without users listen to this machine only")
    CONF_ROW(holdfast, lease, DURATION, lock.lease_ms, "30s", 100, HOUR, LIVE,
        "lease of a watched lock, renewed at a third of it")
    CONF_ROW(holdfast, max_lease, DURATION, lock.max_lease_ms, "60s", 100, DAY, 0,
        "longest lease that anybody may ask for")
    CONF_ROW(holdfast, min_validity, DURATION, lock.min_validity_ms, "50ms", 1, HOUR, LIVE,
        "a grant with less time left than this is undone")
    CONF_ROW(holdfast, drift, RATIO, lock.drift_ppm, "0.5%", 0, 100000, 0,
        "how much the rates of two clocks may differ")
    CONF_ROW(holdfast, request_timeout, DURATION, lock.request_timeout_ms, "500ms", 5, MINUTE, LIVE,
        "how long a master may take to answer")
    CONF_ROW(holdfast, claim_timeout, DURATION, lock.claim_timeout_ms, "2s", 10, MINUTE, 0,
        "within what time masters must have agreed on who gets a lock")
    CONF_NAMED(holdfast, quarantine, DURATION, quarantine_ms, "auto", SECOND, DAY, 0,
        quarantine_names, "how long a restarted master is kept out")
    CONF_ROW(holdfast, name, NAMES, name, "broker", 0, 0, 0,
        "name of this broker, the same for the process that takes its place")
    CONF_ROW(holdfast, brokers, NAMES, brokers, "none", 0, 0, 0,
        "names of all brokers in front of these masters")
    CONF_ROW(holdfast, service, NAMES, service, "holdfast", 0, 0, LIVE,
        "what clients that ask Sentinels call the brokers")
    CONF_ROW(holdfast, announce, ADDRESSES, announce, "none", 0, 1, LIVE,
        "where clients reach this broker")
    CONF_ROW(holdfast, peers, ADDRESSES, peers, "none", 0, CONF_PEERS_MAX, LIVE,
        "where clients reach the other brokers")
    CONF_NAMED(holdfast, on_disconnect, ENUM, lock.on_disconnect, "auto", 0, 0, LIVE,
        on_disconnect_names, "what becomes of watched locks when their connection ends")
    CONF_NAMED(holdfast, on_lost, ENUM, lock.on_lost, "notify", 0, 0, LIVE,
        on_lost_names, "what happens to the connection of a holder whose lock is lost")
    CONF_ROW(holdfast, sentinel_timeout, DURATION, sentinel_timeout_ms, "5s", 500, MINUTE, 0,
        "how long a master counts after a majority of its Sentinels has named it")
    CONF_ROW(holdfast, drain_timeout, DURATION, drain_timeout_ms, "30s", 0, DAY, LIVE,
        "how long a stopping broker waits for its holders")
    CONF_ROW(holdfast, pause_limit, DURATION, pause_limit_ms, "1s", 10, MINUTE, LIVE,
        "a longer pause of the broker makes it check every lease again")
    CONF_ROW(holdfast, handover_max_count, INT, lock.handover_max_count, "16", 0, MILLION, LIVE,
        "hand-overs in a row within this broker while another broker waits")
    CONF_ROW(holdfast, handover_max_time, DURATION, lock.handover_max_time_ms, "100ms", 0, HOUR,
        LIVE, "how long hand-overs may stay within this broker while another broker waits")
    CONF_NAMED(holdfast, log_level, ENUM, log_level, "info", 0, 0, LIVE,
        log_level_names, "the least important messages that are logged")
    CONF_NAMED(holdfast, log, ENUM, log, "stderr", 0, 0, LIVE,
        log_names, "where messages are logged")
    CONF_NAMED(holdfast, log_facility, ENUM, log_facility, "daemon", 0, 0, LIVE,
        log_facility_names, "what syslog files the messages under")

    CONF_NAMED(drop_in, enabled, ENUM, drop_in, "yes", 0, 0, LIVE,
        yes_no_names, "serve the commands of Redis by which programs take locks")
    CONF_ROW(drop_in, max_hold, DURATION, lock.drop_in_max_hold_ms, "24h", MINUTE, 30 * DAY, LIVE,
        "how long a lock that such a command has taken without a time lives")
    CONF_ROW(drop_in, patience, DURATION, lock.drop_in_patience_ms, "0", 0, MINUTE, LIVE,
        "how long such a command that is refused waits for the lock before it says so")
    CONF_NAMED(drop_in, mirror, ENUM, mirror, "no", 0, 0, 0,
        yes_no_names, "locks are plain keys too, for programs that still talk to the masters")

    CONF_NAMED(http, listen, LISTEN, http_listen, "127.0.0.1:9625", 0, 0, 0, off_names,
        "addresses of metrics, health checks and the status page")
    CONF_ROW(http, hosts, HOSTS, http_hosts, "none", 0, 0, LIVE,
        "names besides its own that the status page answers to")

    CONF_ROW(limits, max_clients, INT, client.max_clients, "10000", 1, MILLION, 0,
        "connections at a time")
    CONF_ROW(limits, max_clients_per_address, INT, client.max_clients_per_address, "5000", 1,
        MILLION, LIVE, "connections at a time from one address")
    CONF_ROW(limits, max_locks, INT, lock.max_locks, "1000000", 1, 100 * MILLION, LIVE,
        "locks that the clients of this broker may hold in all")
    CONF_ROW(limits, max_locks_per_client, INT, lock.max_locks_per_client, "10000", 1, 10 * MILLION,
        LIVE, "locks that one connection may hold")
    CONF_ROW(limits, max_waiters_per_lock, INT, lock.max_waiters_per_lock, "100000", 0,
        10 * MILLION, LIVE, "requests that may wait for one name")
    CONF_ROW(limits, max_waiters, INT, lock.max_waiters, "1000000", 0, 100 * MILLION, LIVE,
        "requests that may wait in all")
    CONF_ROW(limits, max_async_per_client, INT, max_async_per_client, "20000", 0, 10 * MILLION, LIVE,
        "requests with ASYNC of one connection that have not ended")
    CONF_ROW(limits, max_pending_requests, INT, client.max_pending_requests, "1024", 1, MILLION,
        LIVE, "unanswered requests of one connection before the broker stops reading from it")
    CONF_ROW(limits, max_request_args, INT, client.max_request_args, "128", 80, 1024, LIVE,
        "words in one request")
    CONF_ROW(limits, max_arg_len, SIZE, client.max_arg_len, "16k", KIB, MIB, LIVE,
        "length of one word of a request")
    CONF_ROW(limits, max_request, SIZE, client.max_request, "64k", 4 * KIB, 64 * MIB, LIVE,
        "length of a whole request")
    CONF_ROW(limits, max_inline, SIZE, client.max_inline, "64k", KIB, MIB, LIVE,
        "length of a request that is typed as a line")
    CONF_ROW(limits, output_buffer_hard, SIZE, client.output_buffer_hard, "256k", 16 * KIB,
        1024 * MIB, LIVE, "unread replies at which a connection is closed at once")
    CONF_ROW(limits, output_buffer_soft, SIZE, client.output_buffer_soft, "64k", 4 * KIB,
        1024 * MIB, LIVE, "unread replies at which the broker stops reading from a connection")
    CONF_ROW(limits, output_buffer_soft_time, DURATION, client.output_buffer_soft_time_ms, "10s",
        100, HOUR, LIVE, "how long a connection may stay above output_buffer_soft")
    CONF_ROW(limits, request_time, DURATION, client.request_time_ms, "10s", 100, HOUR, LIVE,
        "how long a client may take to send the rest of a request")
    CONF_ROW(limits, idle_timeout, DURATION, client.idle_timeout_ms, "0", 0, 7 * DAY, LIVE,
        "silence after which a connection is closed; 0 is never")
    CONF_ROW(limits, tcp_keepalive, DURATION, client.tcp_keepalive_ms, "15s", 0, HOUR, LIVE,
        "silence after which TCP asks whether the client is still there; 0 is off")
    CONF_ROW(limits, tcp_user_timeout, DURATION, client.tcp_user_timeout_ms, "20s", 0, HOUR, LIVE,
        "how long sent bytes may stay unacknowledged; 0 is the kernel's own time")
    CONF_ROW(limits, max_master_reply, SIZE, max_master_reply, "1m", 64 * KIB, 64 * MIB, LIVE,
        "length of one reply of a master")
    CONF_ROW(limits, max_master_inflight, INT, max_master_inflight, "65536", 16, MILLION, LIVE,
        "unanswered scripts at one master")

    CONF_ROW(tls, certificate, PATH, tls_certificate, "none", 0, 0, LIVE,
        "what the broker shows to clients, a PEM file with its chain")
    CONF_ROW(tls, key, PATH, tls_key, "none", 0, 0, LIVE,
        "key of the certificate; none: it is in the same file")
    CONF_ROW(tls, ca, PATH, tls_ca, "none", 0, 0, LIVE,
        "who may sign the certificates of clients")
    CONF_ROW(tls, peer_ca, PATH, tls_peer_ca, "none", 0, 0, LIVE,
        "who may sign the certificates of peers with tls://; none: whom the system believes")
    CONF_NAMED(tls, client_certificates, ENUM, tls_clients, "off", 0, 0, LIVE,
        tls_clients_names, "whether clients have to show a certificate")
    CONF_ROW(tls, expiry_warning, DURATION, tls_expiry_warning_ms, "14d", 0, 365 * DAY, LIVE,
        "how long before the certificate expires that is said")
    /* clang-format on */
};

_Static_assert(COUNT(options) <= CONF_OPTIONS_MAX, "conf.line is too short");

const struct conf_option *conf_options(size_t *count)
{
    *count = COUNT(options);
    return options;
}

size_t conf_option_index(const struct conf_option *opt)
{
    assert(opt >= options && opt < options + COUNT(options));
    return (size_t)(opt - options);
}

const struct conf_option *conf_option_find(const char *section, const char *key)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        if (strcmp(options[i].key, key) == 0 &&
            (section == NULL || strcmp(options[i].section, section) == 0))
            return &options[i];
    }
    return NULL;
}

bool conf_section_known(const char *section)
{
    if (strcmp(section, CONF_MASTERS_SECTION) == 0 || strcmp(section, CONF_USERS_SECTION) == 0)
        return true;
    for (size_t i = 0; i < COUNT(options); i++) {
        if (strcmp(options[i].section, section) == 0)
            return true;
    }
    return false;
}

/* Returns the edit distance of two words (Levenshtein, one row of the matrix at a time). */
static size_t word_distance(const char *a, size_t alen, const char *b, size_t blen)
{
    size_t row[64];

    assert(blen < COUNT(row));
    for (size_t j = 0; j <= blen; j++)
        row[j] = j;
    for (size_t i = 1; i <= alen; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= blen; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j] = best;
        }
    }
    return row[blen];
}

/* Returns the row whose key is most like this one; NULL when none is like it. */
static const struct conf_option *option_nearest(const char *key)
{
    const struct conf_option *nearest = NULL;
    size_t len = strlen(key), best = 4;

    if (len > 40)
        return NULL;
    for (size_t i = 0; i < COUNT(options); i++) {
        size_t d = word_distance(key, len, options[i].key, strlen(options[i].key));
        if (d < best && d * 2 <= len) {
            best = d;
            nearest = &options[i];
        }
    }
    return nearest;
}

void conf_option_unknown(const char *section, const char *key, struct conf_error *err)
{
    const struct conf_option *other = conf_option_find(NULL, key);
    char shown[80];

    conf_printable(shown, sizeof(shown), key);
    if (other != NULL) {
        snprintf(err->text, sizeof(err->text), "%s: belongs in section [%s]", shown,
                 other->section);
        return;
    }
    other = option_nearest(key);
    if (other == NULL)
        snprintf(err->text, sizeof(err->text), "%s: no such option", shown);
    else if (section == NULL || strcmp(section, other->section) == 0)
        snprintf(err->text, sizeof(err->text), "%s: no such option (did you mean %s?)", shown,
                 other->key);
    else
        snprintf(err->text, sizeof(err->text),
                 "%s: no such option (did you mean %s in section [%s]?)", shown, other->key,
                 other->section);
}
