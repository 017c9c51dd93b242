/*
 * The text of the settings, and what differs between two of them. The text is made of words
 * "key=value,value..." with one blank between them; nothing in it has blanks or commas of its own.
 */
#include "redis/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "conf/conf.h"
#include "redis/partition.h"

/* ---- the text ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_quarantine(struct buf *text, int64_t ms)
{
    if (ms == CONF_QUARANTINE_AUTO)
        buf_printf(text, "auto");
    else if (ms == CONF_QUARANTINE_OFF)
        buf_printf(text, "off");
    else
        buf_printf(text, "%" PRId64, ms);
}

static bool is_any_found(const struct conf *conf)
{
    for (size_t i = 0; i < conf->master_count; i++)
        if (conf->masters[i].by_sentinels || conf->masters[i].by_cluster)
            return true;
    return false;
}

char *settings_brokers(const struct conf *conf)
{
    char *copy = util_strdup(conf->brokers), *names[CONF_BROKERS_MAX], *rest = copy, *name;
    size_t n = 0;
    struct buf text = {0};

    while (rest && (name = strsep(&rest, CONF_HOSTS_BETWEEN)) != NULL)
        if (*name && n < CONF_BROKERS_MAX)
            names[n++] = name;
    qsort(names, n, sizeof names[0], compare_texts);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            buf_printf(&text, "%s%s", i > 0 ? "," : "", names[i]);
    char *brokers = n > 0 ? util_memdup(buf_head(&text), buf_len(&text)) : NULL;
    buf_fini(&text);
    free(copy);
    return brokers;
}

static void put_brokers(struct buf *text, const struct conf *conf)
{
    char *brokers = settings_brokers(conf);

    buf_printf(text, " brokers=%s", brokers);
    free(brokers);
}

/* Sorted: the order in the file is each broker's own. */
char *settings_text(const struct conf *conf)
{
    size_t n = conf->master_count;
    char *masters[CONF_MASTERS_MAX];
    struct buf text = {0};

    for (size_t i = 0; i < n; i++)
        masters[i] = conf_master_identity(&conf->masters[i]);
    qsort(masters, n, sizeof masters[0], compare_texts);
    buf_printf(&text,
               "max_lease=%" PRId64 " drift=%" PRId64 " quarantine=", conf->lock.max_lease_ms,
               conf->lock.drift_ppm);
    put_quarantine(&text, conf->quarantine_ms);
    buf_printf(&text, " claim_timeout=%" PRId64 " masters=", conf->lock.claim_timeout_ms);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s%s", i > 0 ? "," : "", masters[i]);
        free(masters[i]);
    }
    if (conf->mirror) /* without it the text is that of brokers that do not know of it */
        buf_printf(&text, " mirror=yes");
    if (is_any_found(conf)) /* likewise */
        buf_printf(&text, " sentinel_timeout=%" PRId64, conf->sentinel_timeout_ms);
    if (conf_is_clustered(conf)) /* also read by lua/renew_general.lua */
        buf_printf(&text, " partitions=%d", PARTITIONS);
    if (conf->brokers)
        put_brokers(&text, conf);
    char *settings = util_memdup(buf_head(&text), buf_len(&text));
    buf_fini(&text);
    return settings;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo): against mistakes, not against an enemy, who could as well
 * send the scripts of others. */
void settings_digest(const char *text, char out[SETTINGS_DIGEST_LEN + 1])
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    snprintf(out, SETTINGS_DIGEST_LEN + 1, "%016" PRIx64, hash);
}

/* ---- the difference ---- */

/* Finds the next word of *text, up to a separator or blank; false: there is none. */
static bool next_word(const char **text, char separator, const char **word, size_t *len)
{
    const char *p = *text;

    while (*p == separator)
        p++;
    *word = p;
    while (*p && *p != separator && *p != ' ')
        p++;
    *len = (size_t)(p - *word);
    *text = p;
    return *len > 0;
}

/* Returns what follows "key=" in a text; "" if the key is missing. */
static const char *value_of(const char *text, const char *key, size_t key_len)
{
    const char *word;
    size_t len;

    while (next_word(&text, ' ', &word, &len)) {
        if (len > key_len && memcmp(word, key, key_len) == 0 && word[key_len] == '=')
            return word + key_len + 1;
    }
    return "";
}

static bool has_item(const char *value, const char *item, size_t args_len)
{
    const char *word;
    size_t len;

    while (next_word(&value, ',', &word, &len)) {
        if (len == args_len && memcmp(word, item, len) == 0)
            return true;
    }
    return false;
}

static void put_plain(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (isgraph((unsigned char)text[i]))
            buf_append(out, &text[i], 1);
    }
}

/* Writes the items of one value that the other lacks, or "nothing". */
static void put_items(struct buf *out, const char *of, const char *without)
{
    const char *word, *separator = "";
    size_t len;

    while (next_word(&of, ',', &word, &len)) {
        if (has_item(without, word, len))
            continue;
        buf_printf(out, "%s", separator);
        put_plain(out, word, len);
        separator = ",";
    }
    if (!*separator)
        buf_printf(out, "nothing");
}

static bool has_all(const char *value, const char *of)
{
    const char *word;
    size_t len;

    while (next_word(&of, ',', &word, &len)) {
        if (!has_item(value, word, len))
            return false;
    }
    return true;
}

/* Writes how ours and theirs differ in the keys of `from`; only_new: in those that `ours` lacks. */
static void put_differences(struct buf *out, const char *from, const char *ours, const char *theirs,
                            bool only_new)
{
    const char *word;
    size_t len;

    while (next_word(&from, ' ', &word, &len)) {
        const char *equals = memchr(word, '=', len);
        size_t key_len = equals ? (size_t)(equals - word) : len;
        const char *here = value_of(ours, word, key_len), *there = value_of(theirs, word, key_len);
        if ((only_new && *here) || (has_all(here, there) && has_all(there, here)))
            continue;
        buf_printf(out, "%s", buf_len(out) > 0 ? "; " : "");
        put_plain(out, word, key_len);
        buf_printf(out, " ");
        put_items(out, here, there);
        buf_printf(out, " here, ");
        put_items(out, there, here);
        buf_printf(out, " there");
    }
}

void settings_difference(const char *ours, const char *theirs, char out[SETTINGS_WORDS_MAX])
{
    struct buf text = {0};

    put_differences(&text, ours, ours, theirs, false);
    put_differences(&text, theirs, ours, theirs, true);
    if (buf_len(&text) == 0)
        buf_printf(&text, "another text");
    snprintf(out, SETTINGS_WORDS_MAX, "%.*s", (int)buf_len(&text), buf_head(&text));
    if (buf_len(&text) >= SETTINGS_WORDS_MAX)
        strcpy(out + SETTINGS_WORDS_MAX - 4, "...");
    buf_fini(&text);
}
