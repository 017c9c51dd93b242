/* The lines of a fake server: src/lua/line_up.lua, call_up.lua and line.lua as a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_private.h"
#include "util.h"

enum { LINE_MS = 60000, TURN_MS = 500 };

/* ---- the list and the set ---- */

static void take_out(struct fake_line *line, int i)
{
    free(line->tickets[i]);
    line->n--;
    memmove(line->tickets + i, line->tickets + i + 1,
            (size_t)(line->n - i) * sizeof *line->tickets);
}

static void drop_turn(struct fake_line *line, int i)
{
    free(line->turns[i].ticket);
    line->n_turns--;
    memmove(line->turns + i, line->turns + i + 1,
            (size_t)(line->n_turns - i) * sizeof *line->turns);
}

void fake_lines_clear(struct fake_server *s)
{
    struct fake_line *line;
    while ((line = TAILQ_FIRST(&s->lines)) != NULL) {
        TAILQ_REMOVE(&s->lines, line, link);
        while (line->n)
            take_out(line, line->n - 1);
        while (line->n_turns)
            drop_turn(line, line->n_turns - 1);
        free(line->tickets);
        free(line->turns);
        free(line->upgrade);
        free(line->key);
        free(line);
    }
}

struct fake_line *fake_line(struct fake_server *s, const char *key)
{
    int64_t now_ms = fake_server_time_ms(s);
    struct fake_line *line;
    TAILQ_FOREACH(line, &s->lines, link) {
        if (strcmp(line->key, key) == 0)
            break;
    }
    if (!line) {
        line = util_alloc(sizeof *line);
        line->key = util_strdup(key);
        TAILQ_INSERT_TAIL(&s->lines, line, link);
    }
    while (line->n && now_ms > line->expires_ms)
        take_out(line, line->n - 1);
    while (line->n_turns && line->turns[0].expires_ms <= now_ms)
        drop_turn(line, 0);
    if (now_ms > line->upgrade_expires_ms) {
        free(line->upgrade);
        line->upgrade = NULL;
    }
    return line;
}

const char *fake_server_line(struct fake_server *s, const char *key)
{
    static char text[512];
    const struct fake_line *line = fake_line(s, key);
    text[0] = '\0';
    for (int i = 0; i < line->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 line->tickets[i]);
    for (int i = 0; i < line->n_turns; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%sturn:%s", text[0] ? " " : "",
                 line->turns[i].ticket);
    return text;
}

int fake_line_remove(struct fake_line *line, const char *ticket, int at_most)
{
    int removed = 0;
    for (int i = 0; i < line->n && removed < at_most;) {
        if (strcmp(line->tickets[i], ticket) == 0) {
            take_out(line, i);
            removed++;
        } else {
            i++;
        }
    }
    return removed;
}

static void insert(struct fake_line *line, const char *ticket, bool first)
{
    if (line->n == line->cap) {
        line->cap = line->cap ? 2 * line->cap : 4;
        line->tickets = util_realloc(line->tickets, (size_t)line->cap * sizeof *line->tickets);
    }
    if (first)
        memmove(line->tickets + 1, line->tickets, (size_t)line->n * sizeof *line->tickets);
    line->tickets[first ? 0 : line->n] = util_strdup(ticket);
    line->n++;
}

void fake_end_turn(struct fake_line *line, const char *ticket)
{
    for (int i = line->n_turns - 1; i >= 0; i--)
        if (strcmp(line->turns[i].ticket, ticket) == 0)
            drop_turn(line, i);
}

/* Those that end at the same time are in the order of their texts. */
static void add_turn(struct fake_line *line, const char *ticket, int64_t expires_ms)
{
    int i = 0;
    fake_end_turn(line, ticket);
    line->turns = util_realloc(line->turns, (size_t)(line->n_turns + 1) * sizeof *line->turns);
    while (i < line->n_turns &&
           (line->turns[i].expires_ms < expires_ms ||
            (line->turns[i].expires_ms == expires_ms && strcmp(line->turns[i].ticket, ticket) < 0)))
        i++;
    memmove(line->turns + i + 1, line->turns + i,
            (size_t)(line->n_turns - i) * sizeof *line->turns);
    line->turns[i] = (struct fake_turn){util_strdup(ticket), expires_ms};
    line->n_turns++;
}

/* ---- parts of the scripts ---- */

void fake_line_up(struct fake_server *s, const char *key, const char *ticket, const char *place)
{
    struct fake_line *line = fake_line(s, key);
    if (strcmp(place, "front") == 0 || strcmp(place, "tail") == 0)
        insert(line, ticket, strcmp(place, "front") == 0);
    line->expires_ms = fake_server_time_ms(s) + LINE_MS;
}

void fake_call_up(struct fake_server *s, const char *key)
{
    struct fake_line *line = fake_line(s, key);
    while (line->n) {
        char *ticket = util_strdup(line->tickets[0]);
        char channel[96], text[700];
        size_t id_len = strcspn(ticket, "/");
        bool is_numbered = ticket[id_len] == '/';
        take_out(line, 0);
        snprintf(channel, sizeof channel, "holdfast:wake:%.*s", (int)id_len, ticket);
        snprintf(text, sizeof text, "%s %s", ticket, key);
        bool is_heard = s->publish && s->publish(s, channel, text) > 0;
        if (is_heard && is_numbered)
            add_turn(line, ticket, fake_server_time_ms(s) + TURN_MS);
        free(ticket);
        if (is_heard)
            return;
    }
}

static bool has_turn(const struct fake_line *line, const char *ticket)
{
    for (int i = 0; i < line->n_turns; i++)
        if (strcmp(line->turns[i].ticket, ticket) == 0)
            return true;
    return false;
}

bool fake_is_turn(struct fake_server *s, const char *key, const char *ticket)
{
    struct fake_line *line = fake_line(s, key);
    if (has_turn(line, ticket))
        return true;
    if (line->n_turns > 0)
        return false;
    if (!line->n || strcmp(line->tickets[0], ticket) == 0)
        return true;
    fake_call_up(s, key);
    return has_turn(line, ticket);
}

/* ticket */
void fake_line_script(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_line *line = fake_line(s, key);
    fake_line_remove(line, a[0], line->n);
    fake_line_up(s, key, a[0], "tail");
    fake_add(r, line->n, NULL);
}
