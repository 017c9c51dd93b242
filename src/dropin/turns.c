/* A line is listed whenever the next one behind may be let go. */
#include "dropin/turns.h"

void turns_init(struct turns *t)
{
    TAILQ_INIT(&t->lines);
}

static void list_line(struct turns *t, struct spot *line)
{
    if (!line->is_listed)
        TAILQ_INSERT_TAIL(&t->lines, line, looked_at);
    line->is_listed = true;
}

static void unlist_line(struct turns *t, struct spot *line)
{
    if (line->is_listed)
        TAILQ_REMOVE(&t->lines, line, looked_at);
    line->is_listed = false;
}

void turns_join(struct seat *s, struct spot *spot, void *call)
{
    s->spot = spot;
    s->call = call;
    s->under_way = s->writes = false;
    TAILQ_INSERT_TAIL(&spot->seats, s, next);
}

bool turns_may_go(const struct seat *s, bool writes)
{
    const struct seat *before = TAILQ_PREV(s, seats, next);
    if (!before || writes)
        return !before;
    for (int n = 1; before; before = TAILQ_PREV(before, seats, next), n++) {
        if (!before->under_way || before->writes || n == TURNS_LOOK_MAX)
            return false;
    }
    return true;
}

void turns_go(struct turns *t, struct seat *s, bool writes)
{
    s->under_way = true;
    s->writes = writes;
    if (!writes)
        list_line(t, s->spot);
}

void turns_wait(struct turns *t, struct seat *s)
{
    s->under_way = s->writes = false;
    list_line(t, s->spot);
}

void turns_leave(struct turns *t, struct seat *s)
{
    struct spot *line = s->spot;
    TAILQ_REMOVE(&line->seats, s, next);
    s->spot = NULL;
    if (TAILQ_EMPTY(&line->seats))
        unlist_line(t, line);
    else
        list_line(t, line);
}

void *turns_next(struct turns *t)
{
    struct spot *line;
    while ((line = TAILQ_FIRST(&t->lines))) {
        struct seat *s = TAILQ_FIRST(&line->seats);
        while (s && s->under_way && !s->writes)
            s = TAILQ_NEXT(s, next);
        unlist_line(t, line);
        if (s && !s->under_way)
            return s->call;
    }
    return NULL;
}

void turns_each(const struct spot *spot, void (*each)(void *call))
{
    const struct seat *s;
    TAILQ_FOREACH(s, &spot->seats, next)
        each(s->call);
}
