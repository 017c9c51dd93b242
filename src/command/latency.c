/* LATENCY: how long commands took, from the histograms of stats. */
#include "command/handlers.h"

#include <string.h>
#include <strings.h>

#include "stats/private.h"

enum { HIST_EXPONENTS = 32 };

/* Returns whether one of the words means the row: by its full name, or by that of its command. */
static bool is_meant(const char *full_name, int n, const struct resp_arg *words)
{
    size_t len = strlen(full_name), top_len = strcspn(full_name, "|");

    for (int i = 0; i < n; i++)
        if ((words[i].len == len || words[i].len == top_len) &&
            strncasecmp(words[i].ptr, full_name, words[i].len) == 0)
            return true;
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
    resp_pair_int(w, "calls", (int64_t)command->duration_us.count);
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

void cmd_latency_histogram(struct cmd_call *c)
{
    struct buf text = {0};
    struct resp_writer to_text = {&text, c->session->proto};
    struct stats_command *command;
    size_t n = 0;

    for (size_t i = 0; (command = cmd_stats(i)) != NULL; i++) {
        if (command->duration_us.count == 0 || !is_meant(command->name, c->argc - 2, c->argv + 2))
            continue;
        write_histogram(&to_text, command);
        n++;
    }
    struct resp_writer *w = cmd_reply(c);
    resp_map(w, n);
    if (n > 0)
        buf_append(w->out, buf_head(&text), buf_len(&text));
    buf_fini(&text);
}

/* Answers as a Redis whose latency-monitor-threshold is 0: exporters ask for it and log errors.
 */
void cmd_latency_latest(struct cmd_call *c)
{
    resp_array(cmd_reply(c), 0);
}
