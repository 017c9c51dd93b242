/* holdfast script: prints what a Lua script would do with a lock. Asks no broker. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "dropin/cage.h"
#include "dropin/keys.h"
#include "dropin/probe.h"

enum { ARGS_MAX = 64, FILE_MAX = 1 << 20 };

struct words {
    struct resp_arg keys[KEYS_MAX], args[ARGS_MAX];
    int n_keys, n_args;
    char made[KEYS_MAX + ARGS_MAX][16]; /* those that were not given */
};

static void read_script(const char *path, struct buf *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : 1;
    while (len > 0 && buf_len(out) <= FILE_MAX) {
        len = read(fd, buf_reserve(out, 65536), 65536);
        if (len > 0)
            buf_commit(out, (size_t)len);
    }
    if (len < 0)
        cli_die(STATUS_SYSTEM, "%s: %s", path, strerror(errno));
    if (!is_stdin)
        close(fd);
}

/* ---- KEYS and ARGV ---- */

static void add_key(struct words *w, const char *key)
{
    if (w->n_keys == KEYS_MAX)
        cli_usage("more than %d keys", KEYS_MAX);
    for (int i = 0; i < w->n_keys; i++) {
        if (strcmp(w->keys[i].ptr, key) == 0)
            cli_usage("the key %s twice", key);
    }
    w->keys[w->n_keys++] = (struct resp_arg){key, strlen(key)};
}

static void add_arg(struct words *w, const char *arg)
{
    if (w->n_args == ARGS_MAX)
        cli_usage("more than %d arguments", ARGS_MAX);
    w->args[w->n_args++] = (struct resp_arg){arg, strlen(arg)};
}

/* As redis-cli --eval takes them: keys, a comma, arguments. */
static void take_words(struct words *w, int n, char **given)
{
    bool is_arg = false;
    for (int i = 0; i < n; i++) {
        if (!is_arg && strcmp(given[i], ",") == 0)
            is_arg = true;
        else if (is_arg)
            add_arg(w, given[i]);
        else
            add_key(w, given[i]);
    }
}

/* The largest n of KEYS[n] in the text; `least` when there is none. */
static int largest(const struct buf *text, const char *array, int least, int max)
{
    size_t len = strlen(array);
    const char *end = buf_head(text) + buf_len(text);
    for (const char *at = buf_head(text);
         at && (at = memmem(at, (size_t)(end - at), array, len));) {
        int n = 0;
        for (at += len; at < end && *at >= '0' && *at <= '9' && n <= max; at++)
            n = 10 * n + *at - '0';
        least = n > least && n <= max ? n : least;
    }
    return least;
}

/* An argument that is a number passes for a time to live and for the name of an owner. */
static void make_words(struct words *w, const struct buf *text)
{
    int n_keys = largest(text, "KEYS[", 1, KEYS_MAX), n_args = largest(text, "ARGV[", 0, ARGS_MAX);
    for (int i = 0; i < n_keys; i++) {
        snprintf(w->made[i], sizeof w->made[i], "key%d", i + 1);
        add_key(w, w->made[i]);
    }
    for (int i = 0; i < n_args; i++) {
        snprintf(w->made[KEYS_MAX + i], sizeof w->made[0], "%d", 30001 + i);
        add_arg(w, w->made[KEYS_MAX + i]);
    }
}

/* ---- rows ---- */

static const struct table_column columns[] = {
    {"STATE", false, false}, {"WHAT IT DOES", false, true}, {"REPLY", false, true}, {0}};

static void add_row(void *table, const struct probe_row *row)
{
    enum tint tint = row->is_refused ? TINT_BAD : row->is_error ? TINT_WARN : TINT_NONE;
    table_add(table, TINT_NONE, row->state, strlen(row->state));
    table_add(table, tint, row->does, strlen(row->does));
    table_add(table, tint, row->reply, strlen(row->reply));
}

static void add_json(void *list, const struct probe_row *row)
{
    json_t *o = json_object();
    json_object_set_new(o, "state", text_json_str(row->state));
    json_object_set_new(o, "does", text_json_str(row->does));
    json_object_set_new(o, "reply", text_json_str(row->reply));
    json_object_set_new(o, "refused", json_boolean(row->is_refused));
    json_object_set_new(o, "error", json_boolean(row->is_error));
    json_array_append_new(list, o);
}

static int print_rows(struct cage *cage, const struct probe_script *script,
                      struct store_reply *error)
{
    struct screen screen = text_screen();
    struct buf out = {0};
    struct table t;
    json_t *list = cli.json ? json_array() : NULL;
    table_init(&t, columns);
    int refused = cli.json ? probe_run(cage, script, 0, add_json, list, error)
                           : probe_run(cage, script, 0, add_row, &t, error);
    if (cli.json)
        text_put_json(&out, list);
    else if (refused >= 0)
        table_print(&t, &out, &screen, -1);
    text_flush(&out);
    table_fini(&t);
    return refused;
}

int script_main(int argc, char **argv)
{
    struct words words = {0};
    struct buf text = {0};
    struct store_reply error = {0};
    cli_options(argc, argv, cli_json_only, false);
    if (optind == argc)
        cli_usage("no file");
    read_script(argv[optind], &text);
    take_words(&words, argc - optind - 1, argv + optind + 1);
    if (optind + 1 == argc)
        make_words(&words, &text);
    struct probe_script script = {.body = buf_head(&text),
                                  .len = buf_len(&text),
                                  .keys = words.keys,
                                  .args = words.args,
                                  .n_keys = words.n_keys,
                                  .n_args = words.n_args};
    struct cage *cage = cage_new(1);
    int refused = print_rows(cage, &script, &error);
    if (refused < 0)
        cli_die(STATUS_REFUSED, "%s: %.*s", argv[optind], (int)error.nodes[0].len,
                store_text(&error, &error.nodes[0]));
    cage_free(cage);
    store_reply_fini(&error);
    buf_fini(&text);
    return refused ? STATUS_REFUSED : STATUS_OK;
}
