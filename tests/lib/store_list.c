/* Lists: an array from head to tail. */
#include "dropin/store_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static void insert(struct store_key *k, size_t at, const struct resp_arg *value)
{
    if (k->list.n == k->list.cap) {
        k->list.cap = k->list.cap ? 2 * k->list.cap : 8;
        k->list.items = util_realloc(k->list.items, k->list.cap * sizeof *k->list.items);
    }
    memmove(k->list.items + at + 1, k->list.items + at, (k->list.n - at) * sizeof *k->list.items);
    k->list.items[at] = store_bytes_of(value);
    k->list.n++;
}

/* The empty list stays: the caller drops the key. */
static void take_out(struct store_key *k, size_t at)
{
    store_bytes_fini(&k->list.items[at]);
    k->list.n--;
    memmove(k->list.items + at, k->list.items + at + 1, (k->list.n - at) * sizeof *k->list.items);
}

static void push(struct store_run *run, bool at_head, bool only_if_there)
{
    bool wrong = false;
    struct store_key *k = only_if_there ? store_key_get(run, &run->argv[1], STORE_LIST, &wrong)
                                        : store_key_make(run, &run->argv[1], STORE_LIST);
    if (wrong || (!k && !only_if_there))
        return;
    for (int i = 2; k && i < run->argc; i++)
        insert(k, at_head ? 0 : k->list.n, &run->argv[i]);
    store_add_int(run->out, k ? (int64_t)k->list.n : 0);
}

static void lpush(struct store_run *run)
{
    push(run, true, false);
}

static void rpush(struct store_run *run)
{
    push(run, false, false);
}

static void lpushx(struct store_run *run)
{
    push(run, true, true);
}

static void rpushx(struct store_run *run)
{
    push(run, false, true);
}

static void pop(struct store_run *run, bool at_head)
{
    bool wrong, many = run->argc > 2;
    int64_t n = 1;
    if (run->argc > 3) {
        store_add_error(run->out, at_head ? "ERR wrong number of arguments for 'lpop' command"
                                          : "ERR wrong number of arguments for 'rpop' command");
        return;
    }
    if (many && (!store_int(&run->argv[2], &n) || n < 0)) {
        store_add_error(run->out, "ERR value is out of range, must be positive");
        return;
    }
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_LIST, &wrong);
    if (wrong)
        return;
    if (!k) {
        store_add_nil(run->out);
        return;
    }
    n = n < (int64_t)k->list.n ? n : (int64_t)k->list.n;
    if (many)
        store_add_array(run->out, n);
    for (; n > 0; n--) {
        size_t at = at_head ? 0 : k->list.n - 1;
        store_bulk(run, k->list.items[at].ptr, k->list.items[at].len);
        take_out(k, at);
    }
    if (k->list.n == 0)
        store_key_drop(run->store, k);
}

static void lpop(struct store_run *run)
{
    pop(run, true);
}

static void rpop(struct store_run *run)
{
    pop(run, false);
}

static void llen(struct store_run *run)
{
    bool wrong;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_LIST, &wrong);
    if (!wrong)
        store_add_int(run->out, k ? (int64_t)k->list.n : 0);
}

static void lindex(struct store_run *run)
{
    bool wrong;
    int64_t at;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_LIST, &wrong);
    if (wrong)
        return;
    if (!k) {
        store_add_nil(run->out);
        return;
    }
    if (!store_want_int(run, &run->argv[2], &at))
        return;
    if (at < 0)
        at += (int64_t)k->list.n;
    if (at < 0 || at >= (int64_t)k->list.n)
        store_add_nil(run->out);
    else
        store_bulk(run, k->list.items[at].ptr, k->list.items[at].len);
}

static void lrange(struct store_run *run)
{
    bool wrong;
    int64_t start, stop;
    if (!store_want_int(run, &run->argv[2], &start) || !store_want_int(run, &run->argv[3], &stop))
        return;
    const struct store_key *k = store_key_get(run, &run->argv[1], STORE_LIST, &wrong);
    if (wrong)
        return;
    if (!k || !store_range((int64_t)k->list.n, &start, &stop)) {
        store_add_array(run->out, 0);
        return;
    }
    store_add_array(run->out, stop - start + 1);
    for (; start <= stop; start++)
        store_bulk(run, k->list.items[start].ptr, k->list.items[start].len);
}

static void lrem(struct store_run *run)
{
    const struct resp_arg *value = &run->argv[3];
    bool wrong;
    int64_t most, n = 0;
    if (!store_want_int(run, &run->argv[2], &most))
        return;
    struct store_key *k = store_key_get(run, &run->argv[1], STORE_LIST, &wrong);
    if (wrong)
        return;
    bool from_tail = most < 0;
    int64_t left = most == 0 ? INT64_MAX : most == INT64_MIN ? INT64_MAX : llabs(most);
    for (size_t i = 0; k && i < k->list.n && left > 0;) {
        size_t at = from_tail ? k->list.n - 1 - i : i;
        const struct store_bytes *item = &k->list.items[at];
        if (item->len == value->len && memcmp(item->ptr, value->ptr, value->len) == 0) {
            take_out(k, at);
            n++;
            left--;
        } else {
            i++;
        }
    }
    if (k && k->list.n == 0)
        store_key_drop(run->store, k);
    store_add_int(run->out, n);
}

const struct store_command store_list_commands[] = {
    {"LINDEX", 3, 0, lindex},  {"LLEN", 2, 0, llen},      {"LPOP", -2, 0, lpop},
    {"LPUSH", -3, 0, lpush},   {"LPUSHX", -3, 0, lpushx}, {"LRANGE", 4, 0, lrange},
    {"LREM", 4, 0, lrem},      {"RPOP", -2, 0, rpop},     {"RPUSH", -3, 0, rpush},
    {"RPUSHX", -3, 0, rpushx}, {NULL, 0, 0, NULL},
};
