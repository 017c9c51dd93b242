/* holdfast ls: prints a line for each lock. */
#include "cli/ls.h"

#include <getopt.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

/* The last one is used where it is wanted. */
static const struct table_column columns[] = {{"NAME", false, true},    {"KIND", false, false},
                                              {"HOLDER", false, true},  {"HELD", true, false},
                                              {"LEFT", true, false},    {"WAITING", true, false},
                                              {"WAITERS", false, true}, {NULL, false, false}};

void ls_table(struct table *t, bool with_waiters)
{
    table_init(t, columns);
    t->n_columns -= !with_waiters;
}

void ls_add_row(struct table *t, const struct locks_row *row)
{
    const redisReply *holder = locks_holder(row->info);
    const char *owner = holder ? ask_text(holder, "owner") : locks_state(row->info);
    const char *library = ask_text(holder, "library"); /* of who took it by commands of Redis */
    int64_t waiting = ask_int(row->info, "waiting"), holding = locks_holding(row->info);
    char text[24], kind[LOCKS_KIND_SIZE];
    table_add(t, TINT_NONE, row->name, strlen(row->name));
    table_addf(t, TINT_NONE, "%s", locks_kind(kind, row->info));
    if (holding > 1)
        table_addf(t, TINT_NONE, "%.200s and %lld more", owner, (long long)holding - 1);
    else if (*library)
        table_addf(t, TINT_NONE, "%.200s (%.64s)", owner, library);
    else
        table_add(t, holder ? TINT_NONE : TINT_DIM, owner, strlen(owner));
    if (!holder) {
        table_addf(t, TINT_NONE, "-");
        table_addf(t, TINT_NONE, "-");
    } else {
        bool known = !locks_is_elsewhere(holder);
        table_addf(t, TINT_NONE, "%s",
                   known ? text_duration(text, ask_int(holder, "held_ms")) : "elsewhere");
        table_addf(t, TINT_NONE, "%s", text_duration(text, ask_int(holder, "remaining_ms")));
    }
    if (waiting)
        table_addf(t, TINT_WARN, "%lld", (long long)waiting);
    else
        table_addf(t, TINT_NONE, "-");
}

static json_t *lock_json(const struct locks_row *row, bool names)
{
    const redisReply *info = row->info, *holder = locks_holder(info);
    json_t *lock = json_pack("{s:o}", "name", text_json_str(row->name));
    if (!names) {
        json_object_update_new(lock,
                               json_pack("{s:s, s:I, s:b}", "state", locks_state(info), "waiting",
                                         ask_int(info, "waiting"), "held", holder != NULL));
        locks_add_kind(lock, info);
    }
    if (holder)
        json_object_update_new(lock, json_pack("{s:o, s:I, s:I, s:I, s:b}", "owner",
                                               text_json_str(ask_text(holder, "owner")), "count",
                                               ask_int(holder, "count"), "token",
                                               ask_int(holder, "token"), "remaining_ms",
                                               ask_int(holder, "remaining_ms"), "elsewhere",
                                               locks_is_elsewhere(holder)));
    if (holder && ask_get(holder, "library"))
        json_object_set_new(lock, "library", text_json_str(ask_text(holder, "library")));
    if (holder && !locks_is_elsewhere(holder))
        json_object_update_new(lock, json_pack("{s:I, s:b}", "held_ms", ask_int(holder, "held_ms"),
                                               "watched", ask_int(holder, "watched") != 0));
    return lock;
}

static void ls_json(const struct locks *locks, bool names, struct buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < locks->n; i++)
        json_array_append_new(list, lock_json(&locks->v[i], names));
    text_put_json(out, list);
}

/* Prints the names alone: escaped on a terminal, elsewhere as they are. */
static void print_names(const struct locks *locks, struct buf *out)
{
    bool escape = text_screen().is_terminal;
    for (size_t i = 0; i < locks->n; i++) {
        const char *name = locks->v[i].name;
        if (escape)
            text_put(out, name, strlen(name), 0);
        else
            buf_append(out, name, strlen(name));
        buf_append(out, "\n", 1);
    }
}

static void ls_text(const struct locks *locks, struct buf *out)
{
    struct screen screen = text_screen();
    struct table t;
    ls_table(&t, false);
    for (size_t i = 0; i < locks->n; i++)
        ls_add_row(&t, &locks->v[i]);
    table_print(&t, out, &screen, -1);
    table_fini(&t);
}

int ls_main(int argc, char **argv)
{
    struct locks locks;
    struct link link;
    struct buf out = {0};
    redisReply *error;
    bool names = false;
    const struct cli_option own[] = {{"names", '1', CLI_FLAG, &names, 0, 0}, CLI_JSON, {0}};
    cli_options(argc, argv, own, false);
    if (argc - optind > 1)
        cli_usage("one pattern at most (quote it, so that the shell leaves it alone)");
    ask_open(&link, cli_urls());
    const struct locks_wish wish = {.glob = argv[optind], .details = !names};
    if (locks_get(&locks, &link, &wish, &error) != 0 && error)
        cli_die(cli_status_of(error->str), "%s", error->str);
    if (!link_is_open(&link))
        cli_die(STATUS_NO_BROKER, "%s", link.error);
    if (cli.json)
        ls_json(&locks, names, &out);
    else if (names)
        print_names(&locks, &out);
    else
        ls_text(&locks, &out);
    text_flush(&out);
    locks_fini(&locks);
    link_close(&link);
    return STATUS_OK;
}
