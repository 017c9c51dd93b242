/*
 * What top shows: figures of INFO, masters, other brokers and locks, or help. Takes what has been
 * answered, and asks nothing itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/ls.h"
#include "cli/masters.h"
#include "cli/top_private.h"

enum { FIGURE_LINES = 16 /* of a screen, beside masters and locks */ };

static const char *const rate_fields[TOP_RATES] = {"acquires_granted", "handovers",
                                                   "releases_client",  "acquires_busy",
                                                   "acquires_timeout", "total_error_replies"};

int64_t top_count(const char *info, enum top_rate rate)
{
    return ask_info_int(info, rate_fields[rate]);
}

/* ---- the figures ---- */

static void put_time(struct buf *out, time_t wall)
{
    char text[16];
    struct tm tm;
    strftime(text, sizeof text, "%H:%M:%S", localtime_r(&wall, &tm));
    buf_printf(out, "%s", text);
}

static void put_summary(struct buf *out, const char *info, const char *url, const struct screen *s)
{
    char version[32], up[24];
    bool ready = ask_info_int(info, "ready") != 0, draining = ask_info_int(info, "draining") != 0;
    text_tint(out, s->colour, TINT_HEAD);
    buf_printf(out, "holdfastd %s",
               ask_info_text(info, "holdfast_version", version, sizeof version));
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "  %s  up %s  ", url,
               text_duration(up, 1000 * ask_info_int(info, "uptime_in_seconds")));
    text_tint(out, s->colour, draining ? TINT_WARN : ready ? TINT_GOOD : TINT_BAD);
    buf_printf(out, "%s: %lld of %lld masters",
               draining ? "draining"
               : ready  ? "ready"
                        : "not ready",
               (long long)ask_info_int(info, "quorum_available"),
               (long long)ask_info_int(info, "masters"));
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "  ");
    put_time(out, time(NULL));
    buf_printf(out, "\n");
}

/* Copies the part "p99" of a field "acquire_us:count=1,p50=2,p99=3,...", also when it is the first
 * one; returns buf. */
static const char *info_part(const char *info, const char *field, const char *part, char *buf,
                             size_t size)
{
    char text[512] = ",", key[32];
    ask_info_text(info, field, text + 1, sizeof text - 1);
    snprintf(key, sizeof key, ",%s=", part);
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    snprintf(buf, size, "%.*s", (int)strcspn(at, ","), at);
    return buf;
}

static const char *latency_part(const char *info, const char *field, const char *part, char buf[24])
{
    char number[24];
    info_part(info, field, part, number, sizeof number);
    return text_latency(buf, atoll(number));
}

static void put_quantiles(struct buf *out, const char *label, const char *info, const char *field)
{
    static const char *const parts[] = {"p50", "p99", "max"};
    char recent[40], text[24];
    snprintf(recent, sizeof recent, "%s_recent", field);
    buf_printf(out, "%-10s", label);
    for (int i = 0; i < 6; i++)
        buf_printf(out, "%s%8s", i % 3 ? " " : "   ",
                   latency_part(info, i < 3 ? recent : field, parts[i % 3], text));
    buf_printf(out, "\n");
}

/* Those that nobody wanted. */
static long long count_lost(const char *info)
{
    static const char *const losses[] = {"lost_no_quorum", "lost_gone", "lost_left", "lost_pause"};
    long long lost = 0;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        lost += ask_info_int(info, losses[i]);
    return lost;
}

static void put_figures(struct buf *out, const char *info, const double rates[TOP_RATES],
                        const struct screen *s)
{
    long long lost = count_lost(info);
    buf_printf(out, "locks      %8lld held         %8lld waiting      %8lld clients\n",
               (long long)ask_info_int(info, "locks_held"),
               (long long)ask_info_int(info, "waiters"),
               (long long)ask_info_int(info, "connected_clients"));
    buf_printf(out, "a second   %8.1f taken        %8.1f handed over  %8.1f released\n",
               rates[TOP_GRANTED], rates[TOP_HANDED], rates[TOP_RELEASED]);
    buf_printf(out, "           %8.1f busy         %8.1f timed out    %8.1f errors\n",
               rates[TOP_BUSY], rates[TOP_TIMED_OUT], rates[TOP_ERRORS]);
    buf_printf(out, "so far     ");
    text_tint(out, s->colour && lost, TINT_BAD);
    buf_printf(out, "%8lld lost", lost);
    text_tint(out, s->colour && lost, TINT_NONE);
    buf_printf(out, "         %8lld in jeopardy  %8lld deadlocks\n",
               (long long)ask_info_int(info, "jeopardies"),
               (long long)ask_info_int(info, "acquires_deadlock"));
    buf_printf(out, "%-10s%11s%9s%9s%11s%9s%9s\n", "times", "5 min: p50", "p99", "max", "ever: p50",
               "p99", "max");
    put_quantiles(out, "acquire", info, "acquire_us");
    put_quantiles(out, "with wait", info, "wait_us");
}

static void put_peers(struct buf *out, const char *info, const struct screen *s)
{
    char field[16], address[300], state[16], named[4];
    for (int i = 0;; i++) {
        snprintf(field, sizeof field, "peer%d", i);
        if (!*info_part(info, field, "address", address, sizeof address))
            break;
        info_part(info, field, "state", state, sizeof state);
        bool is_named = info_part(info, field, "named", named, sizeof named)[0] == '1';
        buf_printf(out, "%s", i ? ", " : "brokers    ");
        text_put(out, address, strlen(address), 0);
        buf_printf(out, " ");
        text_tint(out, s->colour, strcmp(state, "ready") == 0 ? TINT_GOOD : TINT_BAD);
        buf_printf(out, "%s", state);
        text_tint(out, s->colour, TINT_NONE);
        buf_printf(out, "%s", is_named ? " (clients are sent there)" : "");
    }
    if (*ask_info_text(info, "peer0", address, sizeof address))
        buf_printf(out, "\n");
}

/* ---- locks ---- */

static int64_t of_holder(const struct locks_row *row, const char *key)
{
    return ask_int(locks_holder(row->info), key);
}

static int compare(int64_t a, int64_t b, const struct locks_row *x, const struct locks_row *y)
{
    return a != b ? (a > b ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_held(const void *a, const void *b)
{
    const struct locks_row *x = a, *y = b;
    return compare(of_holder(x, "held_ms"), of_holder(y, "held_ms"), x, y);
}

static int by_waiting(const void *a, const void *b)
{
    const struct locks_row *x = a, *y = b;
    int64_t n = ask_int(x->info, "waiting"), m = ask_int(y->info, "waiting");
    return n == m ? by_held(a, b) : compare(n, m, x, y);
}

/* What nobody holds comes last. */
static int by_left(const void *a, const void *b)
{
    const struct locks_row *x = a, *y = b;
    int64_t n = locks_holder(x->info) ? of_holder(x, "remaining_ms") : INT64_MAX;
    int64_t m = locks_holder(y->info) ? of_holder(y, "remaining_ms") : INT64_MAX;
    return compare(-n, -m, x, y);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct locks_row *)a)->name, ((const struct locks_row *)b)->name);
}

static const struct {
    const char *words;
    int (*compare)(const void *, const void *);
} sorts[TOP_SORTS] = {[TOP_BY_WAITING] = {"most waiting first", by_waiting},
                      [TOP_BY_HELD] = {"longest held first", by_held},
                      [TOP_BY_LEFT] = {"shortest lease first", by_left},
                      [TOP_BY_NAME] = {"by name", by_name}};

/* Returns whether any of those who wait for the locks has said its name. */
static bool has_names(const redisReply *contended)
{
    for (size_t i = 0; i < ask_count(contended); i++) {
        const redisReply *groups = ask_get(contended->element[i], "waiters");
        for (size_t k = 0; k < ask_count(groups); k++)
            if (*ask_text(groups->element[k], "client"))
                return true;
    }
    return false;
}

/* Adds who waits for a lock: "7 restock, 2 report reading". */
static void add_waiters(struct table *t, const redisReply *contended, const char *name)
{
    const redisReply *groups = NULL;
    struct buf out = {0};
    for (size_t i = 0; i < ask_count(contended) && !groups; i++)
        if (strcmp(ask_text(contended->element[i], "lock"), name) == 0)
            groups = ask_get(contended->element[i], "waiters");
    for (size_t i = 0; groups && i < ask_count(groups); i++) {
        const redisReply *g = groups->element[i];
        const char *client = ask_text(g, "client");
        bool reads = strcmp(ask_text(g, "kind"), "shared") == 0;
        buf_printf(&out, "%s%lld %s%s", i ? ", " : "", (long long)ask_int(g, "count"),
                   *client ? client : "unnamed", reads ? " reading" : "");
    }
    table_add(t, TINT_NONE, buf_len(&out) ? buf_head(&out) : "", buf_len(&out));
    buf_fini(&out);
}

static void put_locks(struct buf *out, struct top_answers *a, const struct top_wish *wish,
                      const struct screen *s, int rows)
{
    struct table t;
    size_t shown = s->rows && rows < 0 ? 0 : s->rows ? (size_t)rows : a->locks.n;
    bool with_waiters = has_names(a->contended);
    if (a->locks.n > 0)
        qsort(a->locks.v, a->locks.n, sizeof a->locks.v[0], sorts[wish->sort].compare);
    ls_table(&t, with_waiters);
    for (size_t i = 0; i < a->locks.n && i < shown; i++) {
        ls_add_row(&t, &a->locks.v[i]);
        if (with_waiters)
            add_waiters(&t, a->contended, a->locks.v[i].name);
    }
    table_print(&t, out, s, -1);
    table_fini(&t);
}

/* Those that will be lost unless the masters confirm them; nothing where there are none. */
static void put_jeopardy(struct buf *out, const redisReply *jeopardy, const struct screen *s)
{
    static const struct table_column columns[] = {{"IN JEOPARDY", false, true},
                                                  {"HELD", true, false},
                                                  {"LEFT", true, false},
                                                  {NULL, false, false}};
    struct table t;
    char text[24];
    if (ask_count(jeopardy) == 0)
        return;
    table_init(&t, columns);
    for (size_t i = 0; i < ask_count(jeopardy); i++) {
        const redisReply *row = jeopardy->element[i];
        const char *name = ask_text(row, "lock");
        table_add(&t, TINT_BAD, name, strlen(name));
        table_addf(&t, TINT_NONE, "%s", text_duration(text, ask_int(row, "held_ms")));
        table_addf(&t, TINT_NONE, "%s", text_duration(text, ask_int(row, "remaining_ms")));
    }
    table_print(&t, out, s, -1);
    table_fini(&t);
    buf_printf(out, "\n");
}

/* What is listed, and how to have it otherwise. */
static void put_wish(struct buf *out, const struct top_wish *wish, const struct screen *s)
{
    text_tint(out, s->colour, TINT_DIM);
    buf_printf(out, "%s", sorts[wish->sort].words);
    if (wish->types || wish->filter[0]) {
        buf_printf(out, "; names with ");
        text_put(out, wish->filter, strlen(wish->filter), 0);
        buf_printf(out, "%s", wish->types ? "_  (Enter, or Esc for all)" : "  (Esc: all)");
    }
    if (!wish->types)
        buf_printf(out, "   ? helps, q quits");
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "\n");
}

static const char help[] =
    "w  most waiting first       h  longest held first\n"
    "l  shortest lease first     n  by name\n"
    "/  locks with this in their name, or that match a pattern as orders:*\n"
    "Esc  all locks again        Space  the next screen at once\n"
    "?  help, and back           q  quit\n"
    "\n"
    "Locks: those for which most wait, and some of the others. WAITERS are counted by the\n"
    "name of their connection (CLIENT SETNAME), or by its client library.\n"
    "Lost are locks that could not be kept; those that an administrator or MAXHOLD has\n"
    "ended, or that were taken back elsewhere, do not count.\n";

/* ---- the screen ---- */

static int lines_of(const struct buf *out)
{
    int lines = 0;
    const char *text = buf_head(out);
    for (size_t i = 0; i < buf_len(out); i++)
        lines += text[i] == '\n';
    return lines;
}

void top_draw(struct buf *out, struct top_answers *a, const double rates[TOP_RATES],
              const char *url, const struct top_wish *wish, const struct screen *s)
{
    struct table masters;
    const char *info = a->info->str;
    put_summary(out, info, url, s);
    put_figures(out, info, rates, s);
    put_peers(out, info, s);
    buf_printf(out, "\n");
    if (wish->help) {
        buf_printf(out, "%s", help);
        return;
    }
    masters_table(&masters, a->masters);
    table_print(&masters, out, s,
                s->rows ? (s->rows - FIGURE_LINES > 3 ? s->rows - FIGURE_LINES : 3) : -1);
    table_fini(&masters);
    buf_printf(out, "\n");
    put_jeopardy(out, a->jeopardy, s);
    if (s->is_terminal)
        put_wish(out, wish, s);
    put_locks(out, a, wish, s, s->rows - lines_of(out) - 1);
}

void top_draw_silence(struct buf *out, const struct buf *old, const char *what, int64_t since_s,
                      const struct screen *s)
{
    const char *text = buf_head(old), *end = text + buf_len(old);
    const char *eol = buf_len(old) ? memchr(text, '\n', buf_len(old)) : NULL;
    char age[24];
    text_tint(out, s->colour, TINT_BAD);
    buf_printf(out, "no answer");
    if (since_s) {
        buf_printf(out, " since ");
        put_time(out, since_s);
        buf_printf(out, " (%s)", text_duration(age, 1000 * (time(NULL) - since_s)));
    }
    buf_printf(out, ": %s", what);
    text_tint(out, s->colour, TINT_NONE);
    buf_printf(out, "\n");
    if (eol) /* what was shown then, but for its first line */
        buf_append(out, eol + 1, (size_t)(end - eol - 1));
    else
        buf_printf(out, "\ntrying again; q quits\n");
}
