/*
 * The lives of the masters of a set: what is told of them with each join, and what follows from the
 * answer.
 *
 * A master is in the life that it was joined in. When a newer one of it is heard of, from another
 * master or another broker, it is joined again: either it knows of that one too, or it is a run
 * that has come back after another one had served in its place, and begins a new life with a
 * quarantine.
 *
 * Two servers that serve in one place at the same time, each for some of the brokers (a name that
 * leads elsewhere, in a move that not all have followed), could make two majorities. They are known
 * by this: each one's brokers tell its lives to the masters that all have in common, and look there
 * every half a second (master_probe), however much there is to do. So a server that another one has
 * followed is kept out by its brokers before that one's quarantine is over: it lasts a second
 * longer than any lease. Not seen is a second server whose brokers and those of the first one have
 * no master in common that both can reach.
 */
#include <stdio.h>
#include <string.h>

#include "redis/master_private.h"

/* Returns the master behind m in the order in which a join tells of them: `self`, then the others;
 * NULL after the last. */
static struct master *next(struct master *self, struct master *m)
{
    struct master *after = master_next_of_set(self, m == self ? NULL : m);

    return after == self ? master_next_of_set(self, after) : after;
}

int master_count_lives(struct master *self)
{
    int n = 0;

    for (struct master *m = self; m; m = next(self, m))
        n++;
    return n;
}

void master_put_lives(struct master *self)
{
    for (struct master *m = self; m; m = next(self, m)) {
        request_str(&self->out, m->slot);
        request_str(&self->out, m->newest.text);
    }
}

void master_put_life_fields(struct master *self)
{
    struct buf field = {0};

    for (struct master *m = self; m; m = next(self, m)) {
        buf_printf(&field, "life:%s", m->slot);
        request_text(&self->out, buf_head(&field), buf_len(&field));
        buf_consume(&field, buf_len(&field));
    }
    buf_fini(&field);
}

bool master_are_lives(struct master *self, const struct reply_value *v)
{
    for (struct master *m = self; m; m = next(self, m), v++) {
        if (v->type == REPLY_NIL)
            continue;
        if (v->type != REPLY_TEXT || !life_is_valid(reply_text(self->reply, v), v->len))
            return false;
    }
    return true;
}

static bool take_life(struct master *self, struct life *known, const struct reply_value *v)
{
    return v->type == REPLY_TEXT && life_take(known, reply_text(self->reply, v), v->len);
}

void master_take_lives(struct master *self, const struct reply_value *v)
{
    self->own = (struct life){{0}};
    (void)take_life(self, &self->own, v);
    self->has_news |= life_take(&self->newest, self->own.text, strlen(self->own.text));
    for (struct master *m = next(self, self); m; m = next(self, m)) {
        v++;
        (void)take_life(self, &m->newest, v);
    }
}

bool master_life_is_over(const struct master *m)
{
    return strcmp(m->own.text, m->newest.text) != 0;
}

bool master_life_is_denied(const struct master *m)
{
    struct life own = m->own;

    return life_take(&own, m->told.text, strlen(m->told.text));
}

/* Ends the life of a master because another server serves in its place for other brokers, or did.
 * Waits with that while the master is in quarantine, in which it votes on nothing
 * (master_activate): so of two servers that serve at the same time, each for some of the brokers,
 * none leaves it. */
static void end_life(struct master *m)
{
    const char *own = strchr(m->own.text, ' '), *other = strchr(m->newest.text, ' ');

    if (own && other && strcmp(own, other) != 0 && !strstr(m->rival, other)) {
        snprintf(m->rival, sizeof m->rival,
                 "another server was found in its place by other brokers (run_id%s): lead all "
                 "brokers to the same one",
                 other);
        log_warn(m->object, "%s", m->rival);
    }
    if (m->state == MASTER_ACTIVE)
        master_join(m);
}

/* Not when this is the server that they have found. */
bool master_life_is_disputed(const struct master *m)
{
    const char *own = strchr(m->own.text, ' ');

    return !own || !strstr(m->rival, own);
}

void master_heed_lives(struct master *self)
{
    if (master_life_is_over(self))
        end_life(self);
    else if (self->state == MASTER_ACTIVE)
        self->rival[0] = 0;
    master_spread_lives(self);
}

void master_spread_lives(struct master *self)
{
    bool has_news = self->has_news;

    self->has_news = false;
    for (struct master *m = next(self, self); m; m = next(self, m)) {
        if (!master_is_joined(m))
            continue;
        if (master_life_is_over(m))
            end_life(m);
        else if (has_news)
            master_ask_high(m);
    }
}
