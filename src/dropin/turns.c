/* Lines by name. A line is freed when its last seat is left; it is listed whenever the
 * next one behind may be let go. */
#include "dropin/turns.h"

#include <assert.h>
#include <string.h>

#include "base/pool.h"
#include "lock/locktab.h"

static struct turn_line *add_line(struct turns *t, const struct locktab_name *name)
{
    struct turn_line *line = pool_get(sizeof *line + name->len);
    TAILQ_INIT(&line->seats);
    line->len = name->len;
    memcpy(line->name, name->text, name->len);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->by_name, line->name, line->len, name->hash, line);
    return line;
}

static void drop_line(struct turns *t, struct turn_line *line)
{
    HASH_DEL(t->by_name, line); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    pool_put(line, sizeof *line + line->len);
}

void turns_init(struct turns *t)
{
    const struct locktab_name none = {"", 0, 0};
    t->by_name = NULL;
    TAILQ_INIT(&t->lines);
    (void)add_line(t, &none); /* of no name: an empty table would be made anew for each call */
}

void turns_fini(struct turns *t)
{
    drop_line(t, t->by_name);
    assert(!t->by_name); /* no seat is left */
}

static struct turn_line *find_line(struct turns *t, const struct locktab_name *name)
{
    struct turn_line *line;
    HASH_FIND_BYHASHVALUE(hh, t->by_name, name->text, name->len, name->hash, line);
    return line;
}

static struct turn_line *get_line(struct turns *t, const struct locktab_name *name)
{
    struct turn_line *line = find_line(t, name);
    return line ? line : add_line(t, name);
}

static void list_line(struct turns *t, struct turn_line *line)
{
    if (!line->is_listed)
        TAILQ_INSERT_TAIL(&t->lines, line, looked_at);
    line->is_listed = true;
}

static void unlist_line(struct turns *t, struct turn_line *line)
{
    if (line->is_listed)
        TAILQ_REMOVE(&t->lines, line, looked_at);
    line->is_listed = false;
}

void turns_join(struct turns *t, struct seat *s, const struct locktab_name *name, void *call)
{
    s->line = get_line(t, name);
    s->call = call;
    s->under_way = s->writes = false;
    TAILQ_INSERT_TAIL(&s->line->seats, s, next);
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
        list_line(t, s->line);
}

void turns_wait(struct turns *t, struct seat *s)
{
    s->under_way = s->writes = false;
    list_line(t, s->line);
}

void turns_leave(struct turns *t, struct seat *s)
{
    struct turn_line *line = s->line;
    TAILQ_REMOVE(&line->seats, s, next);
    s->line = NULL;
    if (!TAILQ_EMPTY(&line->seats)) {
        list_line(t, line);
        return;
    }
    unlist_line(t, line);
    drop_line(t, line);
}

void *turns_next(struct turns *t)
{
    struct turn_line *line;
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

void turns_each(struct turns *t, const struct locktab_name *name, void (*each)(void *call))
{
    struct turn_line *line = find_line(t, name);
    struct seat *s;
    if (!line)
        return;
    TAILQ_FOREACH(s, &line->seats, next)
        each(s->call);
}
