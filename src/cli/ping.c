/* holdfast ping: asks whether there is a broker, and whether it can give locks. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/text.h"

static void ping_json(const struct link *link, const char *info, int64_t us, struct buf *out)
{
    char version[32];
    ask_info_text(info, "holdfast_version", version, sizeof version);
    text_put_json(out, json_pack("{s:o, s:o, s:I, s:b, s:b, s:I, s:I, s:I}", "broker",
                                 text_json_str(link->url->shown), "version", text_json_str(version),
                                 "latency_us", us, "ready", ask_info_int(info, "ready") != 0,
                                 "draining", ask_info_int(info, "draining") != 0, "masters",
                                 ask_info_int(info, "masters"), "quorum_required",
                                 ask_info_int(info, "quorum_required"), "quorum_available",
                                 ask_info_int(info, "quorum_available")));
}

static void ping_text(const struct link *link, const char *info, int64_t us, struct buf *out)
{
    char version[32], latency[24];
    buf_printf(out, "%s: holdfastd %s, %s, %s: %lld of %lld masters\n", link->url->shown,
               ask_info_text(info, "holdfast_version", version, sizeof version),
               text_latency(latency, us),
               ask_info_int(info, "draining") ? "draining"
               : ask_info_int(info, "paused") ? "paused"
               : ask_info_int(info, "ready")  ? "ready"
                                              : "not ready",
               (long long)ask_info_int(info, "quorum_available"),
               (long long)ask_info_int(info, "masters"));
}

/* Appends why masters that are not active cannot vote. */
static void put_reasons(const redisReply *masters, struct buf *out)
{
    for (size_t i = 0; i < ask_count(masters); i++) {
        const redisReply *m = masters->element[i];
        const char *state = ask_text(m, "state"), *error = ask_text(m, "last_error");
        const char *missing = ask_text(m, "missing");
        int64_t left_ms = ask_int(m, "quarantine_left_ms");
        char text[24];
        if (strcmp(state, "active") == 0)
            continue;
        buf_printf(out, "  %s: %s", ask_text(m, "name"), state);
        if (left_ms > 0)
            buf_printf(out, " %s%s%s", text_duration(text, left_ms), *missing ? ", waits for " : "",
                       missing);
        buf_printf(out, *error ? ": " : "\n");
        if (*error) {
            text_put(out, error, strlen(error), 0);
            buf_append(out, "\n", 1);
        }
    }
}

int ping_main(int argc, char **argv)
{
    struct link link;
    struct buf out = {0};
    redisReply *masters = NULL;
    cli_options(argc, argv, cli_json_only, false);
    cli_no_words(argc, argv);
    ask_open(&link, cli_urls());
    int64_t sent_us = clock_us();
    freeReplyObject(ask_call(&link, "PING", NULL));
    int64_t us = clock_us() - sent_us;
    redisReply *reply = ask_call(&link, "INFO", NULL);
    const char *info = reply->type == REDIS_REPLY_STRING ? reply->str : "";
    bool ready = ask_info_int(info, "ready") && !ask_info_int(info, "draining");
    if (cli.json) {
        ping_json(&link, info, us, &out);
    } else {
        ping_text(&link, info, us, &out);
        if (!ready)
            put_reasons(masters = ask_call(&link, "MASTERS", NULL), &out);
    }
    text_flush(&out);
    freeReplyObject(reply);
    freeReplyObject(masters);
    link_close(&link);
    return ready ? STATUS_OK : STATUS_NO_BROKER;
}
