/* holdfast masters: prints a line for each master. */
#include "cli/masters.h"

#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

/* The last one is used when there is an error to be shown. */
static const struct table_column columns[] = {
    {"MASTER", false, false},    {"STATE", false, false},  {"FOR", true, false},
    {"LATENCY", true, false},    {"CLOCK", true, false},   {"IN FLIGHT", true, false},
    {"RESTARTS", true, false},   {"VERSION", true, false}, {"ADDRESS", false, true},
    {"LAST ERROR", false, true}, {NULL, false, false}};

/* Writes what the Sentinels of each master say that is found by some. */
static void put_sentinels(struct buf *out, const redisReply *masters)
{
    for (size_t i = 0; i < ask_count(masters); i++) {
        const redisReply *m = masters->element[i];
        const char *name = ask_text(m, "name"), *words = ask_text(m, "sentinels");
        if (!*words)
            continue;
        text_put(out, name, strlen(name), 0);
        buf_printf(out, ": ");
        text_put(out, words, strlen(words), 0);
        buf_printf(out, "\n");
    }
}

static void add_state_cell(struct table *t, const redisReply *m)
{
    const char *state = ask_text(m, "state");
    bool paused = strcmp(ask_text(m, "new_locks"), "paused") == 0;
    int64_t left_ms = ask_int(m, "quarantine_left_ms");
    enum tint tint = strcmp(state, "down") == 0 || strcmp(state, "refused") == 0 ? TINT_BAD
                     : strcmp(state, "active") == 0 && !paused                   ? TINT_GOOD
                                                                                 : TINT_WARN;
    const char *missing = ask_text(m, "missing");
    char text[24];
    if (left_ms > 0)
        table_addf(t, tint, "%s %s%s%s", state, text_duration(text, left_ms),
                   *missing ? ", waits for " : "", missing);
    else
        table_addf(t, tint, "%s%s", state, paused ? ", paused" : "");
}

void masters_table(struct table *t, const redisReply *masters)
{
    char text[24];
    bool errors = false;
    for (size_t i = 0; i < ask_count(masters); i++)
        errors = errors || *ask_text(masters->element[i], "last_error");
    table_init(t, columns);
    t->n_columns -= !errors;
    for (size_t i = 0; i < ask_count(masters); i++) {
        const redisReply *m = masters->element[i];
        const char *address = ask_text(m, "address"), *error = ask_text(m, "last_error");
        const char *version = ask_text(m, "redis_version");
        table_addf(t, TINT_NONE, "%s", ask_text(m, "name"));
        add_state_cell(t, m);
        table_addf(t, TINT_NONE, "%s", text_duration(text, ask_int(m, "since_ms")));
        table_addf(t, TINT_NONE, "%s", text_latency(text, ask_int(m, "latency_us")));
        table_addf(t, TINT_NONE, "%+lldms", (long long)ask_int(m, "clock_offset_ms"));
        table_addf(t, TINT_NONE, "%lld", (long long)ask_int(m, "in_flight"));
        table_addf(t, TINT_NONE, "%lld", (long long)ask_int(m, "restarts"));
        table_addf(t, TINT_NONE, "%s", *version ? version : "-");
        table_add(t, TINT_NONE, address, strlen(address));
        if (errors)
            table_add(t, TINT_DIM, error, strlen(error));
    }
}

static void masters_json(const redisReply *masters, struct buf *out)
{
    static const char *const texts[] = {"name",         "address",       "state",
                                        "new_locks",    "missing",       "signed",
                                        "no_roll_call", "redis_version", "last_error"};
    static const char *const numbers[] = {"since_ms",        "quarantine_left_ms", "latency_us",
                                          "clock_offset_ms", "in_flight",          "restarts"};
    json_t *list = json_array();
    for (size_t i = 0; i < ask_count(masters); i++) {
        const redisReply *m = masters->element[i];
        json_t *master = json_object();
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            json_object_set_new(master, texts[k], text_json_str(ask_text(m, texts[k])));
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            json_object_set_new(master, numbers[k], json_integer(ask_int(m, numbers[k])));
        if (*ask_text(m, "sentinels"))
            json_object_set_new(master, "sentinels", text_json_str(ask_text(m, "sentinels")));
        json_array_append_new(list, master);
    }
    text_put_json(out, list);
}

int masters_main(int argc, char **argv)
{
    struct screen screen = text_screen();
    struct table t;
    struct link link;
    struct buf out = {0};
    cli_options(argc, argv, cli_json_only, false);
    cli_no_words(argc, argv);
    ask_open(&link, cli_urls());
    redisReply *masters = ask_call(&link, "MASTERS", NULL);
    if (cli.json) {
        masters_json(masters, &out);
    } else {
        masters_table(&t, masters);
        table_print(&t, &out, &screen, -1);
        put_sentinels(&out, masters);
        table_fini(&t);
    }
    text_flush(&out);
    freeReplyObject(masters);
    link_close(&link);
    return STATUS_OK;
}
