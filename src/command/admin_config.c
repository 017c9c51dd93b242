/*
 * CONFIG: options are read from the configuration in force, and set through a hook, since most of
 * them are put into effect elsewhere. CONFIG SET sets all of its options or none.
 *
 * CONFIG GET also knows a few options of Redis that tools ask for; they are in no table of ours and
 * cannot be set.
 */
#include "command/handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/util.h"
#include "conf/conf.h"
#include "stats/stats.h"

enum { CONFIG_PAIRS_MAX = 16 }; /* options in one CONFIG SET */

/* To compare all options with a pattern, and to set one. */
enum { GET_INSTRUCTIONS = 40000, SET_INSTRUCTIONS = 500000 };

/* What tools ask a Redis for. Numbers that come from an option are added when they are asked. */
static const struct {
    const char *name, *value;
} redis_options[] = {
    {"appendonly", "no"},
    {"cluster-enabled", "no"},
    {"databases", "1"},
    {"latency-monitor-threshold", "0"},
    {"maxmemory", "0"},
    {"maxmemory-policy", "noeviction"},
    {"replica-read-only", "no"},
    {"save", ""},
    {"slowlog-log-slower-than", "10000"},
    {"slowlog-max-len", "128"},
};

struct pairs {
    struct glob **globs; /* what is asked for */
    size_t n_globs;
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

static void offer(struct pairs *pairs, const char *name, const char *value)
{
    for (size_t i = 0; i < pairs->n_globs; i++) {
        if (glob_match(pairs->globs[i], name, strlen(name))) {
            on_option(pairs, name, value);
            return;
        }
    }
}

static void offer_int(struct pairs *pairs, const char *name, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, n);
    offer(pairs, name, text);
}

static void collect(struct pairs *pairs)
{
    const struct conf *conf = cmd_hooks()->conf;

    conf_get(conf, (const struct glob *const *)pairs->globs, pairs->n_globs, on_option, pairs);
    for (size_t i = 0; i < sizeof(redis_options) / sizeof(redis_options[0]); i++)
        offer(pairs, redis_options[i].name, redis_options[i].value);
    offer_int(pairs, "maxclients", conf->client.max_clients);
    offer_int(pairs, "tcp-keepalive", conf->client.tcp_keepalive_ms / 1000);
    offer_int(pairs, "timeout", conf->client.idle_timeout_ms / 1000);
}

static void pairs_fini(struct pairs *pairs)
{
    for (size_t i = 0; i < 2 * pairs->n; i++)
        free(pairs->text[i]);
    free(pairs->text);
    for (size_t i = 0; i < pairs->n_globs; i++)
        glob_free(pairs->globs[i]);
    free(pairs->globs);
}

static int read_globs(struct cmd_call *c, struct pairs *pairs, int n, const struct resp_arg *words)
{
    pairs->globs = util_alloc((size_t)n * sizeof(struct glob *));
    for (int i = 0; i < n; i++) {
        if ((pairs->globs[i] = cmd_glob(c, &words[i])) == NULL)
            return -1;
        pairs->n_globs++;
    }
    return 0;
}

void cmd_admin_config_get(struct cmd_call *c)
{
    struct pairs pairs = {0};

    if (read_globs(c, &pairs, c->argc - 2, c->argv + 2) == 0) {
        collect(&pairs);
        cmd_charge(GET_INSTRUCTIONS * (int64_t)(c->argc - 2));
        struct resp_writer *w = cmd_reply(c);
        resp_map(w, pairs.n);
        for (size_t i = 0; i < 2 * pairs.n; i++)
            resp_str(w, pairs.text[i]);
    }
    pairs_fini(&pairs);
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

static void apply(struct cmd_call *c, const struct cmd_setting *settings, int n)
{
    char error[256];
    const char *refused =
        cmd_hooks()->config_set(cmd_hooks()->server, settings, n, error, sizeof(error));

    if (refused != NULL)
        cmd_reply_error(c, "ERR CONFIG SET failed (possibly related to argument '%.128s') - %s",
                        refused, error);
    else
        cmd_reply_ok(c);
}

void cmd_admin_config_set(struct cmd_call *c)
{
    struct cmd_setting settings[CONFIG_PAIRS_MAX] = {{0}};
    int n = (c->argc - 2) / 2, ready = 0;

    if (c->argc % 2 != 0) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'config|set' command");
        return;
    }
    if (n > CONFIG_PAIRS_MAX) {
        cmd_reply_error(c, "ERR CONFIG SET takes at most %d options at once", CONFIG_PAIRS_MAX);
        return;
    }
    cmd_charge(SET_INSTRUCTIONS * (int64_t)n);
    for (; ready < n; ready++) {
        struct cmd_setting *setting = &settings[ready];
        const struct resp_arg *key = &c->argv[2 + 2 * ready], *value = key + 1;
        setting->key = util_memdup(key->ptr, key->len);
        setting->value = util_memdup(value->ptr, value->len);
        if (strlen(setting->key) != key->len || strlen(setting->value) != value->len ||
            !is_option(setting->key)) {
            cmd_reply_error(c, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                            CMD_ARG(key));
            break;
        }
    }
    if (ready == n)
        apply(c, settings, n);
    for (int i = 0; i < CONFIG_PAIRS_MAX; i++) {
        free(settings[i].key);
        free(settings[i].value);
    }
}

void cmd_admin_config_resetstat(struct cmd_call *c)
{
    stats_reset();
    cmd_reply_ok(c);
}
