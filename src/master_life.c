/*
 * The lives of the masters of a set: what is told of them with each join, and what follows from the
 * answer.
 *
 * A master is in the life that it was joined in. When a newer one of it is heard of, from another
 * master or another broker, it is joined again: either it knows of that one too, or it is a run
 * that has come back after another one had served in its place, and begins a new life with a
 * quarantine.
 */
#include <string.h>

#include "master_private.h"

/* The next one in the order in which a join tells of them: the master itself, then the others. */
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
        master_put_text(&self->out, m->slot, strlen(m->slot));
        master_put_text(&self->out, m->newest.text, strlen(m->newest.text));
    }
}

void master_put_life_fields(struct master *self)
{
    struct buf field = {0};

    for (struct master *m = self; m; m = next(self, m)) {
        buf_printf(&field, "life:%s", m->slot);
        master_put_text(&self->out, buf_head(&field), buf_len(&field));
        buf_consume(&field, buf_len(&field));
    }
    buf_fini(&field);
}

bool master_are_lives(struct master *self, const struct reply_value *v)
{
    for (struct master *m = self; m; m = next(self, m), v++) {
        if (v->type == REPLY_NIL)
            continue;
        if (v->type != REPLY_TEXT || !life_is_valid(reply_text(&self->reply, v), v->len))
            return false;
    }
    return true;
}

static bool take(struct master *self, struct life *known, const struct reply_value *v)
{
    return v->type == REPLY_TEXT && life_take(known, reply_text(&self->reply, v), v->len);
}

void master_take_lives(struct master *self, const struct reply_value *v)
{
    self->own = (struct life){{0}};
    (void)take(self, &self->own, v);
    self->has_news |= life_take(&self->newest, self->own.text, strlen(self->own.text));
    for (struct master *m = next(self, self); m; m = next(self, m)) {
        v++;
        (void)take(self, &m->newest, v);
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

void master_spread_lives(struct master *self)
{
    bool has_news = self->has_news;

    self->has_news = false;
    for (struct master *m = next(self, self); m; m = next(self, m)) {
        if (m->state != MASTER_ACTIVE && m->state != MASTER_QUARANTINE)
            continue;
        if (master_life_is_over(m))
            master_join(m);
        else if (has_news)
            master_ask_high(m);
    }
}
