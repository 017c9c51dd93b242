/*
 * LATENCY: what took long lately, and what to make of it. The samples are those of latency, the
 * distributions those of stats.
 */
#include "command/latency.h"

#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "command/spikes.h"
#include "stats/private.h"

enum { HIST_EXPONENTS = 32 };

/* ---- HISTOGRAM ---- */

/* Is the row meant by one of the words: by its full name, or as a sub-command of the named one? */
static bool is_meant(const char *full_name, int n, const struct resp_arg *words)
{
    size_t len = strlen(full_name), top_len = strcspn(full_name, "|");

    for (int i = 0; i < n; i++) {
        if (words[i].len != len && words[i].len != top_len)
            continue;
        size_t k = 0;
        while (k < words[i].len && (words[i].ptr[k] | 0x20) == (full_name[k] | 0x20))
            k++;
        if (k == words[i].len)
            return true;
    }
    return n == 0;
}

/* Cumulative counts by powers of two, without those that add nothing. */
static void write_histogram(struct resp_writer *w, const struct stats_command *command)
{
    uint64_t counts[HIST_EXPONENTS + 1], before = 0;
    size_t n = 0;

    for (unsigned i = 0; i <= HIST_EXPONENTS; i++) {
        counts[i] = hist_count_to(&command->duration_us, i);
        n += counts[i] != before;
        before = counts[i];
    }
    resp_str(w, command->name);
    resp_map(w, 2);
    resp_str(w, "calls");
    resp_int(w, (int64_t)command->duration_us.count);
    resp_str(w, "histogram_usec");
    resp_map(w, n);
    before = 0;
    for (unsigned i = 0; i <= HIST_EXPONENTS; i++) {
        if (counts[i] == before)
            continue;
        resp_int(w, INT64_C(1) << i);
        resp_int(w, (int64_t)counts[i]);
        before = counts[i];
    }
}

void cmd_latency_histogram(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct buf text = {0};
    struct resp_writer to_text = {&text, s->proto};
    struct stats_command *command;
    size_t n = 0;

    (void)now_ms;
    for (size_t i = 0; (command = cmd_stats(i)) != NULL; i++) {
        if (command->duration_us.count == 0 || !is_meant(command->name, argc - 2, argv + 2))
            continue;
        write_histogram(&to_text, command);
        n++;
    }
    struct resp_writer w = session_reply(s);
    resp_map(&w, n);
    if (n > 0)
        buf_append(w.out, buf_head(&text), buf_len(&text));
    session_reply_end(s);
    buf_fini(&text);
}

/* ---- events ---- */

void cmd_latency_latest(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct resp_writer w = session_reply(s);
    size_t n = 0;

    (void)argc, (void)argv, (void)now_ms;
    for (int e = 0; e < LATENCY_EVENTS; e++)
        n += latency_count((enum latency_event)e) > 0;
    resp_array(&w, n);
    for (int e = 0; e < LATENCY_EVENTS; e++) {
        uint32_t count = latency_count((enum latency_event)e);
        if (count == 0)
            continue;
        struct latency_sample last = latency_get((enum latency_event)e, count - 1);
        resp_array(&w, 4);
        resp_str(&w, latency_name((enum latency_event)e));
        resp_int(&w, last.wall_s);
        resp_int(&w, last.worst_ms);
        resp_int(&w, latency_worst_ms((enum latency_event)e));
    }
    session_reply_end(s);
}

/* An event that there is not has no history, as in Redis. */
void cmd_latency_history(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    enum latency_event event = latency_find(argv[2].ptr, argv[2].len);
    uint32_t count = event < LATENCY_EVENTS ? latency_count(event) : 0;
    struct resp_writer w = session_reply(s);

    (void)argc, (void)now_ms;
    resp_array(&w, count);
    for (uint32_t i = 0; i < count; i++) {
        struct latency_sample sample = latency_get(event, i);
        resp_array(&w, 2);
        resp_int(&w, sample.wall_s);
        resp_int(&w, sample.worst_ms);
    }
    session_reply_end(s);
}

void cmd_latency_reset(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    int64_t n = 0;

    (void)now_ms;
    for (int e = 0; argc == 2 && e < LATENCY_EVENTS; e++)
        n += latency_reset((enum latency_event)e);
    for (int i = 2; i < argc; i++) {
        enum latency_event event = latency_find(argv[i].ptr, argv[i].len);
        n += event < LATENCY_EVENTS ? latency_reset(event) : 0;
    }
    cmd_reply_int(s, n);
}

/* ---- DOCTOR ---- */

static const char *const advice[LATENCY_EVENTS] = {
    [LATENCY_COMMAND] =
        "SLOWLOG GET names the commands. LOCK, UNLOCK and RENEW wait for a majority "
        "of the masters: MASTERS shows how fast each of them answers.",
    [LATENCY_LOOP] = "The process did not run for so long: too little CPU for it, a machine that "
                     "pauses or swaps, or one command that shows very much (LOCKS and CLIENT LIST "
                     "of a large broker).",
};

static void describe(struct buf *out, enum latency_event event)
{
    uint32_t count = latency_count(event);
    int64_t sum_ms = 0;

    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        sum_ms += latency_get(event, i).worst_ms;
    buf_printf(out,
               "- %s: %" PRIu32 " second%s with an event, on average %" PRId64
               " ms, the worst %" PRId64 " ms. %s\n",
               latency_name(event), count, util_plural(count), sum_ms / count,
               latency_worst_ms(event), advice[event]);
}

/* What it is counted in is milliseconds. */
static void put_us(struct buf *out, const char *before, int64_t us)
{
    if (us < 1000)
        buf_printf(out, "%sless than 1 ms", before);
    else
        buf_printf(out, "%s%" PRId64 " ms", before, us / 1000);
}

static void describe_hist(struct buf *out, const char *what, const struct hist *hist)
{
    if (hist->count == 0)
        return;
    buf_printf(out, "- %s: half of %" PRIu64, what, hist->count);
    put_us(out, " in ", hist_quantile(hist, 0.5));
    put_us(out, ", 99 % in ", hist_quantile(hist, 0.99));
    put_us(out, ", the worst ", (int64_t)hist->max_us);
    buf_printf(out, ".\n");
}

void cmd_latency_doctor(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    struct resp_writer w = session_reply(s);
    struct buf out = {0};
    bool any = false;

    (void)argc, (void)argv, (void)now_ms;
    for (int e = 0; e < LATENCY_EVENTS; e++)
        any |= latency_count((enum latency_event)e) > 0;
    buf_printf(&out,
               any ? "What took %d ms or longer, since the start or LATENCY RESET:\n"
                   : "Nothing has taken %d ms or longer since the start or LATENCY RESET.\n",
               LATENCY_THRESHOLD_US / 1000);
    for (int e = 0; e < LATENCY_EVENTS; e++)
        describe(&out, (enum latency_event)e);
    buf_printf(&out, "Since the start or CONFIG RESETSTAT:\n");
    describe_hist(&out, "asking the masters for a lock", &stats.acquire_us);
    describe_hist(&out, "renewals sent later than due", &stats.renewal_lateness_us);
    describe_hist(&out, "timers of the loop run late", &stats.loop_lag_us);
    resp_verbatim(&w, "txt", buf_head(&out), buf_len(&out));
    session_reply_end(s);
    buf_fini(&out);
}
