/* src/lua/acquire.lua as a model, line by line: its functions have the same names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_private.h"
#include "util.h"

enum { UPGRADE_MS = 2000, MAY_TAKE = 99 /* no code of the script */ };

/* The arguments of an item. */
struct wish {
    const char *key;
    const char *op, *owner, *floor, *bucket;
    int64_t above; /* of the floor is the token at least */
    const char *lease, *prev, *tomb, *ticket, *place, *judge, *maxhold, *mode, *all; /* `more` */
};

struct verdict {
    int64_t code, value;
    bool has; /* in another way already */
};

/* `texts` holds what it points to, until the next call. counters: NULL, or of each item. */
static struct wish wish_of(const char *key, char *const *a, const char *counters, int i)
{
    static char texts[128][3072];
    static int next;
    char *text = texts[next++ % 128], *more = text + 1024, *counter = text + 2048;
    struct wish w = {.key = key,
                     .bucket = "base",
                     .lease = a[1],
                     .prev = "-",
                     .tomb = "0",
                     .ticket = "-",
                     .place = "keep",
                     .judge = "-",
                     .maxhold = "0",
                     .mode = "x",
                     .all = "-"};
    const char **words[] = {&w.lease, &w.prev,    &w.tomb, &w.ticket, &w.place,
                            &w.judge, &w.maxhold, &w.mode, &w.all};
    snprintf(text, 1024, "%s", a[0] + strlen("op="));
    w.op = strsep(&text, " ");
    w.owner = strstr(text, " owner=") + strlen(" owner=");
    text += strlen("token=");
    w.floor = strsep(&text, " ");
    if (counters) {
        snprintf(counter, 1024, "%s", counters);
        for (int j = 0; j <= i; j++)
            w.bucket = strsep(&counter, " ");
    }
    if (!strchr(a[1], ','))
        return w;
    snprintf(more, 1024, "%s", a[1]);
    for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
        *words[j] = strsep(&more, ",");
    return w;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* In memory that is used again. */
static const char *reader(const char *owner)
{
    static char part[600];
    snprintf(part, sizeof part, "r:%s", owner);
    return part;
}

static int64_t left(struct fake_server *s, const struct fake_lock *hold)
{
    return fake_max(1, fake_pttl_ms(s, hold));
}

/* What is held, and not under op nor prev. */
static struct verdict held_against(struct fake_server *s, const struct fake_lock *hold,
                                   const struct wish *w)
{
    bool own = is(hold->owner, w->owner);
    enum fake_age related = own ? fake_age(w->op, hold->op) : FAKE_UNRELATED;
    if (related == FAKE_OLDER)
        return (struct verdict){.code = -1};
    if (related != FAKE_NEWER || hold->taken)
        return (struct verdict){own ? 2 : 0, left(s, hold), false};
    fake_add_tomb(s, w->key, hold->op, fake_max(1, fake_pttl_ms(s, hold)), false)->released = true;
    return (struct verdict){.code = MAY_TAKE};
}

static struct verdict in_the_way(struct fake_server *s, const struct wish *w)
{
    int n = fake_shares(s, w->key), limit = fake_limit_of(s, w->key);
    if (n == 0 || fake_mutation == FAKE_READERS_UNSEEN)
        return (struct verdict){.code = MAY_TAKE};
    if (limit)
        return (struct verdict){-3, limit, false};
    bool own = fake_server_find_part(s, w->key, reader(w->owner)) != NULL;
    if (own && n == 1)
        return (struct verdict){.code = MAY_TAKE, .has = true};
    if (own) {
        struct fake_line *line = fake_line(s, w->key);
        if (line->upgrade && !is(line->upgrade, w->owner) &&
            fake_server_find_part(s, w->key, reader(line->upgrade)))
            return (struct verdict){.code = -4};
        if (!is(w->ticket, "-")) {
            free(line->upgrade);
            line->upgrade = util_strdup(w->owner);
            line->upgrade_expires_ms = fake_server_time_ms(s) + UPGRADE_MS;
        }
    }
    return (struct verdict){0, left(s, fake_share(s, w->key, n - 1)), false};
}

static struct verdict exclusive(struct fake_server *s, const struct wish *w)
{
    const struct fake_lock *held = fake_server_find(s, w->key);
    bool again = fake_is_op(held, w->op);
    if (held && held->foreign)
        return (struct verdict){.code = -2};
    if (again && fake_mutation != FAKE_REPEAT_COUNTS)
        return (struct verdict){1, held->token - atoll(w->floor), false};
    if (held && !is(held->op, w->prev) && !again) {
        struct verdict v = held_against(s, held, w);
        if (v.code != MAY_TAKE)
            return v;
    }
    if (fake_server_is_gone(s, w->key, w->op))
        return (struct verdict){.code = -1};
    return in_the_way(s, w);
}

static struct verdict shared(struct fake_server *s, const struct wish *w)
{
    const struct fake_lock *alone = fake_server_find(s, w->key);
    const struct fake_lock *mine = fake_server_find_part(s, w->key, reader(w->owner));
    if (alone && alone->foreign)
        return (struct verdict){.code = -2};
    if (fake_is_op(mine, w->op))
        return (struct verdict){1, mine->token - atoll(w->floor), false};
    if (fake_server_is_gone(s, w->key, w->op))
        return (struct verdict){.code = -1};
    if (mine) {
        struct verdict v = held_against(s, mine, w);
        if (v.code != MAY_TAKE)
            return v;
    }
    bool own = alone && is(alone->owner, w->owner);
    if (alone && !is(alone->op, w->prev) && !own && fake_mutation != FAKE_WRITER_UNSEEN)
        return (struct verdict){0, left(s, alone), false};
    if (fake_limit_of(s, w->key))
        return (struct verdict){-3, fake_limit_of(s, w->key), false};
    if (fake_shares(s, w->key) > 0 && !is(w->place, "front") && fake_line(s, w->key)->n > 0)
        return (struct verdict){.code = 0};
    return (struct verdict){.code = MAY_TAKE, .has = own};
}

/* The permit that this owner has already: a try that came late is given up. */
static struct verdict own_permit(struct fake_server *s, const struct wish *w, const char *slot)
{
    char part[64];
    snprintf(part, sizeof part, "s:%s", slot);
    struct fake_lock *its = fake_server_find_part(s, w->key, part);
    if (!its)
        return (struct verdict){2, 1, false};
    struct verdict v = held_against(s, its, w);
    if (v.code == MAY_TAKE && !is(slot, w->mode)) {
        fake_forget_permit(s, w->key, part);
        fake_lock_free(s, its);
    }
    return v;
}

static struct verdict next_permit(struct fake_server *s, const struct wish *w, int n, int i)
{
    char part[64];
    if (fake_shares(s, w->key) >= n)
        return (struct verdict){0, left(s, fake_share(s, w->key, 0)), false};
    do {
        i = (i + 1) % n;
        snprintf(part, sizeof part, "s:%d:%d", n, i);
    } while (fake_server_find_part(s, w->key, part));
    return (struct verdict){3, i, false};
}

static struct verdict permit(struct fake_server *s, const struct wish *w)
{
    char part[64];
    int n = 0, i = 0;
    snprintf(part, sizeof part, "s:%s", w->mode);
    sscanf(w->mode, "%d:%d", &n, &i);
    const struct fake_lock *alone = fake_server_find(s, w->key);
    const struct fake_lock *held = fake_server_find_part(s, w->key, part);
    if (alone && alone->foreign)
        return (struct verdict){.code = -2};
    if (fake_is_op(held, w->op))
        return (struct verdict){1, held->token - atoll(w->floor), false};
    if (fake_server_is_gone(s, w->key, w->op))
        return (struct verdict){.code = -1};
    if (alone)
        return (struct verdict){.code = -3};
    int live = fake_shares(s, w->key), limit = fake_limit_of(s, w->key);
    if (live > 0 && limit != n)
        return (struct verdict){-3, limit ? limit : -1, false};
    bool replaces = held && is(held->op, w->prev);
    const struct fake_permit *mine = fake_permit(s, w->key, w->owner);
    bool is_same = mine && is(mine->slot, w->mode);
    if (mine && !(is_same && replaces)) {
        struct verdict v = own_permit(s, w, mine->slot);
        if (v.code != MAY_TAKE || is_same)
            return v;
    }
    if (!held || replaces || fake_mutation == FAKE_PERMIT_TWICE)
        return (struct verdict){.code = MAY_TAKE};
    return next_permit(s, w, n, i);
}

static struct verdict judge(struct fake_server *s, const struct wish *w)
{
    bool judges = is(w->judge, "-") || is(w->judge, s->run_id);
    struct verdict v = is(w->mode, "x")   ? exclusive(s, w)
                       : is(w->mode, "s") ? shared(s, w)
                                          : permit(s, w);
    if (v.code == MAY_TAKE && !v.has && strchr(w->ticket, '/') && judges &&
        !fake_is_turn(s, w->key, w->ticket))
        return (struct verdict){.code = 0};
    return v;
}

static struct verdict take(struct fake_server *s, const struct wish *w)
{
    char part[600] = "-";
    struct fake_lock *held = fake_server_find(s, w->key);
    bool has_prev = !is(w->prev, "-");
    int64_t count = 1;
    if (is(w->mode, "s")) {
        snprintf(part, sizeof part, "%s", reader(w->owner));
        if (has_prev && fake_is_op(held, w->prev))
            fake_lock_free(s, held);
    } else if (!is(w->mode, "x")) {
        snprintf(part, sizeof part, "s:%s", w->mode);
        if (has_prev && !is(w->tomb, "0") &&
            fake_is_op(fake_server_find_part(s, w->key, part), w->prev))
            fake_add_tomb(s, w->key, w->prev, atoll(w->tomb), false)->released = true;
        if (has_prev)
            fake_forget_permit(s, w->key, part);
    } else if (fake_is_op(held, w->op)) {
        count = held->count + 1; /* FAKE_REPEAT_COUNTS */
    }
    if (has_prev && !is(w->tomb, "0") && !fake_find_tomb(s, w->key, w->prev))
        fake_add_tomb(s, w->key, w->prev, atoll(w->tomb), false);
    int64_t token = fake_next_token(s, w->bucket, atoll(w->floor) + w->above);
    fake_put(s, w->key, part, w->owner, w->op, token, count, atoll(w->floor), w->lease, w->maxhold);
    return (struct verdict){1, token - atoll(w->floor), false};
}

/* What becomes of the ticket; how many stand in the line then. */
static int64_t after(struct fake_server *s, const struct wish *w, int64_t code)
{
    struct fake_line *line = fake_line(s, w->key);
    int length = line->n;
    bool numbered = strchr(w->ticket, '/') != NULL;
    if (is(w->ticket, "-"))
        return is(w->prev, "-") ? 0 : length;
    if (code == 1 && numbered)
        fake_end_turn(line, w->ticket);
    if (code == 1 && length > 0)
        return length - fake_line_remove(line, w->ticket, numbered ? 1 : length);
    if (code == 0)
        fake_line_up(s, w->key, w->ticket, w->place);
    return length;
}

/* The last item of the group that begins at i, and whether it is there as a whole. */
static int group(int i, int n, const struct wish *wishes, bool *is_whole)
{
    const char *all = wishes[i].all;
    int last = i;
    *is_whole = true;
    if (is(all, "-"))
        return i;
    while (last + 1 < n && is(wishes[last + 1].all, all))
        last++;
    *is_whole = last - i + 1 == atoi(strrchr(all, '/') + 1);
    return last;
}

/* args: lowest, highest, the items, the counters. */
void fake_acquire(struct fake_server *s, int n_keys, char *const *keys, int n_args,
                  char *const *args, struct fake_reply *r)
{
    int width = script_get(SCRIPT_ACQUIRE)->args;
    const char *counters = n_args > 2 + n_keys * width ? args[2 + n_keys * width] : NULL;
    struct wish wishes[64];
    int64_t above = counters ? 0 : fake_max(0, s->mark.base + 1 - atoll(args[0]));
    for (int i = 0; i < n_keys; i++) {
        wishes[i] = wish_of(keys[i], args + 2 + i * width, counters, i);
        wishes[i].above = above;
    }
    for (int i = 0, last; i < n_keys; i = last + 1) {
        struct verdict verdicts[64];
        bool is_free;
        last = group(i, n_keys, wishes, &is_free);
        for (int j = i; j <= last; j++) {
            verdicts[j - i] = judge(s, &wishes[j]);
            is_free &= verdicts[j - i].code == MAY_TAKE || verdicts[j - i].code == 1;
        }
        for (int j = i; j <= last; j++) {
            struct verdict v = verdicts[j - i];
            if (v.code == MAY_TAKE && (is_free || fake_mutation == FAKE_GROUP_IN_PARTS))
                v = take(s, &wishes[j]);
            else if (v.code == MAY_TAKE)
                v = (struct verdict){.code = -5};
            fake_add(r, v.code, NULL);
            fake_add(r, v.value, NULL);
            fake_add(r, after(s, &wishes[j], v.code), NULL);
        }
    }
}
