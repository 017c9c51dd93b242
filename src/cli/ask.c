/*
 * Waits for each answer until a deadline; a broker that is silent for ASK_TIMEOUT_MS counts as
 * gone.
 */
#include "cli/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

enum { WORDS_MAX = 8, CONNECT_TIMEOUT_MS = 2000, LOOK_MS = 200 };

static struct {
    bool (*goes_on)(void *arg);
    void *arg;
} looks;

void ask_while(bool (*goes_on)(void *arg), void *arg)
{
    looks.goes_on = goes_on;
    looks.arg = arg;
}

/* Waits for the link, until somebody is to look; returns as poll() does. */
static int wait_link(struct link *link, struct pollfd *fd, int64_t left_ms)
{
    int n = poll(fd, 1, (int)(looks.goes_on && left_ms > LOOK_MS ? LOOK_MS : left_ms));
    if (looks.goes_on && !looks.goes_on(looks.arg)) {
        snprintf(link->error, sizeof link->error, "nobody waits any more");
        link_close(link);
    }
    return n;
}

static redisReply *wait_reply(struct link *link, int64_t timeout_ms)
{
    int64_t until_ms = clock_ms() + timeout_ms;
    redisReply *reply;
    while (link_is_open(link)) {
        struct pollfd fd = {link_fd(link), link_events(link), 0};
        int64_t left_ms = until_ms - clock_ms();
        if (link_next(link, &reply) != 0 || reply)
            return reply;
        int n = left_ms > 0 ? wait_link(link, &fd, left_ms) : 0;
        if (!link_is_open(link) || (n == 0 && clock_ms() < until_ms))
            continue;
        if (n == 0) {
            snprintf(link->error, sizeof link->error, "%s: no answer within %lld s",
                     link->url->shown, (long long)timeout_ms / 1000);
            link_close(link);
        } else if ((n > 0 && link_turn(link, fd.revents) != 0) || (n < 0 && errno != EINTR)) {
            link_close(link);
        }
    }
    return NULL;
}

static int try_one(struct link *link, const struct url *url)
{
    if (link_open(link, url) != 0)
        return -1;
    link_send(link, 1, (const char *[]){"PING"});
    redisReply *pong = wait_reply(link, CONNECT_TIMEOUT_MS);
    if (!pong)
        return -1;
    bool ok = pong->type != REDIS_REPLY_ERROR;
    if (!ok) {
        snprintf(link->error, sizeof link->error, "%s: %.200s", url->shown, pong->str);
        link->denied = cli_status_of(pong->str) == STATUS_DENIED;
        link_close(link);
    }
    freeReplyObject(pong);
    return ok ? 0 : -1;
}

int ask_try_open(struct link *link, const struct urls *urls, char *error, size_t error_size)
{
    size_t len = 0;
    error[0] = '\0';
    for (size_t i = 0; i < urls->n; i++) {
        if (try_one(link, &urls->v[i]) == 0)
            return 0;
        if (len < error_size)
            len +=
                (size_t)snprintf(error + len, error_size - len, "%s%s", i ? "; " : "", link->error);
    }
    return -1;
}

void ask_open(struct link *link, const struct urls *urls)
{
    char error[1024];
    if (ask_try_open(link, urls, error, sizeof error) == 0)
        return;
    if (link->denied)
        cli_die(STATUS_DENIED, "%s (user and password go into the URL)", error);
    cli_die(STATUS_NO_BROKER, "no broker: %s", error);
}

redisReply *ask_try_reply(struct link *link)
{
    return wait_reply(link, ASK_TIMEOUT_MS);
}

redisReply *ask_call(struct link *link, ...)
{
    const char *words[WORDS_MAX];
    int n = 0;
    va_list args;
    va_start(args, link);
    while (n < WORDS_MAX && (words[n] = va_arg(args, const char *)))
        n++;
    va_end(args);
    link_send(link, n, words);
    redisReply *reply = ask_try_reply(link);
    if (!reply)
        cli_die(STATUS_NO_BROKER, "%s", link->error);
    if (reply->type == REDIS_REPLY_ERROR)
        cli_die(cli_status_of(reply->str), "%s", reply->str);
    return reply;
}

/* ---- what stands in a reply ---- */

const redisReply *ask_get(const redisReply *map, const char *key)
{
    if (!map || map->type != REDIS_REPLY_ARRAY)
        return NULL;
    for (size_t i = 0; i + 1 < map->elements; i += 2) {
        const redisReply *name = map->element[i];
        if (name->type == REDIS_REPLY_STRING && strcmp(name->str, key) == 0)
            return map->element[i + 1];
    }
    return NULL;
}

int64_t ask_int(const redisReply *map, const char *key)
{
    const redisReply *value = ask_get(map, key);
    int64_t n = 0;
    if (value && value->type == REDIS_REPLY_INTEGER)
        return value->integer;
    if (value && value->type == REDIS_REPLY_STRING &&
        util_parse_int(value->str, value->len, INT64_MIN, INT64_MAX, &n) == 0)
        return n;
    return 0;
}

const char *ask_text(const redisReply *map, const char *key)
{
    const redisReply *value = ask_get(map, key);
    bool is_text =
        value && (value->type == REDIS_REPLY_STRING || value->type == REDIS_REPLY_STATUS);
    return is_text ? value->str : "";
}

size_t ask_count(const redisReply *r)
{
    return r && r->type == REDIS_REPLY_ARRAY ? r->elements : 0;
}

static const char *info_value(const char *info, const char *field, size_t *len)
{
    size_t field_len = strlen(field);
    for (const char *line = info; line && *line;) {
        const char *end = line + strcspn(line, "\r\n");
        if (strncmp(line, field, field_len) == 0 && line[field_len] == ':') {
            *len = (size_t)(end - line) - field_len - 1;
            return line + field_len + 1;
        }
        line = end + strspn(end, "\r\n");
    }
    *len = 0;
    return "";
}

int64_t ask_info_int(const char *info, const char *field)
{
    size_t len;
    int64_t n = 0;
    const char *value = info_value(info, field, &len);
    return util_parse_int(value, len, INT64_MIN, INT64_MAX, &n) == 0 ? n : 0;
}

const char *ask_info_text(const char *info, const char *field, char *buf, size_t size)
{
    size_t len;
    const char *value = info_value(info, field, &len);
    snprintf(buf, size, "%.*s", (int)len, value);
    return buf;
}
