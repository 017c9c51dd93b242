/*
 * The scripts with items as a model, but acquire and line. Each function below is src/lua/<its
 * name>.lua line by line; where one of them does something that looks odd, so does the script.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_private.h"
#include "util.h"

void fake_add(struct fake_reply *r, int64_t integer, const char *text)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 8;
        r->values = util_realloc(r->values, (size_t)r->cap * sizeof *r->values);
    }
    r->values[r->n++] = (struct fake_value){text != NULL, integer, text ? util_strdup(text) : NULL};
}

static struct fake_lock *find_reader(struct fake_server *s, const char *key, const char *owner)
{
    char *part = util_alloc(strlen(owner) + 3);
    strcpy(part, "r:");
    strcat(part, owner);
    struct fake_lock *l = fake_server_find_part(s, key, part);
    free(part);
    return l;
}

/* op token bucket part */
void fake_commit(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    int64_t token = atoll(a[1]);
    struct fake_lock *held = fake_server_find_part(s, key, a[3]);
    if (!fake_is_op(held, a[0])) {
        bool anywhere = fake_mutation == FAKE_COMMIT_ANYWHERE;
        if (anywhere)
            fake_raise_counter(s, a[2], token);
        fake_add(r, anywhere, NULL);
        fake_add(r, anywhere ? token : 0, NULL);
        return;
    }
    bool larger = held->token > token && fake_mutation != FAKE_COMMIT_LOWERS;
    int64_t counter = *fake_counter(s, a[2]);
    bool is_shared = strcmp(a[3], "-") != 0 || fake_share(s, key, 0) != NULL;
    if (held->token < token && is_shared && counter >= token) {
        larger = true;
        held->token = counter + 1;
    } else if (!larger) {
        held->token = token;
    }
    fake_raise_counter(s, a[2], held->token);
    fake_add(r, larger ? 2 : 1, NULL);
    fake_add(r, held->token, NULL);
}

/* What this owner has. */
static struct fake_lock *find(struct fake_server *s, const char *key, const char *owner, char kind)
{
    struct fake_lock *l = fake_server_find(s, key);
    if ((kind == 'x' || kind == '?') && l && !l->foreign && strcmp(l->owner, owner) == 0)
        return l;
    if ((kind == 's' || kind == '?') && (l = find_reader(s, key, owner)) != NULL)
        return l;
    const struct fake_permit *p = kind == 'n' || kind == '?' ? fake_permit(s, key, owner) : NULL;
    char part[64] = "s:";
    if (!p)
        return NULL;
    strncat(part, p->slot, sizeof part - 3);
    l = fake_server_find_part(s, key, part);
    return l && strcmp(l->owner, owner) == 0 ? l : NULL;
}

static int64_t share_number(const struct fake_lock *l)
{
    const char *colon = strrchr(l->part, ':');
    if (l->part[0] == 's')
        return atoll(l->part + 2) * 65536 + atoll(colon + 1);
    return l->part[0] == 'r';
}

/* The broker that had it hears that it has moved. */
static void tell(struct fake_server *s, const char *key, const char *op)
{
    const char *dot = strrchr(op, '.');
    char channel[96], text[700];
    if (!dot || !s->publish)
        return;
    snprintf(channel, sizeof channel, "holdfast:wake:%.*s", (int)(dot - op), op);
    snprintf(text, sizeof text, "%s %s", op, key);
    s->publish(s, channel, text);
}

/* op tomb owner floor bucket mine kind */
void fake_takeover(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_lock *held = find(s, key, a[2], a[6][0]);
    bool is_again = fake_is_op(held, a[0]);
    enum fake_age related = held && !is_again ? fake_age(a[0], held->op) : FAKE_UNRELATED;
    int64_t code = 0, value = 0;
    if (!held) {
        value = fake_pttl_ms(s, fake_server_find(s, key));
    } else if (is_again) {
        code = 1;
        value = held->token;
    } else if (related == FAKE_OLDER || fake_server_is_gone(s, key, a[0])) {
        code = -1;
    } else {
        bool keeps = fake_mutation == FAKE_TAKEOVER_KEEPS_TOKEN;
        code = 1;
        value = keeps ? held->token : fake_next_token(s, a[4], atoll(a[3]));
        fake_add_tomb(s, key, held->op, fake_max(atoll(a[1]), fake_pttl_ms(s, held)), true);
        if (related == FAKE_NEWER && strcmp(a[5], "none") == 0 && !held->taken)
            held->count = held->seq = held->end_ms = 0;
        else
            held->taken = true;
        if (related == FAKE_UNRELATED)
            tell(s, key, held->op);
        free(held->op);
        held->op = util_strdup(a[0]);
        held->token = value;
    }
    int64_t left_ms = code == 1 && held->end_ms ? held->end_ms - fake_server_time_ms(s) : 0;
    fake_add(r, code, NULL);
    fake_add(r, value, NULL);
    fake_add(r, code == 1 ? held->count : 0, NULL);
    fake_add(r, code == 1 ? fake_pttl_ms(s, held) : 0, NULL);
    fake_add(r, code == 1 ? held->seq : 0, NULL);
    fake_add(r, code == 1 && held->end_ms ? fake_max(1, left_ms) : 0, NULL);
    fake_add(r, code == 1 ? share_number(held) : 0, NULL);
}

/* what lease */
static int64_t renew(struct fake_server *s, const char *key, char *what, const char *lease)
{
    const char *op = strsep(&what, " "), *count = what ? strsep(&what, ",") : NULL;
    const char *seq = what ? strsep(&what, ",") : NULL, *part = what ? what : "-";
    struct fake_lock *held = fake_server_find_part(s, key, part);
    if (!held && fake_mutation == FAKE_RENEW_CREATES && strcmp(lease, "0") != 0) {
        fake_put(s, key, part, "?", op, 1, count ? atoll(count) : 1, seq ? atoll(seq) : 1, lease,
                 "0");
        return 1;
    }
    if (!fake_is_op(held, op)) {
        const struct fake_tomb *t = held ? fake_find_tomb(s, key, op) : NULL;
        return !held || held->foreign ? 0 : t && t->moved ? -2 : -1;
    }
    bool newer = seq && held->seq < atoll(seq);
    int64_t expires_ms = fake_server_time_ms(s) + atoll(lease);
    if (strcmp(lease, "0") != 0 && (newer || expires_ms > held->expires_ms))
        fake_last_until(s, held, expires_ms, newer);
    if (newer || (seq && fake_mutation == FAKE_SEQ_IGNORED)) {
        held->count = atoll(count);
        held->seq = atoll(seq);
    }
    return 1;
}

void fake_renew(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    char *what = util_strdup(a[0]);
    fake_add(r, renew(s, key, what, a[1]), NULL);
    free(what);
}

/* Does somebody hold it in a way that cannot be at the same time? */
static bool is_taken(struct fake_server *s, const char *key, const char *owner, const char *part)
{
    const struct fake_lock *held = fake_server_find(s, key);
    bool reads = part[0] == 'r';
    if (held && (held->foreign || !reads || strcmp(held->owner, owner) != 0))
        return true;
    int n = fake_shares(s, key), limit = fake_limit_of(s, key);
    if (n == 0)
        return false;
    if (part[0] == 's')
        return limit != atoi(part + 2);
    if (limit)
        return true;
    return !reads && !(n == 1 && find_reader(s, key, owner));
}

/* op owner token count seq lease bucket maxhold part */
void fake_plant(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    const char *part = a[8];
    const struct fake_lock *held = fake_server_find_part(s, key, part);
    bool anywhere = fake_mutation == FAKE_PLANT_ANYWHERE && !(held && held->foreign);
    bool may = anywhere || (!held && !is_taken(s, key, a[1], part));
    if (fake_is_op(held, a[0])) {
        fake_add(r, 1, NULL);
    } else if (may && !fake_server_is_gone(s, key, a[0])) {
        fake_put(s, key, part, a[1], a[0], atoll(a[2]), atoll(a[3]), atoll(a[4]), a[5], a[7]);
        fake_raise_counter(s, a[6], atoll(a[2]));
        fake_add(r, 1, NULL);
    } else {
        fake_add(r, 0, NULL);
    }
}

/* what */
void fake_release(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    char *what = util_strdup(a[0]), *text = what;
    const char *op = strsep(&text, " "), *tomb_ms = "0", *ticket = "-", *place = "keep";
    const char *turn = "call", *part = "-";
    if (text) {
        tomb_ms = strsep(&text, ",");
        ticket = strsep(&text, ",");
        place = strsep(&text, ",");
        turn = strsep(&text, ",");
        part = text;
    }
    bool calls = strcmp(turn, "call") == 0;
    struct fake_lock *held = fake_server_find_part(s, key, part);
    bool any = fake_mutation == FAKE_RELEASE_ANY && held && !held->foreign;
    bool frees = fake_is_op(held, op) || any;
    int64_t code = frees ? 1 : held ? -1 : 0;
    if (frees) {
        fake_forget_permit(s, key, part);
        fake_lock_free(s, held);
        if (strcmp(ticket, "-") != 0)
            fake_line_up(s, key, ticket, place);
    }
    const struct fake_tomb *tomb = fake_find_tomb(s, key, op);
    if (tomb && tomb->released)
        code = 1;
    bool room = part[0] != 'r' || (fake_shares(s, key) <= 1 && !fake_server_find(s, key));
    if (frees && calls && room)
        fake_call_up(s, key);
    if (strcmp(tomb_ms, "0") != 0 && (code == 1 || !tomb))
        fake_add_tomb(s, key, op, atoll(tomb_ms), false)->released = code == 1;
    fake_add(r, code, NULL);
    fake_add(r, calls || !room ? 0 : fake_line(s, key)->n, NULL);
    free(what);
}

/* ticket next */
void fake_pass(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_line *line = fake_line(s, key);
    bool is_free = !fake_server_find(s, key);
    if (strcmp(a[0], "-") != 0)
        fake_line_remove(line, a[0], line->n);
    if (strchr(a[0], '/'))
        fake_end_turn(line, a[0]);
    if (is_free && strcmp(a[1], "call") == 0)
        fake_call_up(s, key);
    fake_add(r, is_free, NULL);
}

static void show(struct fake_server *s, const struct fake_lock *held, struct fake_reply *r)
{
    fake_add(r, fake_pttl_ms(s, held), NULL);
    fake_add(r, 0, held->op);
    fake_add(r, 0, held->owner);
    fake_add(r, held->token, NULL);
    fake_add(r, held->count, NULL);
    fake_add(r, held->seq, NULL);
    fake_add(r, 0, held->part);
}

void fake_peek(struct fake_server *s, int n_keys, char *const *keys, int n_args, char *const *args,
               struct fake_reply *r)
{
    int shown = 128 / n_keys > 16 ? 16 : 128 / n_keys > 1 ? 128 / n_keys : 1;
    (void)n_args;
    (void)args;
    for (int i = 0; i < n_keys; i++) {
        const struct fake_lock *alone = fake_server_find(s, keys[i]);
        int before = r->n, live = fake_shares(s, keys[i]);
        bool is_held = alone && !alone->foreign;
        if (is_held || live)
            fake_add(r, live + (alone != NULL), NULL);
        if (is_held)
            show(s, alone, r);
        for (int j = 0; j < live && r->n - before < 7 * shown; j++)
            show(s, fake_share(s, keys[i], j), r);
        r->nested = util_realloc(r->nested, (size_t)(r->n_nested + 1) * sizeof *r->nested);
        r->nested[r->n_nested++] = r->n - before;
    }
}
