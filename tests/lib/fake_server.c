/*
 * The scripts as a model. Each function below is src/lua/<its name>.lua line by line; where one of
 * them does something that looks odd, so does the script.
 *
 * A key is there as long as its time is not past its expiry, as in Redis.
 */
#include "fake_server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "sim_time.h"
#include "util.h"

enum fake_mutation fake_mutation;
const char *const fake_mutation_names[FAKE_MUTATIONS] = {
    [FAKE_AS_IT_SHOULD_BE] = "none",
    [FAKE_COMMIT_ANYWHERE] = "commit anywhere",
    [FAKE_COMMIT_LOWERS] = "commit lowers",
    [FAKE_NO_TOMBS] = "no tombstones",
    [FAKE_NO_DEADLINE] = "no deadline",
    [FAKE_NO_QUARANTINE] = "no quarantine",
    [FAKE_RELEASE_ANY] = "release frees any hold",
    [FAKE_RENEW_CREATES] = "renew creates",
    [FAKE_PLANT_ANYWHERE] = "plant overwrites",
    [FAKE_REPEAT_COUNTS] = "a repeat counts",
    [FAKE_SEQ_IGNORED] = "sequence of counts ignored",
    [FAKE_NO_FLOOR] = "no floor for tokens",
    [FAKE_SCRIPTS_SURVIVE] = "scripts survive a restart",
    [FAKE_TAKEOVER_KEEPS_TOKEN] = "take-over keeps the token",
    [FAKE_LATE_COPIES] = "late copies of older operations count",
    [FAKE_JUMPS_UNSEEN] = "clocks that jump go unseen",
    [FAKE_QUORUM_OF_CONNECTED] = "a majority of the connected",
    [FAKE_NO_COMMIT] = "no second round for the token",
    [FAKE_VALID_FROM_ANSWER] = "validity counted from the answer",
    [FAKE_TOLD_LATE] = "told when it is over",
    [FAKE_IDS_TWICE] = "operation ids used twice",
    [FAKE_NO_UNDO] = "nothing is undone",
};

/* ---- the server ---- */

static void new_run_id(struct fake_server *s)
{
    for (int i = 0; i < FAKE_RUN_ID_LEN; i++)
        s->run_id[i] = "0123456789abcdef"[sim_random(16)];
    s->run_id[FAKE_RUN_ID_LEN] = '\0';
}

void fake_server_init(struct fake_server *s, const char *name)
{
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    TAILQ_INIT(&s->locks);
    TAILQ_INIT(&s->tombs);
    TAILQ_INIT(&s->lines);
    TAILQ_INIT(&s->backlog);
    LIST_INIT(&s->conns);
    s->clock_us = INT64_C(1700000000000000) + sim_now_us();
    s->clock_at_us = sim_now_us();
    s->up = true;
    new_run_id(s);
}

static void free_lock(struct fake_server *s, struct fake_lock *l)
{
    TAILQ_REMOVE(&s->locks, l, link);
    free(l->key);
    free(l->owner);
    free(l->op);
    free(l);
}

static void free_tomb(struct fake_server *s, struct fake_tomb *t)
{
    TAILQ_REMOVE(&s->tombs, t, link);
    free(t->key);
    free(t);
}

static void clear_tickets(struct fake_line *line)
{
    for (int i = 0; i < line->n; i++)
        free(line->tickets[i]);
    line->n = 0;
}

static void free_line(struct fake_server *s, struct fake_line *line)
{
    TAILQ_REMOVE(&s->lines, line, link);
    clear_tickets(line);
    free(line->tickets);
    free(line->key);
    free(line->turn);
    free(line);
}

void fake_server_flush(struct fake_server *s)
{
    while (!TAILQ_EMPTY(&s->lines))
        free_line(s, TAILQ_FIRST(&s->lines));
    while (!TAILQ_EMPTY(&s->locks))
        free_lock(s, TAILQ_FIRST(&s->locks));
    while (!TAILQ_EMPTY(&s->tombs))
        free_tomb(s, TAILQ_FIRST(&s->tombs));
    memset(&s->mark, 0, sizeof s->mark);
}

void fake_server_fini(struct fake_server *s)
{
    assert(TAILQ_EMPTY(&s->backlog) && LIST_EMPTY(&s->conns));
    fake_server_flush(s);
}

void fake_server_rerun(struct fake_server *s, bool keep_data)
{
    if (!keep_data)
        fake_server_flush(s);
    s->restarts++;
    if (fake_mutation == FAKE_SCRIPTS_SURVIVE) {
        memcpy(s->mark.run_id, s->run_id, sizeof s->mark.run_id);
        s->mark.active = true;
        return;
    }
    new_run_id(s);
}

static int64_t time_us(const struct fake_server *s)
{
    int64_t passed_us = sim_now_us() - s->clock_at_us;
    return s->clock_us + passed_us + passed_us / 1000 * s->drift_ppm / 1000;
}

int64_t fake_server_time_ms(const struct fake_server *s)
{
    return time_us(s) / 1000;
}

void fake_server_jump(struct fake_server *s, int64_t ms)
{
    s->clock_us += ms * 1000;
}

void fake_server_set_drift(struct fake_server *s, int32_t ppm)
{
    s->clock_us = time_us(s);
    s->clock_at_us = sim_now_us();
    s->drift_ppm = ppm;
}

int64_t fake_server_high(const struct fake_server *s)
{
    int64_t high = s->mark.base;
    for (int i = 0; i < ITEM_BUCKETS; i++)
        high = s->mark.counters[i] > high ? s->mark.counters[i] : high;
    return high;
}

/* ---- keys ---- */

static void expire(struct fake_server *s)
{
    int64_t now_ms = fake_server_time_ms(s);
    struct fake_lock *l, *next;
    struct fake_tomb *t, *next_tomb;
    for (l = TAILQ_FIRST(&s->locks); l; l = next) {
        next = TAILQ_NEXT(l, link);
        if (now_ms > l->expires_ms)
            free_lock(s, l);
    }
    for (t = TAILQ_FIRST(&s->tombs); t; t = next_tomb) {
        next_tomb = TAILQ_NEXT(t, link);
        if (now_ms > t->expires_ms)
            free_tomb(s, t);
    }
}

struct fake_lock *fake_server_find(struct fake_server *s, const char *key)
{
    struct fake_lock *l;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link)
    {
        if (strcmp(l->key, key) == 0)
            return l;
    }
    return NULL;
}

int fake_server_count_locks(struct fake_server *s)
{
    struct fake_lock *l;
    int n = 0;
    expire(s);
    TAILQ_FOREACH(l, &s->locks, link)
    n++;
    return n;
}

static struct fake_lock *new_lock(struct fake_server *s, const char *key)
{
    struct fake_lock *l = util_alloc(sizeof *l);
    l->key = util_strdup(key);
    l->owner = util_strdup("");
    l->op = util_strdup("");
    l->expires_ms = INT64_MAX;
    TAILQ_INSERT_TAIL(&s->locks, l, link);
    return l;
}

static void set(char **field, const char *text)
{
    free(*field);
    *field = util_strdup(text);
}

void fake_server_set_foreign(struct fake_server *s, const char *key)
{
    struct fake_lock *l = fake_server_find(s, key);
    if (!l)
        l = new_lock(s, key);
    l->foreign = true;
    l->expires_ms = INT64_MAX;
}

static char *tomb_key(const char *key, const char *op)
{
    char *text = util_alloc(strlen(key) + strlen(op) + 7);
    sprintf(text, "%s:gone:%s", key, op);
    return text;
}

static struct fake_tomb *find_tomb(struct fake_server *s, const char *key, const char *op)
{
    char *text = tomb_key(key, op);
    struct fake_tomb *t;
    expire(s);
    TAILQ_FOREACH(t, &s->tombs, link)
    {
        if (strcmp(t->key, text) == 0)
            break;
    }
    free(text);
    return t;
}

bool fake_server_is_gone(struct fake_server *s, const char *key, const char *op)
{
    return find_tomb(s, key, op) != NULL;
}

static struct fake_tomb *add_tomb(struct fake_server *s, const char *key, const char *op,
                                  int64_t ms, bool moved)
{
    static struct fake_tomb none;
    struct fake_tomb *t = find_tomb(s, key, op);
    if (fake_mutation == FAKE_NO_TOMBS)
        return &none;
    if (!t) {
        t = util_alloc(sizeof *t);
        t->key = tomb_key(key, op);
        TAILQ_INSERT_TAIL(&s->tombs, t, link);
    }
    t->moved = moved;
    t->released = false;
    t->expires_ms = fake_server_time_ms(s) + ms;
    return t;
}

/* ---- lines ---- */

enum { LINE_MS = 60000, TURN_MS = 500 };

static struct fake_line *line_of(struct fake_server *s, const char *key)
{
    int64_t now_ms = fake_server_time_ms(s);
    struct fake_line *line;
    TAILQ_FOREACH(line, &s->lines, link)
    {
        if (strcmp(line->key, key) == 0)
            break;
    }
    if (!line) {
        line = util_alloc(sizeof *line);
        line->key = util_strdup(key);
        TAILQ_INSERT_TAIL(&s->lines, line, link);
    }
    if (now_ms > line->expires_ms)
        clear_tickets(line);
    if (now_ms > line->turn_expires_ms) {
        free(line->turn);
        line->turn = NULL;
    }
    return line;
}

const char *fake_server_line(struct fake_server *s, const char *key)
{
    static char text[512];
    const struct fake_line *line = line_of(s, key);
    text[0] = '\0';
    for (int i = 0; i < line->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 line->tickets[i]);
    if (line->turn)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%sturn:%s", line->n ? " " : "",
                 line->turn);
    return text;
}

static void take_out(struct fake_line *line, int i)
{
    free(line->tickets[i]);
    line->n--;
    memmove(line->tickets + i, line->tickets + i + 1,
            (size_t)(line->n - i) * sizeof *line->tickets);
}

/* LREM: how many were taken out. */
static int remove_tickets(struct fake_line *line, const char *ticket, int at_most)
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

static void insert_ticket(struct fake_server *s, const char *key, const char *ticket, bool first)
{
    struct fake_line *line = line_of(s, key);
    if (line->n == line->cap) {
        line->cap = line->cap ? 2 * line->cap : 4;
        line->tickets = util_realloc(line->tickets, (size_t)line->cap * sizeof *line->tickets);
    }
    if (first)
        memmove(line->tickets + 1, line->tickets, (size_t)line->n * sizeof *line->tickets);
    line->tickets[first ? 0 : line->n] = util_strdup(ticket);
    line->n++;
    if (line->n == 1)
        line->expires_ms = INT64_MAX; /* a new key has no time to live until it is given one */
}

static void keep_line(struct fake_server *s, const char *key)
{
    struct fake_line *line = line_of(s, key);
    if (line->n)
        line->expires_ms = fake_server_time_ms(s) + LINE_MS;
}

static void call_up(struct fake_server *s, const char *key)
{
    struct fake_line *line = line_of(s, key);
    while (line->n) {
        char *ticket = util_strdup(line->tickets[0]);
        char channel[96], text[700];
        size_t id_len = strcspn(ticket, "/");
        bool is_numbered = ticket[id_len] == '/';
        take_out(line, 0);
        snprintf(channel, sizeof channel, "holdfast:wake:%.*s", (int)id_len, ticket);
        snprintf(text, sizeof text, "%s %s", ticket, key);
        if (!s->publish || s->publish(s, channel, text) == 0) {
            free(ticket);
            continue;
        }
        if (is_numbered) {
            free(line->turn);
            line->turn = util_strdup(ticket);
            line->turn_expires_ms = fake_server_time_ms(s) + TURN_MS;
        }
        free(ticket);
        return;
    }
}

static bool is_turn(struct fake_server *s, const char *key, const char *ticket)
{
    struct fake_line *line = line_of(s, key);
    if (!line->turn) {
        if (!line->n || strcmp(line->tickets[0], ticket) == 0)
            return true;
        call_up(s, key);
    }
    return line->turn && strcmp(line->turn, ticket) == 0;
}

static int64_t pttl_ms(struct fake_server *s, const struct fake_lock *l)
{
    if (!l)
        return -2;
    return l->expires_ms == INT64_MAX ? -1 : l->expires_ms - fake_server_time_ms(s);
}

/* ---- the scripts ---- */

static void add(struct fake_reply *r, int64_t integer, const char *text)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 8;
        r->values = util_realloc(r->values, (size_t)r->cap * sizeof *r->values);
    }
    r->values[r->n++] = (struct fake_value){text != NULL, integer, text ? util_strdup(text) : NULL};
}

/* The fields of HMGET: all absent when there is no lock, or no lock of ours. */
static bool is_op(const struct fake_lock *l, const char *op)
{
    return l && !l->foreign && strcmp(l->op, op) == 0;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t next_token(struct fake_server *s, const char *bucket, const char *least)
{
    int64_t *counter = &s->mark.counters[atoi(bucket)];
    if (fake_mutation == FAKE_NO_FLOOR)
        return *counter = *counter + 1;
    return *counter = max(max(*counter + 1, s->mark.base + 1), atoll(least));
}

static void raise_counter(struct fake_server *s, const char *bucket, int64_t token)
{
    int64_t *counter = &s->mark.counters[atoi(bucket)];
    *counter = max(*counter, token);
}

static void put(struct fake_server *s, const char *key, const char *owner, const char *op,
                int64_t token, int64_t count, int64_t seq, const char *lease, const char *maxhold)
{
    struct fake_lock *l = fake_server_find(s, key);
    if (!l)
        l = new_lock(s, key);
    set(&l->owner, owner);
    set(&l->op, op);
    l->token = token;
    l->count = count;
    l->seq = seq;
    l->expires_ms = fake_server_time_ms(s) + atoll(lease);
    l->taken = false;
    l->end_ms = atoll(maxhold) ? fake_server_time_ms(s) + atoll(maxhold) : 0;
}

/* As older.lua. */
enum age { UNRELATED, OLDER, NEWER };
static enum age age(const char *op, const char *held)
{
    const char *number = strrchr(op, '.'), *its = strrchr(held, '.');
    if (!number || !its || number - op != its - held || strncmp(op, held, (size_t)(number - op)))
        return UNRELATED;
    size_t len = strlen(number), its_len = strlen(its);
    return len < its_len || (len == its_len && strcmp(number, its) < 0) ? OLDER : NEWER;
}

static void line_up(struct fake_server *s, const char *key, const char *ticket, const char *place)
{
    if (strcmp(place, "front") == 0 || strcmp(place, "tail") == 0)
        insert_ticket(s, key, ticket, strcmp(place, "front") == 0);
    keep_line(s, key);
}

/* What becomes of the ticket in the line; returns how many stand there then. */
static int64_t line_after(struct fake_server *s, const char *key, char *const *a, int64_t code,
                          int64_t length)
{
    const char *ticket = a[7], *place = a[8];
    if (strcmp(ticket, "-") == 0)
        return length;
    if (code == 1 && length > 0)
        return length -
               remove_tickets(line_of(s, key), ticket, strchr(ticket, '/') ? 1 : (int)length);
    if (code == 0)
        line_up(s, key, ticket, place);
    return length;
}

/* op prev tomb owner lease floor bucket ticket place judge maxhold */
static void acquire(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    const char *op = a[0], *prev = a[1], *owner = a[3], *ticket = a[7], *judge = a[9];
    bool judges = strcmp(judge, "-") == 0 || strcmp(judge, s->run_id) == 0;
    const struct fake_lock *held = fake_server_find(s, key);
    bool counts = strcmp(ticket, "-") != 0 || strcmp(prev, "-") != 0;
    int64_t length = counts ? line_of(s, key)->n : 0;
    int64_t code, value = 0;
    bool is_other = held && !held->foreign && !is_op(held, op) && strcmp(held->op, prev) != 0;
    enum age related = is_other && strcmp(held->owner, owner) == 0 ? age(op, held->op) : UNRELATED;
    if (fake_mutation == FAKE_LATE_COPIES)
        related = UNRELATED;
    if (held && held->foreign) {
        code = -2;
    } else if (is_op(held, op) && fake_mutation != FAKE_REPEAT_COUNTS) {
        code = 1;
        value = held->token;
    } else if (related == OLDER) {
        code = -1;
    } else if (is_other && (related != NEWER || held->taken)) {
        code = strcmp(held->owner, owner) == 0 ? 2 : 0;
        value = pttl_ms(s, held);
    } else if (fake_server_is_gone(s, key, op)) {
        code = -1;
    } else if (strchr(ticket, '/') && judges && !is_turn(s, key, ticket)) {
        code = 0;
    } else {
        if (is_op(held, prev) && strcmp(a[2], "0") != 0)
            add_tomb(s, key, prev, atoll(a[2]), false);
        code = 1;
        value = next_token(s, a[6], a[5]);
        put(s, key, owner, op, value, is_op(held, op) ? held->count + 1 : 1, atoll(a[5]), a[4],
            a[10]);
    }
    add(r, code, NULL);
    add(r, value, NULL);
    add(r, line_after(s, key, a, code, length), NULL);
}

/* op token bucket */
static void commit(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    int64_t token = atoll(a[1]);
    struct fake_lock *held = fake_server_find(s, key);
    if (!is_op(held, a[0]) && fake_mutation == FAKE_COMMIT_ANYWHERE) {
        raise_counter(s, a[2], token);
        add(r, 1, NULL);
        add(r, token, NULL);
        return;
    }
    if (!is_op(held, a[0])) {
        add(r, 0, NULL);
        add(r, 0, NULL);
        return;
    }
    bool larger = held->token > token && fake_mutation != FAKE_COMMIT_LOWERS;
    if (!larger)
        held->token = token;
    raise_counter(s, a[2], held->token);
    add(r, larger ? 2 : 1, NULL);
    add(r, held->token, NULL);
}

/* op tomb owner floor bucket mine */
static void takeover(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_lock *held = fake_server_find(s, key);
    bool is_his = held && !held->foreign && strcmp(held->owner, a[2]) == 0;
    enum age related =
        is_his && fake_mutation != FAKE_LATE_COPIES ? age(a[0], held->op) : UNRELATED;
    int64_t code = 0, value = 0;
    if (is_op(held, a[0])) {
        code = 1;
        value = held->token;
    } else if (!is_his) {
        value = pttl_ms(s, held);
    } else if (related == OLDER || fake_server_is_gone(s, key, a[0])) {
        code = -1;
    } else {
        code = 1;
        value =
            fake_mutation == FAKE_TAKEOVER_KEEPS_TOKEN ? held->token : next_token(s, a[4], a[3]);
        add_tomb(s, key, held->op, max(atoll(a[1]), pttl_ms(s, held)), true);
        if (related == NEWER && strcmp(a[5], "none") == 0 && !held->taken)
            held->count = held->seq = 0;
        else
            held->taken = true;
        set(&held->op, a[0]);
        held->token = value;
    }
    int64_t now_ms = fake_server_time_ms(s);
    add(r, code, NULL);
    add(r, value, NULL);
    add(r, code == 1 ? held->count : 0, NULL);
    add(r, code == 1 ? pttl_ms(s, held) : 0, NULL);
    add(r, code == 1 ? held->seq : 0, NULL);
    add(r, code == 1 && held->end_ms ? max(1, held->end_ms - now_ms) : 0, NULL);
}

/* op lease count seq */
static void renew(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_lock *held = fake_server_find(s, key);
    if (!held && fake_mutation == FAKE_RENEW_CREATES && strcmp(a[1], "0") != 0) {
        put(s, key, "?", a[0], 1, atoll(a[2]), atoll(a[3]), a[1], "0");
        add(r, 1, NULL);
        return;
    }
    if (!is_op(held, a[0])) {
        const struct fake_tomb *t = held ? find_tomb(s, key, a[0]) : NULL;
        add(r, !held || held->foreign ? 0 : t && t->moved ? -2 : -1, NULL);
        return;
    }
    if (strcmp(a[1], "0") != 0) {
        int64_t expires_ms = fake_server_time_ms(s) + atoll(a[1]);
        if (held->seq < atoll(a[3]) || expires_ms > held->expires_ms)
            held->expires_ms = expires_ms;
    }
    if (held->seq < atoll(a[3]) || fake_mutation == FAKE_SEQ_IGNORED) {
        held->count = atoll(a[2]);
        held->seq = atoll(a[3]);
    }
    add(r, 1, NULL);
}

/* op owner token count seq lease bucket maxhold */
static void plant(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    const struct fake_lock *held = fake_server_find(s, key);
    bool may = !held || (fake_mutation == FAKE_PLANT_ANYWHERE && !held->foreign);
    if (is_op(held, a[0])) {
        add(r, 1, NULL);
    } else if (may && !fake_server_is_gone(s, key, a[0])) {
        put(s, key, a[1], a[0], atoll(a[2]), atoll(a[3]), atoll(a[4]), a[5], a[7]);
        raise_counter(s, a[6], atoll(a[2]));
        add(r, 1, NULL);
    } else {
        add(r, 0, NULL);
    }
}

/* op tomb ticket place next */
static void release(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_lock *held = fake_server_find(s, key);
    bool any = fake_mutation == FAKE_RELEASE_ANY && held && !held->foreign;
    int64_t code = held ? -1 : 0;
    if (is_op(held, a[0]) || any) {
        code = 1;
        free_lock(s, held);
        if (strcmp(a[2], "-") != 0)
            line_up(s, key, a[2], a[3]);
        if (strcmp(a[4], "call") == 0)
            call_up(s, key);
    }
    const struct fake_tomb *tomb = find_tomb(s, key, a[0]);
    if (code != 1 && tomb && tomb->released)
        code = 1;
    if (strcmp(a[1], "0") != 0 && (code == 1 || !tomb))
        add_tomb(s, key, a[0], atoll(a[1]), false)->released = code == 1;
    add(r, code, NULL);
    add(r, strcmp(a[4], "call") == 0 ? 0 : line_of(s, key)->n, NULL);
}

/* ticket */
static void line(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_line *l = line_of(s, key);
    remove_tickets(l, a[0], l->n);
    insert_ticket(s, key, a[0], false);
    keep_line(s, key);
    add(r, l->n, NULL);
}

/* ticket next */
static void pass(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    struct fake_line *l = line_of(s, key);
    bool is_free = !fake_server_find(s, key);
    if (strcmp(a[0], "-") != 0)
        remove_tickets(l, a[0], l->n);
    if (is_free && strcmp(a[1], "call") == 0)
        call_up(s, key);
    add(r, is_free, NULL);
}

static void peek(struct fake_server *s, const char *key, char *const *a, struct fake_reply *r)
{
    const struct fake_lock *held = fake_server_find(s, key);
    int before = r->n;
    (void)a;
    if (held && !held->foreign) {
        add(r, pttl_ms(s, held), NULL);
        add(r, 0, held->op);
        add(r, 0, held->owner);
        add(r, held->token, NULL);
        add(r, held->count, NULL);
    }
    r->nested = util_realloc(r->nested, (size_t)(r->n_nested + 1) * sizeof *r->nested);
    r->nested[r->n_nested++] = r->n - before;
}

/* run_id quarantine settings */
static void join(struct fake_server *s, char *const *a, struct fake_reply *r)
{
    int64_t quarantine_ms = fake_mutation == FAKE_NO_QUARANTINE ? 0 : atoll(a[1]);
    if (strcmp(s->mark.run_id, a[0]) != 0) {
        snprintf(s->mark.run_id, sizeof s->mark.run_id, "%s", a[0]);
        snprintf(s->mark.settings, sizeof s->mark.settings, "%s", a[2]);
        s->mark.active = quarantine_ms <= 0;
        s->mark.until_ms = r->time_ms + quarantine_ms;
    }
    add(r, 0, s->mark.active ? "active" : "quarantine");
    add(r, s->mark.active ? 0 : max(0, s->mark.until_ms - r->time_ms), NULL);
    add(r, 0, s->mark.settings);
    add(r, fake_server_high(s), NULL);
}

/* run_id quarantine */
static void suspend(struct fake_server *s, char *const *a, struct fake_reply *r)
{
    if (strcmp(s->mark.run_id, a[0]) != 0) {
        strcpy(r->error, "STRANGER this server has lost its data");
        return;
    }
    int64_t till_ms = r->time_ms + atoll(a[1]);
    s->mark.until_ms = s->mark.active ? till_ms : max(till_ms, s->mark.until_ms);
    s->mark.active = false;
    add(r, 0, "quarantine");
    add(r, s->mark.until_ms - r->time_ms, NULL);
}

/* run_id base force */
static void activate(struct fake_server *s, char *const *a, struct fake_reply *r)
{
    if (strcmp(s->mark.run_id, a[0]) != 0) {
        strcpy(r->error, "STRANGER this server has lost its data");
        return;
    }
    int64_t left_ms = 0;
    if (!s->mark.active) {
        left_ms = strcmp(a[2], "1") == 0 ? 0 : max(0, s->mark.until_ms - r->time_ms);
        s->mark.active = left_ms == 0;
        if (s->mark.active && fake_mutation != FAKE_NO_FLOOR)
            s->mark.base = max(s->mark.base, atoll(a[1]));
    }
    add(r, 0, s->mark.active ? "active" : "quarantine");
    add(r, left_ms, NULL);
}

/* ---- EVALSHA ---- */

enum { HEAD = 2 }; /* deadline, call */

static const struct {
    void (*item)(struct fake_server *, const char *key, char *const *args, struct fake_reply *);
    bool knows_run, votes; /* its text has the run id in it; refused in quarantine */
} scripts[SCRIPT_COUNT] = {
    [SCRIPT_ACQUIRE] = {acquire, true, true},   [SCRIPT_COMMIT] = {commit, true, true},
    [SCRIPT_TAKEOVER] = {takeover, true, true}, [SCRIPT_RENEW] = {renew, true, true},
    [SCRIPT_PLANT] = {plant, true, false},      [SCRIPT_RELEASE] = {release, false, false},
    [SCRIPT_LINE] = {line, false, false},       [SCRIPT_PASS] = {pass, false, false},
    [SCRIPT_PEEK] = {peek, false, false},
};

static const char *refusal(const struct fake_server *s, enum script script, const char *run_id,
                           const char *deadline, int64_t now_ms)
{
    if (script_get(script)->deadline && deadline[0] && now_ms > atoll(deadline) &&
        fake_mutation != FAKE_NO_DEADLINE)
        return "LATE the request came after its deadline";
    if (scripts[script].knows_run && strcmp(s->mark.run_id, run_id) != 0)
        return "STRANGER this server has lost its data";
    if (scripts[script].votes && !s->mark.active)
        return "QUARANTINE this server may not vote yet";
    return NULL;
}

static void trace(const struct fake_server *s, enum script script, int n_keys, char *const *keys,
                  int n_args, char *const *args, const struct fake_reply *r)
{
    int width = script_get(script)->args;
    for (int i = 0; i < n_keys; i++) {
        char text[512] = "";
        for (int j = HEAD + i * width; j < HEAD + (i + 1) * width && j < n_args; j++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %s", args[j]);
        int at = i * script_get(script)->width;
        long long code = !r->error[0] && at < r->n ? (long long)r->values[at].integer : -99;
        log_trace(s->name, "%s %s%s = %lld %s", script_get(script)->name, keys[i], text, code,
                  r->error);
    }
}

void fake_server_eval(struct fake_server *s, enum script script, const char *run_id, int n_keys,
                      char *const *keys, int n_args, char *const *args, struct fake_reply *r)
{
    memset(r, 0, sizeof *r);
    r->time_ms = fake_server_time_ms(s);
    s->evals++;
    if (strcmp(s->run_id, run_id) != 0) {
        strcpy(r->error, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (s->refuses && script < SCRIPT_JOIN) {
        snprintf(r->error, sizeof r->error, "%s", s->refuses);
        return;
    }
    if (script == SCRIPT_JOIN) {
        join(s, args, r);
        return;
    }
    if (script == SCRIPT_SUSPEND) {
        suspend(s, args, r);
        return;
    }
    if (script == SCRIPT_ACTIVATE) {
        activate(s, args, r);
        return;
    }
    const char *no = refusal(s, script, run_id, n_args ? args[0] : "", r->time_ms);
    if (no) {
        snprintf(r->error, sizeof r->error, "%s", no);
        if (log_enabled(LOG_LEVEL_TRACE))
            trace(s, script, n_keys, keys, n_args, args, r);
        return;
    }
    int width = script_get(script)->args;
    assert(n_args == HEAD + n_keys * width);
    r->call = atoll(args[1]);
    for (int i = 0; i < n_keys; i++)
        scripts[script].item(s, keys[i], args + HEAD + i * width, r);
    if (log_enabled(LOG_LEVEL_TRACE))
        trace(s, script, n_keys, keys, n_args, args, r);
}

void fake_reply_fini(struct fake_reply *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->values[i].text);
    free(r->values);
    free(r->nested);
}
