/*
 * What an administrator asks of the broker: INFO, CONFIG, ACL, MASTER, SHUTDOWN. It reads the
 * configuration and changes it, and the state of the broker, through hooks only.
 */
#include "cmd_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "conf.h"
#include "log.h"
#include "stats.h"
#include "user.h"
#include "util.h"

enum {
    SECTIONS_MAX = 512,    /* bytes of all section names of one INFO */
    CONFIG_PAIRS_MAX = 16, /* options in one CONFIG SET */
};

/* Sections that no word can mean do no harm: stats gives nothing for them. */
void cmd_admin_info(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    char sections[SECTIONS_MAX + 1];
    struct buf text = {0};
    size_t len = 0;

    (void)now_ms;
    for (int i = 1; i < argc; i++) {
        if (argv[i].len + 1 > SECTIONS_MAX - len || memchr(argv[i].ptr, '\0', argv[i].len) != NULL)
            continue;
        memcpy(sections + len, argv[i].ptr, argv[i].len);
        len += argv[i].len;
        sections[len++] = ' ';
    }
    sections[len] = '\0';
    cmd_hooks()->info(cmd_hooks()->server, &text, sections);

    struct resp_writer w = session_reply(s);
    resp_verbatim(&w, "txt", buf_len(&text) > 0 ? buf_head(&text) : "", buf_len(&text));
    session_reply_end(s);
    buf_fini(&text);
}

void cmd_admin_shutdown(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    bool now = false;

    (void)now_ms;
    for (int i = 1; i < argc; i++) {
        if (cmd_word_is(&argv[i], "NOW") || cmd_word_is(&argv[i], "FORCE")) {
            now = true;
        } else if (cmd_word_is(&argv[i], "ABORT") && argc == 2) {
            cmd_reply_error(s, "ERR No shutdown in progress.");
            return;
        } else if (!cmd_word_is(&argv[i], "SAVE") && !cmd_word_is(&argv[i], "NOSAVE")) {
            cmd_reply_syntax(s);
            return;
        }
    }
    cmd_hooks()->shutdown(cmd_hooks()->server, now);
}

void cmd_admin_pause(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv;
    cmd_hooks()->pause_acquires(cmd_hooks()->server, true, now_ms);
    cmd_reply_ok(s);
}

void cmd_admin_resume(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv;
    cmd_hooks()->pause_acquires(cmd_hooks()->server, false, now_ms);
    cmd_reply_ok(s);
}

void cmd_admin_master(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    char name[CONF_MASTER_NAME_MAX + 1] = "";
    const char *why_not;

    (void)argc;
    if (argv[1].len < sizeof(name))
        memcpy(name, argv[1].ptr, argv[1].len);
    if (cmd_word_is(&argv[2], "TRUST")) {
        why_not = hooks->trust(hooks->server, name, now_ms);
    } else if (cmd_word_is(&argv[2], "ADOPT")) {
        why_not = hooks->adopt(hooks->server, name);
    } else {
        cmd_reply_syntax(s);
        return;
    }
    if (why_not != NULL)
        cmd_reply_error(s, "ERR master '%.*s': %s", CMD_ARG(&argv[1]), why_not);
    else
        cmd_reply_ok(s);
}

void cmd_admin_cluster(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_error(s, "ERR This instance has cluster support disabled");
}

/* ---- CONFIG ---- */

/* What tools ask a Redis for. Numbers that come from an option are filled in when they are asked.
 */
static const struct {
    const char *name, *value;
} redis_options[] = {
    {"appendonly", "no"},
    {"cluster-enabled", "no"},
    {"databases", "1"},
    {"latency-monitor-threshold", "10"},
    {"maxmemory", "0"},
    {"maxmemory-policy", "noeviction"},
    {"replica-read-only", "no"},
    {"save", ""},
    {"slowlog-log-slower-than", "10000"},
    {"slowlog-max-len", "128"},
};

struct pairs {
    char **text; /* names and values in turn */
    size_t n;    /* pairs */
};

static void on_option(void *arg, const char *name, const char *value)
{
    struct pairs *pairs = arg;

    for (size_t i = 0; i < pairs->n; i++)
        if (strcmp(pairs->text[2 * i], name) == 0)
            return;
    pairs->text = util_realloc(pairs->text, 2 * (pairs->n + 1) * sizeof(char *));
    pairs->text[2 * pairs->n] = util_strdup(name);
    pairs->text[2 * pairs->n + 1] = util_strdup(value);
    pairs->n++;
}

static void offer(struct pairs *pairs, const struct resp_arg *glob, const char *name,
                  const char *value)
{
    if (util_match(glob->ptr, glob->len, name, strlen(name)))
        on_option(pairs, name, value);
}

static void offer_int(struct pairs *pairs, const struct resp_arg *glob, const char *name, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, n);
    offer(pairs, glob, name, text);
}

static void collect(struct pairs *pairs, const struct resp_arg *glob)
{
    const struct conf *conf = cmd_hooks()->conf;

    conf_get(conf, glob->ptr, glob->len, on_option, pairs);
    for (size_t i = 0; i < sizeof(redis_options) / sizeof(redis_options[0]); i++)
        offer(pairs, glob, redis_options[i].name, redis_options[i].value);
    offer_int(pairs, glob, "maxclients", conf->max_clients);
    offer_int(pairs, glob, "tcp-keepalive", conf->tcp_keepalive_ms / 1000);
    offer_int(pairs, glob, "timeout", conf->idle_timeout_ms / 1000);
}

static void pairs_fini(struct pairs *pairs)
{
    for (size_t i = 0; i < 2 * pairs->n; i++)
        free(pairs->text[i]);
    free(pairs->text);
}

void cmd_admin_config_get(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct pairs pairs = {0};

    (void)now_ms;
    for (int i = 2; i < argc; i++)
        collect(&pairs, &argv[i]);
    struct resp_writer w = session_reply(s);
    resp_map(&w, pairs.n);
    for (size_t i = 0; i < 2 * pairs.n; i++)
        resp_str(&w, pairs.text[i]);
    session_reply_end(s);
    pairs_fini(&pairs);
}

/* One option to be set: copies that end in a NUL. */
struct change {
    char *key, *value, *old;
};

static void on_old_value(void *arg, const char *name, const char *value)
{
    struct change *c = arg;

    (void)name;
    if (c->old == NULL)
        c->old = util_strdup(value);
}

static int apply(const struct change *c, const char *value, char *error, size_t error_size)
{
    return cmd_hooks()->config_set(cmd_hooks()->server, c->key, value, error, error_size);
}

/* All or none: what was set before a refused one is set back. */
static void set_all(struct session *s, struct change *changes, int n)
{
    char error[256] = "", ignored[256];

    for (int i = 0; i < n; i++) {
        if (apply(&changes[i], changes[i].value, error, sizeof(error)) == 0)
            continue;
        for (int k = i - 1; k >= 0; k--)
            if (changes[k].old != NULL)
                (void)apply(&changes[k], changes[k].old, ignored, sizeof(ignored));
        cmd_reply_error(s, "ERR CONFIG SET failed (possibly related to argument '%.128s') - %s",
                        changes[i].key, error);
        return;
    }
    cmd_reply_ok(s);
}

/* The option by its name alone, whatever glob that would be. */
static bool is_option(const char *key)
{
    const struct conf_option *options;
    size_t n;

    options = conf_options(&n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(options[i].section);
        bool has_section = strncmp(key, options[i].section, len) == 0 && key[len] == '.';
        if (strcmp(has_section ? key + len + 1 : key, options[i].key) == 0)
            return true;
    }
    return false;
}

void cmd_admin_config_set(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct change changes[CONFIG_PAIRS_MAX] = {{0}};
    int n = (argc - 2) / 2, ready = 0;

    (void)now_ms;
    if (argc % 2 != 0) {
        cmd_reply_error(s, "ERR wrong number of arguments for 'config|set' command");
        return;
    }
    if (n > CONFIG_PAIRS_MAX) {
        cmd_reply_error(s, "ERR CONFIG SET takes at most %d options at once", CONFIG_PAIRS_MAX);
        return;
    }
    for (; ready < n; ready++) {
        struct change *c = &changes[ready];
        const struct resp_arg *key = &argv[2 + 2 * ready], *value = key + 1;
        c->key = util_memdup(key->ptr, key->len);
        c->value = util_memdup(value->ptr, value->len);
        if (strlen(c->key) != key->len || strlen(c->value) != value->len || !is_option(c->key)) {
            cmd_reply_error(s, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                            CMD_ARG(key));
            break;
        }
        conf_get(cmd_hooks()->conf, key->ptr, key->len, on_old_value, c);
    }
    if (ready == n)
        set_all(s, changes, n);
    for (int i = 0; i < CONFIG_PAIRS_MAX; i++) {
        free(changes[i].key);
        free(changes[i].value);
        free(changes[i].old);
    }
}

void cmd_admin_config_resetstat(struct session *s, int argc, const struct resp_arg *argv,
                                int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    stats_reset();
    cmd_reply_ok(s);
}

void cmd_admin_config_rewrite(struct session *s, int argc, const struct resp_arg *argv,
                              int64_t now_ms)
{
    const struct conf *conf = cmd_hooks()->conf;
    struct conf_error err;
    int changed;

    (void)argc, (void)argv, (void)now_ms;
    if (conf->path == NULL) {
        cmd_reply_error(s, "ERR The server is running without a config file");
    } else if (conf_rewrite(conf, &changed, &err) != 0) {
        log_warn("config", "CONFIG REWRITE: %s", err.text);
        cmd_reply_error(s, "ERR Rewriting config file: %s", err.text);
    } else {
        log_info("config", "%s: %d options written by CONFIG REWRITE", conf->path, changed);
        cmd_reply_ok(s);
    }
}

/* ---- ACL: one user, "default", until users are configured ---- */

static const struct {
    unsigned flag;
    const char *name;
} categories[] = {{CMD_ADMIN, "admin"},
                  {CMD_CONNECTION, "connection"},
                  {CMD_INSPECT, "inspect"},
                  {CMD_LOCK, "lock"}};
enum { N_CATEGORIES = sizeof(categories) / sizeof(categories[0]) };

static void reply_category(struct session *s, unsigned flag)
{
    struct buf names = {0};
    struct resp_writer to_names = {&names, s->proto};
    int n_rows, n = 0;
    const struct cmd *table = cmd_table(&n_rows);

    for (int i = 0; i < n_rows; i++) {
        if ((table[i].flags & flag) == 0)
            continue;
        resp_str(&to_names, cmd_full_name(i));
        n++;
    }
    struct resp_writer w = session_reply(s);
    resp_array(&w, (size_t)n);
    buf_append(w.out, buf_head(&names), buf_len(&names));
    session_reply_end(s);
    buf_fini(&names);
}

void cmd_admin_acl_cat(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)now_ms;
    if (argc > 3) {
        cmd_reply_error(s, "ERR wrong number of arguments for 'acl|cat' command");
        return;
    }
    if (argc == 3) {
        for (int i = 0; i < N_CATEGORIES; i++)
            if (argv[2].len == strlen(categories[i].name) &&
                strncasecmp(argv[2].ptr, categories[i].name, argv[2].len) == 0) {
                reply_category(s, categories[i].flag);
                return;
            }
        cmd_reply_error(s, "ERR Unknown category '%.*s'", CMD_ARG(&argv[2]));
        return;
    }
    struct resp_writer w = session_reply(s);
    resp_array(&w, N_CATEGORIES);
    for (int i = 0; i < N_CATEGORIES; i++)
        resp_str(&w, categories[i].name);
    session_reply_end(s);
}

/* As Redis writes it, without the hash of the password. */
static void write_user(struct resp_writer *w, const struct user *u)
{
    struct buf text = {0};

    buf_printf(&text, "user %s on %s", u->name, u->nopass ? "nopass" : u->hash ? "#***" : "-");
    for (size_t i = 0; i < u->n_patterns; i++)
        buf_printf(&text, " ~%s", u->patterns[i]);
    buf_printf(&text, " -@all +@connection%s%s%s", u->allow & CONF_ALLOW_LOCK ? " +@lock" : "",
               u->allow & CONF_ALLOW_INSPECT ? " +@inspect" : "",
               u->allow & CONF_ALLOW_ADMIN ? " +@admin" : "");
    resp_bulk(w, buf_head(&text), buf_len(&text));
    buf_fini(&text);
}

void cmd_admin_acl_list(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    struct resp_writer w = session_reply(s);

    resp_array(&w, users_active() ? users_count() : 1);
    if (!users_active())
        resp_str(&w, "user default on nopass ~* &* +@all");
    for (size_t i = 0; i < users_count(); i++)
        write_user(&w, users_at(i));
    session_reply_end(s);
}

void cmd_admin_acl_users(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    struct resp_writer w = session_reply(s);

    resp_array(&w, users_active() ? users_count() : 1);
    if (!users_active())
        resp_str(&w, "default");
    for (size_t i = 0; i < users_count(); i++)
        resp_str(&w, users_at(i)->name);
    session_reply_end(s);
}

void cmd_admin_acl_whoami(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    struct resp_writer w = session_reply(s);

    resp_str(&w, s->user ? s->user->name : "default");
    session_reply_end(s);
}

static void write_refusal(struct resp_writer *w, const struct cmd_refusal *r)
{
    static const char *const reasons[] = {
        [CMD_REASON_AUTH] = "auth", [CMD_REASON_COMMAND] = "command", [CMD_REASON_NAME] = "key"};

    resp_map(w, 7);
    resp_str(w, "count");
    resp_int(w, (int64_t)r->count);
    resp_str(w, "reason");
    resp_str(w, reasons[r->reason]);
    resp_str(w, "object");
    resp_str(w, r->object);
    resp_str(w, "username");
    resp_str(w, r->user);
    resp_str(w, "age-seconds");
    resp_double(w, (double)(clock_wall_ms() - r->wall_ms) / 1000);
    resp_str(w, "client-info");
    resp_str(w, r->peer);
    resp_str(w, "entry-id");
    resp_int(w, (int64_t)r->id);
}

void cmd_admin_acl_log(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int n;
    int64_t most = 10;
    const struct cmd_refusal *refusals = cmd_refusals(&n);

    (void)now_ms;
    if (argc == 3 && cmd_word_is(&argv[2], "RESET")) {
        cmd_refusals_reset();
        cmd_reply_ok(s);
        return;
    }
    if (argc > 3 ||
        (argc == 3 && util_parse_int(argv[2].ptr, argv[2].len, 0, INT64_MAX, &most) != 0)) {
        cmd_reply_error(s, "ERR value is out of range, must be positive");
        return;
    }
    if (n > most)
        n = (int)most;
    struct resp_writer w = session_reply(s);
    resp_array(&w, (size_t)n);
    for (int i = 0; i < n; i++)
        write_refusal(&w, &refusals[i]);
    session_reply_end(s);
}
