/* conf: the life of a configuration, and setting, reading and comparing it by name.
 *
 * A struct conf is a value: it owns its strings and lists, shares nothing with its copies, and
 * nothing happens when a field changes. What an option means is known to the row (table.c)
 * and its type (value.c). */
#include "conf/private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"

/* ---- life ---- */

void conf_init(struct conf *conf)
{
    size_t count;
    const struct conf_option *opt = conf_options(&count);
    struct conf_error err;

    *conf = (struct conf){0};
    for (size_t i = 0; i < count; i++) {
        int rc = conf_value_set(conf, &opt[i], opt[i].def, &err);
        assert(rc == 0);
        (void)rc;
    }
}

void conf_fini(struct conf *conf)
{
    conf_listens_fini(&conf->listen);
    conf_listens_fini(&conf->http_listen);
    conf_texts_fini(conf);
    conf_clear_masters(conf);
    conf_clear_users(conf);
    free(conf->path);
    *conf = (struct conf){0};
}

void conf_copy(struct conf *dst, const struct conf *src)
{
    *dst = *src;
    conf_listens_copy(&dst->listen, &src->listen);
    conf_listens_copy(&dst->http_listen, &src->http_listen);
    conf_texts_copy(dst);
    conf_masters_copy(dst, src);
    conf_users_copy(dst, src);
    dst->path = util_strdup(src->path);
}

void conf_take_users(struct conf *dst, const struct conf *src)
{
    conf_clear_users(dst);
    conf_users_copy(dst, src);
}

/* ---- setting ---- */

static int option_set(struct conf *conf, const struct conf_option *opt, const char *value, int line,
                      struct conf_error *err)
{
    size_t i = conf_option_index(opt);

    if (line > 0 && conf->line[i] > 0)
        return conf_refuse(err, "is set in line %d already", conf->line[i]);
    if (conf_value_set(conf, opt, value, err) != 0)
        return -1;
    conf->line[i] = line;
    conf->given[i] = true;
    return 0;
}

/* Writes its name as CONFIG SET takes it: "lease", "http.listen". */
static void option_name(const struct conf_option *opt, char *out, size_t size)
{
    bool bare = strcmp(opt->section, "holdfast") == 0;

    snprintf(out, size, "%s%s%s", bare ? "" : opt->section, bare ? "" : ".", opt->key);
}

int conf_set_at(struct conf *conf, const char *section, const char *key, const char *value,
                int line, struct conf_error *err)
{
    const struct conf_option *opt;
    struct conf_error why;
    char shown[80];
    int rc;

    conf_printable(shown, sizeof(shown), key);
    if (strlen(value) >= CONF_VALUE_MAX)
        return conf_refuse(err, "%s: the value is longer than %d bytes", shown, CONF_VALUE_MAX - 1);
    if (section != NULL && strcmp(section, CONF_MASTERS_SECTION) == 0) {
        rc = conf_master_set(conf, key, value, line, &why);
    } else if (section != NULL && strcmp(section, CONF_USERS_SECTION) == 0) {
        rc = conf_user_set(conf, key, value, line, &why);
    } else {
        opt = conf_option_find(section, key);
        if (opt == NULL) {
            conf_option_unknown(section, key, err);
            return -1;
        }
        option_name(opt, shown, sizeof(shown));
        rc = option_set(conf, opt, value, line, &why);
    }
    if (rc == 0)
        return 0;
    return conf_refuse(err, "%s: %.400s", shown, why.text);
}

/* Cuts "section.key" at the first point; a name without one is a key of any section (NULL). */
static const char *split_name(const char *name, char *section, size_t size, const char **key)
{
    size_t len = strcspn(name, ".");

    if (name[len] == '\0' || len >= size) {
        *key = name;
        return NULL;
    }
    memcpy(section, name, len);
    section[len] = '\0';
    *key = name + len + 1;
    return section;
}

int conf_set(struct conf *conf, const char *name, const char *value, struct conf_error *err)
{
    char room[32], shown[40];
    const char *key, *section = split_name(name, room, sizeof(room), &key);

    if (section != NULL && !conf_section_known(section))
        return conf_refuse(
            err,
            "unknown section '%s' (known are holdfast, drop_in, http, limits, masters, tls, users)",
            conf_printable(shown, sizeof(shown), section));
    return conf_set_at(conf, section, key, value, 0, err);
}

int conf_set_live(struct conf *conf, const char *name, const char *value, struct conf_error *err)
{
    char room[32];
    const char *key, *section = split_name(name, room, sizeof(room), &key);
    const struct conf_option *opt = conf_option_find(section, key);

    if (section != NULL && strcmp(section, CONF_MASTERS_SECTION) == 0)
        return conf_refuse(err, "masters cannot be changed here: edit the file and restart");
    if (section != NULL && strcmp(section, CONF_USERS_SECTION) == 0)
        return conf_refuse(err, "users cannot be changed here: edit the file and reload");
    if (opt != NULL && !opt->is_live)
        return conf_refuse(err, "%s: needs a restart: set it in the file", opt->key);
    return conf_set(conf, name, value, err);
}

int conf_override(struct conf *conf, const char *assignment, struct conf_error *err)
{
    const char *equals = strchr(assignment, '=');
    struct conf_error why;
    char shown[80], *name;
    int rc;

    if (equals == NULL)
        return conf_refuse(err, "-o '%s': is not section.key=value",
                           conf_printable(shown, sizeof(shown), assignment));
    name = util_memdup(assignment, (size_t)(equals - assignment));
    rc = conf_set(conf, name, equals + 1, &why);
    free(name);
    return rc == 0 ? 0 : conf_refuse(err, "-o %.500s", why.text);
}

/* ---- reading ---- */

bool conf_is_default(const struct conf *conf, const char *section, const char *key)
{
    return !conf->given[conf_option_index(conf_option_find(section, key))];
}

static bool matches_any(const struct glob *const *globs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (glob_match(globs[i], name, strlen(name)))
            return true;
    return false;
}

/* Returns true when a pattern fits the row. A key that two sections have stands alone for the first
 * one only, as in conf_set. */
static bool name_matches(const struct glob *const *globs, size_t n, const struct conf_option *opt)
{
    char full[128];

    snprintf(full, sizeof(full), "%s.%s", opt->section, opt->key);
    return matches_any(globs, n, full) ||
           (conf_option_find(NULL, opt->key) == opt && matches_any(globs, n, opt->key));
}

size_t conf_get(const struct conf *conf, const struct glob *const *globs, size_t n, conf_get_fn fn,
                void *arg)
{
    size_t count, found = 0;
    const struct conf_option *opt = conf_options(&count);
    char name[128], value[CONF_VALUE_MAX];

    for (size_t i = 0; i < count; i++) {
        if (!name_matches(globs, n, &opt[i]))
            continue;
        option_name(&opt[i], name, sizeof(name));
        conf_value_format(conf, &opt[i], value);
        fn(arg, name, value);
        found++;
    }
    for (size_t i = 0; i < conf->master_count; i++) {
        snprintf(name, sizeof(name), CONF_MASTERS_SECTION ".%s", conf->masters[i].name);
        if (!matches_any(globs, n, name))
            continue;
        conf_master_format(&conf->masters[i], value);
        fn(arg, name, value);
        found++;
    }
    return found;
}

bool conf_is_clustered(const struct conf *conf)
{
    return conf->master_count == 1 && conf->masters[0].by_cluster;
}

char *conf_master_identity(const struct conf_master *m)
{
    struct buf text = {0};

    if (m->id)
        buf_printf(&text, "%s", m->id);
    else if (m->by_sentinels)
        buf_printf(&text, "sentinel:%s/%d", m->host, m->db);
    else if (m->by_cluster)
        buf_printf(&text, "cluster:%s", m->name);
    else if (m->is_unix)
        buf_printf(&text, "unix:%s/%d", m->host, m->db);
    else
        buf_printf(&text, "%s:%d/%d", m->host, m->port, m->db);
    char *copy = util_memdup(buf_head(&text), buf_len(&text));
    buf_fini(&text);
    for (char *p = copy; m->by_sentinels && (p = strchr(p, ',')) != NULL;)
        *p = '+'; /* commas stand between masters */
    return copy;
}

/* ---- comparing ---- */

static bool same_masters(const struct conf *a, const struct conf *b)
{
    if (a->master_count != b->master_count)
        return false;
    for (size_t i = 0; i < a->master_count; i++) {
        const struct conf_master *x = &a->masters[i], *y = &b->masters[i];
        if (strcmp(x->name, y->name) != 0 || x->db != y->db || !conf_master_same_address(x, y) ||
            !conf_master_same_id(x, y))
            return false;
    }
    return true;
}

/* Writes all addresses in one line, for the log; what does not fit is left out. */
static void masters_show(const struct conf *conf, char out[CONF_VALUE_MAX])
{
    char address[CONF_VALUE_MAX];
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < conf->master_count && n < CONF_VALUE_MAX; i++) {
        const struct conf_master *m = &conf->masters[i];
        conf_master_format(m, address);
        n += (size_t)snprintf(out + n, CONF_VALUE_MAX - n, "%s%s=%s%s%s", i > 0 ? " " : "", m->name,
                              address, m->id != NULL ? " id=" : "", m->id != NULL ? m->id : "");
    }
}

static size_t diff_masters(const struct conf *a, const struct conf *b, conf_diff_fn fn, void *arg)
{
    char name[64], before[CONF_VALUE_MAX], after[CONF_VALUE_MAX];
    struct conf_change change = {name, before, after, false};
    size_t found = 0;

    if (!same_masters(a, b)) {
        snprintf(name, sizeof(name), CONF_MASTERS_SECTION);
        masters_show(a, before);
        masters_show(b, after);
        change.needs_restart = true;
        fn(arg, &change);
        return 1;
    }
    for (size_t i = 0; i < a->master_count; i++) {
        if (conf_master_same_login(&a->masters[i], &b->masters[i]))
            continue;
        snprintf(name, sizeof(name), CONF_MASTERS_SECTION ".%s", a->masters[i].name);
        conf_master_format(&a->masters[i], before);
        conf_master_format(&b->masters[i], after);
        fn(arg, &change);
        found++;
    }
    return found;
}

size_t conf_diff(const struct conf *old_conf, const struct conf *new_conf, conf_diff_fn fn,
                 void *arg)
{
    size_t count, found = 0;
    const struct conf_option *opt = conf_options(&count);
    char name[128], before[CONF_VALUE_MAX], after[CONF_VALUE_MAX];

    for (size_t i = 0; i < count; i++) {
        struct conf_change change = {name, before, after, !opt[i].is_live};
        conf_value_format(old_conf, &opt[i], before);
        conf_value_format(new_conf, &opt[i], after);
        if (strcmp(before, after) == 0)
            continue;
        option_name(&opt[i], name, sizeof(name));
        fn(arg, &change);
        found++;
    }
    if (!conf_users_same(old_conf, new_conf)) {
        struct conf_change change = {CONF_USERS_SECTION, "", "", false};
        fn(arg, &change);
        found++;
    }
    return found + diff_masters(old_conf, new_conf, fn, arg);
}
