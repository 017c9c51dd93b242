/* value: one value of one option, from text to its field in struct conf and back.
 *
 * Knows the types, not the options: bounds, names and the place of the field come with the row.
 *
 * Invariants: a value that is refused leaves the field as it was; what conf_value_format writes,
 * conf_value_set reads back as the same value, and equal values give equal text (conf_diff compares
 * the texts). */
#include "conf/private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PPM = 1000 * 1000, PPM_PERCENT = PPM / 100 };

int conf_refuse(struct conf_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    return -1;
}

const char *conf_printable(char *out, size_t size, const char *text)
{
    size_t n = 0;

    for (; text[n] != '\0' && n + 4 < size; n++) {
        unsigned char c = (unsigned char)text[n];
        out[n] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    snprintf(out + n, size - n, "%s", text[n] != '\0' ? "..." : "");
    return out;
}

/* ---- numbers ---- */

static void format_size(char *out, size_t size, int64_t bytes)
{
    static const char units[] = "gmk";

    for (int i = 0; i < 3 && bytes != 0; i++) {
        int64_t unit = INT64_C(1) << (30 - 10 * i);
        if (bytes % unit == 0) {
            snprintf(out, size, "%" PRId64 "%c", bytes / unit, units[i]);
            return;
        }
    }
    snprintf(out, size, "%" PRId64, bytes);
}

/* Writes percent with as many of the four decimals as are needed. */
static void format_ratio(char *out, size_t size, int64_t ppm)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%" PRId64 ".%04" PRId64, ppm / PPM_PERCENT,
                       ppm % PPM_PERCENT);

    while (text[len - 1] == '0')
        text[--len] = '\0';
    if (text[len - 1] == '.')
        text[--len] = '\0';
    snprintf(out, size, "%s%%", text);
}

static void format_mode(char *out, size_t size, int64_t bits)
{
    snprintf(out, size, "%04" PRIo64, (uint64_t)bits);
}

static void format_int(char *out, size_t size, int64_t n)
{
    snprintf(out, size, "%" PRId64, n);
}

static void format_duration(char *out, size_t size, int64_t ms)
{
    util_format_duration(out, size, ms);
}

/* Reads a duration. One without a unit is refused although util takes it: `lease = 30` means 30 s
 * to whoever writes it. */
static int parse_duration(const char *text, int64_t *out)
{
    size_t len = strlen(text);

    if (util_parse_duration(text, out) != 0)
        return -1;
    return *out == 0 || !isdigit((unsigned char)text[len - 1]) ? 0 : -1;
}

/* Reads "0.5%" or "0.005", exact to one ppm. */
static int parse_ratio(const char *text, int64_t *out)
{
    size_t len = strlen(text);
    bool percent = len > 0 && text[len - 1] == '%';
    int64_t scale = percent ? PPM_PERCENT : PPM, n = 0;
    bool point = false, digits = false;

    len -= percent;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)text[i]) || n > INT64_C(100) * PPM || (point && scale == 1))
            return -1;
        n = n * 10 + (text[i] - '0');
        digits = true;
        if (point)
            scale /= 10;
    }
    *out = n * scale;
    return digits ? 0 : -1;
}

static int parse_mode(const char *text, int64_t *out)
{
    size_t len = strlen(text);

    if (len < 3 || len > 4 || strspn(text, "01234567") != len)
        return -1;
    *out = (int64_t)strtol(text, NULL, 8);
    return 0;
}

static int parse_int(const char *text, int64_t *out)
{
    return util_parse_int(text, strlen(text), INT64_MIN, INT64_MAX, out);
}

/* What there is to each type; those that are no numbers have a name only. */
static const struct {
    const char *name;
    int (*parse)(const char *text, int64_t *out);
    void (*format)(char *out, size_t size, int64_t n);
    const char *hint;
} types[] = {
    [CONF_INT] = {"number", parse_int, format_int, "is not a whole number"},
    [CONF_SIZE] = {"size", util_parse_size, format_size, "is not a size (try 512, 64k, 1m)"},
    [CONF_DURATION] = {"duration", parse_duration, format_duration,
                       "is not a duration (try 30s, 500ms, 5m)"},
    [CONF_RATIO] = {"ratio", parse_ratio, format_ratio, "is not a ratio (try 0.5% or 0.005)"},
    [CONF_MODE] = {"mode", parse_mode, format_mode, "is not a mode (try 0660)"},
    [CONF_ENUM] = {.name = "word"},
    [CONF_PATH] = {.name = "path"},
    [CONF_NAMES] = {.name = "names"},
    [CONF_HOSTS] = {.name = "names"},
    [CONF_ADDRESSES] = {.name = "addresses"},
    [CONF_LISTEN] = {.name = "addresses"},
};

const char *conf_type_name(enum conf_type type)
{
    return types[type].name;
}

static const void *const_field_of(const struct conf *conf, const struct conf_option *opt)
{
    return (const char *)conf + opt->offset;
}

static void *field_of(struct conf *conf, const struct conf_option *opt)
{
    return (char *)conf + opt->offset;
}

static void number_store(struct conf *conf, const struct conf_option *opt, int64_t n)
{
    void *field = field_of(conf, opt);

    if (opt->type == CONF_ENUM)
        *(int *)field = (int)n;
    else
        *(int64_t *)field = n;
}

/* Writes what a value may be: "auto, off or a duration". */
static void format_choices(const struct conf_option *opt, char *out, size_t size)
{
    size_t n = 0;

    for (const struct conf_name *name = opt->names; name->name != NULL && n < size; name++) {
        bool last = name[1].name == NULL && opt->type == CONF_ENUM;
        const char *between = name == opt->names ? "" : last ? " or " : ", ";
        n += (size_t)snprintf(out + n, size - n, "%s%s", between, name->name);
    }
    if (opt->type != CONF_ENUM && n < size)
        snprintf(out + n, size - n, " or a %s (try 30s, 500ms, 5m)", conf_type_name(opt->type));
}

static int number_set(struct conf *conf, const struct conf_option *opt, const char *text,
                      struct conf_error *err)
{
    char shown[64], min[32], max[32], choices[128];
    int64_t n = 0;

    for (const struct conf_name *name = opt->names; name != NULL && name->name != NULL; name++) {
        if (strcmp(name->name, text) == 0) {
            number_store(conf, opt, name->value);
            return 0;
        }
    }
    conf_printable(shown, sizeof(shown), text);
    if (opt->type == CONF_ENUM || types[opt->type].parse(text, &n) != 0) {
        if (opt->names == NULL)
            return conf_refuse(err, "'%s' %s", shown, types[opt->type].hint);
        format_choices(opt, choices, sizeof(choices));
        return conf_refuse(err, "'%s' is not one of %s", shown, choices);
    }
    if (n < opt->min || n > opt->max) {
        types[opt->type].format(min, sizeof(min), opt->min);
        types[opt->type].format(max, sizeof(max), opt->max);
        return conf_refuse(err, "'%s' is out of bounds (%s to %s)", shown, min, max);
    }
    number_store(conf, opt, n);
    return 0;
}

static void number_format(const struct conf *conf, const struct conf_option *opt, char *out)
{
    const void *field = const_field_of(conf, opt);
    int64_t n = opt->type == CONF_ENUM ? *(const int *)field : *(const int64_t *)field;

    for (const struct conf_name *name = opt->names; name != NULL && name->name != NULL; name++) {
        if (name->value == n) {
            snprintf(out, CONF_VALUE_MAX, "%s", name->name);
            return;
        }
    }
    types[opt->type].format(out, CONF_VALUE_MAX, n);
}

/* ---- paths and hosts ---- */

int conf_path_check(const char *text, struct conf_error *err)
{
    if (text[0] != '/' && (strncmp(text, "%d/", 3) != 0 || text[3] == '\0'))
        return conf_refuse(err, "must be an absolute path, or begin with %%d/ for a credential");
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return conf_refuse(err, "holds a control byte");
    }
    return 0;
}

static bool is_text_type(const struct conf_option *opt)
{
    return opt->type == CONF_PATH || opt->type == CONF_HOSTS || opt->type == CONF_NAMES ||
           opt->type == CONF_ADDRESSES;
}

/* Checks names as in DNS, or "*" for any of them. */
static int hosts_check(const char *text, struct conf_error *err)
{
    for (const char *p = text; *p != '\0'; p++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || strchr("-._*" CONF_HOSTS_BETWEEN, *p);
        if (!good)
            return conf_refuse(err, "must be names of hosts without ports, *, or none");
    }
    return text[strspn(text, CONF_HOSTS_BETWEEN)] != '\0'
               ? 0
               : conf_refuse(err, "must be names of hosts without ports, *, or none");
}

/* Checks names of brokers. */
static int names_check(const char *text, struct conf_error *err)
{
    size_t count = 0, len;

    for (const char *p = text; *(p += strspn(p, CONF_HOSTS_BETWEEN)) != '\0'; p += len) {
        len = strcspn(p, CONF_HOSTS_BETWEEN);
        if (strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_-") < len || len > CONF_BROKER_NAME_MAX)
            return conf_refuse(err, "must be names of a-z, 0-9, _ and -, up to %d bytes, or none",
                               CONF_BROKER_NAME_MAX);
        count++;
    }
    if (count == 0 || count > CONF_BROKERS_MAX)
        return conf_refuse(err, "must be 1 to %d names, or none", CONF_BROKERS_MAX);
    return 0;
}

static int text_check(const struct conf_option *opt, const char *text, struct conf_error *err)
{
    switch (opt->type) {
    case CONF_PATH:
        return conf_path_check(text, err);
    case CONF_NAMES:
        return names_check(text, err);
    case CONF_ADDRESSES:
        return conf_addresses_check(text, opt->max, err);
    default:
        return hosts_check(text, err);
    }
}

static int text_set(struct conf *conf, const struct conf_option *opt, const char *text,
                    struct conf_error *err)
{
    char **field = field_of(conf, opt);
    bool none = strcmp(text, "none") == 0;

    if (!none && text_check(opt, text, err) != 0)
        return -1;
    free(*field);
    *field = none ? NULL : util_strdup(text);
    return 0;
}

void conf_texts_copy(struct conf *conf)
{
    size_t count;
    const struct conf_option *opt = conf_options(&count);

    for (size_t i = 0; i < count; i++) {
        char **field = field_of(conf, &opt[i]);
        if (is_text_type(&opt[i]) && *field != NULL)
            *field = util_strdup(*field);
    }
}

void conf_texts_fini(struct conf *conf)
{
    size_t count;
    const struct conf_option *opt = conf_options(&count);

    for (size_t i = 0; i < count; i++) {
        if (is_text_type(&opt[i]))
            free(*(char **)field_of(conf, &opt[i]));
    }
}

/* ---- any type ---- */

int conf_value_set(struct conf *conf, const struct conf_option *opt, const char *text,
                   struct conf_error *err)
{
    if (is_text_type(opt))
        return text_set(conf, opt, text, err);
    if (opt->type != CONF_LISTEN)
        return number_set(conf, opt, text, err);
    struct conf_listens *listens = (struct conf_listens *)field_of(conf, opt);
    if (opt->names == NULL || strcmp(text, opt->names->name) != 0)
        return conf_listens_set(listens, text, err);
    conf_listens_fini(listens);
    return 0;
}

void conf_value_format(const struct conf *conf, const struct conf_option *opt,
                       char out[CONF_VALUE_MAX])
{
    const void *field = const_field_of(conf, opt);
    const struct conf_listens *listens = field;
    const char *const *text = field;

    if (is_text_type(opt))
        snprintf(out, CONF_VALUE_MAX, "%s", *text != NULL ? *text : "none");
    else if (opt->type != CONF_LISTEN)
        number_format(conf, opt, out);
    else if (listens->count == 0 && opt->names != NULL)
        snprintf(out, CONF_VALUE_MAX, "%s", opt->names->name);
    else
        conf_listens_format(listens, out);
}
