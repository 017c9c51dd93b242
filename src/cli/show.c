/* holdfast show: prints a reply to LOCKINFO, for people or as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/locks.h"
#include "cli/table.h"

/* ---- JSON ---- */

static json_t *value_json(const char *key, const redisReply *value)
{
    bool is_flag = strcmp(key, "watched") == 0 || strcmp(key, "fair") == 0;
    if (value->type == REDIS_REPLY_INTEGER)
        return is_flag ? json_boolean(value->integer) : json_integer(value->integer);
    if (value->type == REDIS_REPLY_STRING || value->type == REDIS_REPLY_STATUS)
        return text_json(value->str, value->len);
    return json_null();
}

static json_t *map_json(const redisReply *map)
{
    json_t *json = json_object();
    for (size_t i = 0; i + 1 < ask_count(map); i += 2) {
        const redisReply *key = map->element[i];
        if (key->type == REDIS_REPLY_STRING)
            json_object_set_new(json, key->str, value_json(key->str, map->element[i + 1]));
    }
    return json;
}

static json_t *maps_json(const redisReply *maps)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ask_count(maps); i++)
        json_array_append_new(list, map_json(maps->element[i]));
    return list;
}

static void show_json(const char *name, const redisReply *info, struct buf *out)
{
    json_t *lock = json_pack("{s:o, s:s}", "name", text_json_str(name), "state", locks_state(info));
    locks_add_kind(lock, info);
    json_object_update_new(lock,
                           json_pack("{s:I, s:o, s:o, s:o}", "waiting", ask_int(info, "waiting"),
                                     "holders", maps_json(ask_get(info, "holders")), "waiters",
                                     maps_json(ask_get(info, "waiters")), "masters",
                                     map_json(ask_get(info, "masters"))));
    text_put_json(out, lock);
}

/* ---- for people ---- */

enum { LABEL = 9 /* columns of what a line is about */, LINE_LEN = 1024 };

static void put_line_label(struct buf *out, const struct screen *s, const char *word)
{
    text_tint(out, s->colour, TINT_HEAD);
    buf_printf(out, "%-*s", LABEL, word);
    text_tint(out, s->colour, TINT_NONE);
}

/* Appends a line, cut to the width of the screen. */
__attribute__((format(printf, 4, 5))) static void put_line(struct buf *out, const struct screen *s,
                                                           const char *word, const char *fmt, ...)
{
    char text[LINE_LEN];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_line_label(out, s, word);
    text_put(out, text, strlen(text), text_room(s, LABEL));
    buf_printf(out, "\n");
}

/* Says who renews the lock. */
static const char *renewal_of(const redisReply *h)
{
    if (locks_is_elsewhere(h))
        return "";
    return ask_int(h, "watched") ? ", watched: renewed while its connection lives"
                                 : ", not renewed by the broker";
}

static void print_holder(const redisReply *h, struct buf *out, const struct screen *s)
{
    char left[24], held[24];
    bool elsewhere = locks_is_elsewhere(h);
    int64_t connection = ask_int(h, "connection");
    put_line(out, s, "holder", "%s", ask_text(h, "owner"));
    put_line(out, s, "token", "%lld", (long long)ask_int(h, "token"));
    put_line(out, s, "lease", "%s left%s", text_duration(left, ask_int(h, "remaining_ms")),
             renewal_of(h));
    if (*ask_text(h, "library"))
        put_line(out, s, "library", "%s", ask_text(h, "library"));
    if (ask_int(h, "count") != 1)
        put_line(out, s, "count", "%lld", (long long)ask_int(h, "count"));
    text_duration(held, ask_int(h, "held_ms"));
    if (elsewhere)
        put_line(out, s, "held", "through another broker");
    else if (connection)
        put_line(out, s, "held", "for %s, by connection %lld", held, (long long)connection);
    else
        put_line(out, s, "held", "for %s", held);
}

/* Appends the table and how many rows more there would be, and frees it. */
static void end_table(struct table *t, int64_t unlisted, struct buf *out, const struct screen *s)
{
    buf_printf(out, "\n");
    table_print(t, out, s, -1);
    table_fini(t);
    if (unlisted > 0)
        buf_printf(out, "and %lld more\n", (long long)unlisted);
}

/* Appends a table of the holders. */
static void print_holders(const redisReply *info, struct buf *out, const struct screen *s)
{
    static const struct table_column columns[] = {
        {"HOLDER", false, true},     {"TOKEN", true, false}, {"HELD", true, false},
        {"LEFT", true, false},       {"COUNT", true, false}, {"WATCHED", false, false},
        {"CONNECTION", true, false}, {NULL, false, false}};
    const redisReply *holders = ask_get(info, "holders");
    int64_t unlisted = locks_holding(info) - (int64_t)ask_count(holders);
    struct table t;
    table_init(&t, columns);
    for (size_t i = 0; i < ask_count(holders); i++) {
        const redisReply *h = holders->element[i];
        const char *owner = ask_text(h, "owner");
        bool known = !locks_is_elsewhere(h);
        int64_t connection = ask_int(h, "connection");
        char text[24];
        table_add(&t, TINT_NONE, owner, strlen(owner));
        table_addf(&t, TINT_NONE, "%lld", (long long)ask_int(h, "token"));
        table_addf(&t, TINT_NONE, "%s", known ? text_duration(text, ask_int(h, "held_ms")) : "-");
        table_addf(&t, TINT_NONE, "%s", text_duration(text, ask_int(h, "remaining_ms")));
        table_addf(&t, TINT_NONE, "%lld", (long long)ask_int(h, "count"));
        table_addf(&t, TINT_NONE, "%s", !known ? "-" : ask_int(h, "watched") ? "yes" : "no");
        if (known && connection)
            table_addf(&t, TINT_NONE, "%lld", (long long)connection);
        else
            table_addf(&t, TINT_NONE, "%s", known ? "gone" : "elsewhere");
    }
    end_table(&t, unlisted, out, s);
}

static void print_waiters(const redisReply *info, struct buf *out, const struct screen *s)
{
    static const struct table_column columns[] = {
        {"WAITING", false, true}, {"SINCE", true, false}, {"CONNECTION", true, false},
        {"KIND", false, false},   {"LINE", false, false}, {NULL, false, false}};
    const redisReply *waiters = ask_get(info, "waiters");
    int64_t unlisted = ask_int(info, "waiting") - (int64_t)ask_count(waiters);
    struct table t;
    if (ask_count(waiters) == 0)
        return;
    table_init(&t, columns);
    for (size_t i = 0; i < ask_count(waiters); i++) {
        const redisReply *w = waiters->element[i];
        const char *owner = ask_text(w, "owner");
        char text[24];
        table_add(&t, TINT_NONE, owner, strlen(owner));
        table_addf(&t, TINT_NONE, "%s", text_duration(text, ask_int(w, "waited_ms")));
        table_addf(&t, TINT_NONE, "%lld", (long long)ask_int(w, "connection"));
        table_addf(&t, TINT_NONE, "%s", ask_text(w, "kind"));
        table_addf(&t, TINT_NONE, "%s", ask_int(w, "fair") ? "of all brokers" : "here");
    }
    end_table(&t, unlisted, out, s);
}

static void print_masters(const redisReply *masters, struct buf *out, const struct screen *s)
{
    static const struct table_column columns[] = {
        {"MASTER", false, false}, {"SAYS", false, true}, {NULL, false, false}};
    struct table t;
    table_init(&t, columns);
    for (size_t i = 0; i + 1 < ask_count(masters); i += 2) {
        const redisReply *name = masters->element[i], *says = masters->element[i + 1];
        if (name->type != REDIS_REPLY_STRING || says->type != REDIS_REPLY_STRING)
            continue;
        table_add(&t, TINT_NONE, name->str, name->len);
        table_add(&t, locks_is_silent(says) ? TINT_BAD : TINT_NONE, says->str, says->len);
    }
    end_table(&t, 0, out, s);
}

static void print_state(const redisReply *info, struct buf *out, const struct screen *s)
{
    const char *state = locks_state(info);
    bool is_unknown = strcmp(state, "unknown") == 0;
    struct buf more = {0};
    size_t n, n_answered;
    put_line_label(out, s, "state");
    text_tint(out, s->colour,
              is_unknown                   ? TINT_BAD
              : strcmp(state, "held") == 0 ? TINT_WARN
                                           : TINT_GOOD);
    buf_printf(out, "%s", state);
    text_tint(out, s->colour, TINT_NONE);
    locks_count_masters(info, &n, &n_answered);
    if (is_unknown)
        buf_printf(&more, ": %zu of %zu masters answer", n_answered, n);
    if (ask_int(info, "waiting"))
        buf_printf(&more, ", %lld waiting here", (long long)ask_int(info, "waiting"));
    text_put(out, buf_head(&more), buf_len(&more), text_room(s, LABEL + (int)strlen(state)));
    buf_printf(out, "\n");
    buf_fini(&more);
}

static void show_text(const char *name, const redisReply *info, struct buf *out)
{
    struct screen s = text_screen();
    char kind[LOCKS_KIND_SIZE];
    const redisReply *holders = ask_get(info, "holders");
    put_line(out, &s, "name", "%s", name);
    print_state(info, out, &s);
    if (ask_count(holders))
        put_line(out, &s, "kind", "%s", locks_kind(kind, info));
    if (ask_count(holders) > 1)
        print_holders(info, out, &s);
    else if (ask_count(holders))
        print_holder(holders->element[0], out, &s);
    print_waiters(info, out, &s);
    print_masters(ask_get(info, "masters"), out, &s);
}

int show_main(int argc, char **argv)
{
    struct link link;
    struct buf out = {0};
    cli_options(argc, argv, cli_json_only, false);
    const char *name = cli_lock_name(argc, argv);
    ask_open(&link, cli_urls());
    redisReply *info = ask_call(&link, "LOCKINFO", name, NULL);
    if (cli.json)
        show_json(name, info, &out);
    else
        show_text(name, info, &out);
    text_flush(&out);
    freeReplyObject(info);
    link_close(&link);
    return STATUS_OK;
}
