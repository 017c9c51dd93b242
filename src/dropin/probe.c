/*
 * Supposes and runs. What a script may compare a key with is collected first and on the way: its
 * arguments, and the values and fields that it names in its calls.
 */
#include "dropin/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "dropin/cage.h"
#include "dropin/probe_private.h"

enum { OWNERS_MAX = 16, OWNER_BYTES = 1024, ANOTHER = -1, ALL_KEYS = -1 };
enum { LEFT_MS = 30000, SOON_MS = 1 };
#define NOW_US INT64_C(1700000000000000)

/* Somebody who may have a key: an argument, or what the script itself makes up. */
struct owner {
    int arg; /* 1 and up: ARGV[arg]; 0: made up */
    size_t len;
    char *text;
};

enum left { LEFT_SOME, LEFT_SOON, LEFT_FOR_EVER };

/* What stands under a key, or under all. */
struct supposed {
    int key;   /* or ALL_KEYS */
    char kind; /* - nothing, s a string, h a hash */
    int owner; /* or ANOTHER */
    int count; /* of a hash */
    enum left left;
};

struct outcome {
    struct buf does, reply;
    bool is_refused, is_error;
};

struct probe {
    struct cage *cage;
    const struct probe_script *script;
    void (*row)(void *arg, const struct probe_row *);
    void *arg;
    struct keys keys;
    struct probe_state before[KEYS_MAX];
    struct owner owners[OWNERS_MAX];
    int n_owners, n_refused;
    long steps_left; /* negative: the bound was reached */
    long run_steps;  /* most of one run; 0: CAGE_STEPS */
    bool is_bounded, is_cut;
};

/* ---- owners ---- */

static void add_owner(struct probe *p, int arg, const struct resp_arg *word)
{
    for (int i = 0; i < p->n_owners; i++) {
        if (p->owners[i].len == word->len && memcmp(p->owners[i].text, word->ptr, word->len) == 0)
            return;
    }
    if (p->n_owners == OWNERS_MAX || word->len > OWNER_BYTES)
        return;
    p->owners[p->n_owners++] =
        (struct owner){.arg = arg, .len = word->len, .text = util_memdup(word->ptr, word->len)};
}

/* Which word of a call is a value or a field: 0: none. */
static int owner_word(const struct resp_arg *argv, int argc)
{
    static const char *const seconds[] = {"SETEX", "PSETEX"};
    static const char *const firsts[] = {"SET", "SETNX", "GETSET", "DELIFEQ"};
    size_t len = argv[0].len;
    int word = len && (argv[0].ptr[0] | 0x20) == 'h' ? 2 : 0;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        if (strlen(firsts[i]) == len && strncasecmp(firsts[i], argv[0].ptr, len) == 0)
            word = 2;
    }
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        if (strlen(seconds[i]) == len && strncasecmp(seconds[i], argv[0].ptr, len) == 0)
            word = 3;
    }
    return word < argc ? word : 0;
}

static int on_probe_call(void *arg, const struct resp_arg *argv, int argc, struct store_reply *out,
                         char *why, size_t size)
{
    struct probe *p = arg;
    int word = owner_word(argv, argc);
    if (word)
        add_owner(p, 0, &argv[word]);
    return keys_call(&p->keys, argv, argc, out, why, size);
}

/* ---- supposing ---- */

static void suppose(struct probe *p, const char *command, int key, struct resp_arg a,
                    struct resp_arg b)
{
    struct resp_arg words[] = {{command, strlen(command)}, p->script->keys[key], a, b};
    keys_suppose(&p->keys, words, b.ptr ? 4 : 3, NULL);
}

static void suppose_key(struct probe *p, const struct supposed *s, int key)
{
    static const char another[] = "somebody else";
    static const struct resp_arg none = {NULL, 0};
    char number[16];
    struct resp_arg owner = {another, sizeof another - 1}, count = {number, 0};
    if (s->kind == '-')
        return;
    if (s->owner != ANOTHER)
        owner = (struct resp_arg){p->owners[s->owner].text, p->owners[s->owner].len};
    count.len = (size_t)snprintf(number, sizeof number, "%d", s->count);
    if (s->kind == 's')
        suppose(p, "SET", key, owner, none);
    else
        suppose(p, "HSET", key, owner, count);
    if (s->left == LEFT_FOR_EVER)
        return;
    count.len =
        (size_t)snprintf(number, sizeof number, "%d", s->left == LEFT_SOON ? SOON_MS : LEFT_MS);
    suppose(p, "PEXPIRE", key, count, none);
}

static void say_owner(struct buf *out, const struct probe *p, int owner)
{
    if (owner == ANOTHER)
        buf_append(out, "somebody else", 13);
    else if (p->owners[owner].arg)
        buf_printf(out, "ARGV[%d]", p->owners[owner].arg);
    else
        probe_say_bytes(out, p->owners[owner].text, p->owners[owner].len);
}

static void say_supposed(struct buf *out, const struct probe *p, const struct supposed *s)
{
    if (p->script->n_keys > 1 && s->key == ALL_KEYS)
        buf_append(out, "all keys ", 9);
    else if (p->script->n_keys > 1)
        buf_printf(out, "KEYS[%d] ", s->key + 1);
    if (s->kind == '-') {
        buf_append(out, "free", 4);
        return;
    }
    buf_append(out, s->kind == 's' ? "held by " : "hash, field ", s->kind == 's' ? 8 : 12);
    say_owner(out, p, s->owner);
    if (s->kind == 'h')
        buf_printf(out, " = %d", s->count);
    if (s->left == LEFT_FOR_EVER)
        buf_append(out, ", without a time", 16);
    else if (s->left == LEFT_SOON)
        buf_append(out, ", ends in 1 ms", 14);
}

/* ---- runs ---- */

static void begin_probe(struct probe *p, const struct supposed *s)
{
    keys_begin(&p->keys, p->script->keys, p->script->n_keys, NOW_US);
    for (int i = 0; i < p->script->n_keys; i++) {
        if (s->key == ALL_KEYS || s->key == i)
            suppose_key(p, s, i);
    }
}

static void add_refused_row(struct outcome *o, const char *why)
{
    o->is_refused = true;
    buf_printf(&o->does, "refused: the script %s", why);
}

/* Runs over what the keys hold now. */
static void run_supposed(struct probe *p, struct outcome *o)
{
    struct store_reply reply = {0};
    struct cage_job job = {.body = p->script->body,
                           .len = p->script->len,
                           .keys = p->script->keys,
                           .n_keys = p->script->n_keys,
                           .args = p->script->args,
                           .n_args = p->script->n_args,
                           .call = on_probe_call,
                           .arg = p,
                           .steps_max = p->run_steps};
    char why[256];
    for (int i = 0; i < p->script->n_keys; i++)
        probe_state_look(&p->before[i], &p->keys, i);
    if (cage_run(p->cage, &job, &reply) < 0) {
        add_refused_row(o, cage_refusal(p->cage));
    } else if (keys_end(&p->keys, why, sizeof why) < 0) {
        add_refused_row(o, why);
    } else {
        probe_say_done(&o->does, &p->keys, p->before);
        probe_say_reply(&o->reply, &reply);
        o->is_error = reply.nodes[0].kind == STORE_ERROR;
    }
    p->steps_left -= p->is_bounded ? cage_steps(p->cage) : 0;
    store_reply_fini(&reply);
}

static bool same(const struct buf *a, const struct buf *b)
{
    size_t len = buf_len(a);
    return len == buf_len(b) && (len == 0 || memcmp(buf_head(a), buf_head(b), len) == 0);
}

static void outcome_fini(struct outcome *o)
{
    buf_fini(&o->does);
    buf_fini(&o->reply);
}

static void tell_row(struct probe *p, struct buf *state, struct outcome *o)
{
    buf_append(state, "", 1);
    buf_append(&o->does, "", 1);
    buf_append(&o->reply, "", 1);
    struct probe_row row = {.state = buf_head(state),
                            .does = buf_head(&o->does),
                            .reply = buf_head(&o->reply),
                            .is_refused = o->is_refused,
                            .is_error = o->is_error};
    p->n_refused += o->is_refused;
    if (p->row)
        p->row(p->arg, &row);
    state->end--;
    o->does.end--;
    o->reply.end--;
}

/* Runs over this state and tells it, unless the same came of `like` (NULL: always tells). Adds to
 * `*o`, which is empty. */
static void try_state(struct probe *p, const struct supposed *s, const struct outcome *like,
                      struct outcome *o)
{
    struct buf state = {0};
    p->is_cut = p->is_bounded && p->steps_left <= 0;
    if (p->is_cut)
        return;
    begin_probe(p, s);
    run_supposed(p, o);
    bool is_known = like && same(&like->does, &o->does) && same(&like->reply, &o->reply);
    if (!is_known) {
        say_supposed(&state, p, s);
        tell_row(p, &state, o);
    }
    buf_fini(&state);
}

/* Tries a state again with little time left, and with none. */
static void try_times(struct probe *p, struct supposed s, const struct outcome *with_time)
{
    static const enum left others[] = {LEFT_FOR_EVER, LEFT_SOON};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct outcome o = {0};
        s.left = others[i];
        try_state(p, &s, with_time, &o);
        outcome_fini(&o);
    }
}

/* Tries a key held by somebody whom the script does not know, and by each owner that it may know.
 */
static void try_kind(struct probe *p, int key, char kind)
{
    struct supposed s = {.key = key, .kind = kind, .owner = ANOTHER, .count = 1};
    struct outcome another = {0};
    try_state(p, &s, NULL, &another);
    try_times(p, s, &another);
    for (int i = 0; i < p->n_owners; i++) { /* more may come meanwhile */
        struct outcome once = {0}, twice = {0};
        s.owner = i;
        s.count = 1;
        try_state(p, &s, &another, &once);
        if (!same(&another.does, &once.does) || !same(&another.reply, &once.reply))
            try_times(p, s, &once);
        s.count = 2;
        if (kind == 'h')
            try_state(p, &s, &once, &twice);
        outcome_fini(&once);
        outcome_fini(&twice);
    }
    outcome_fini(&another);
}

/* Tries the state that the first run has left behind. */
static void try_again(struct probe *p)
{
    struct buf state = {0};
    struct outcome o = {0};
    memset(p->keys.seen, 0, sizeof p->keys.seen);
    store_reply_clear(&p->keys.published);
    run_supposed(p, &o);
    buf_append(&state, "the same once more", 18);
    tell_row(p, &state, &o);
    outcome_fini(&o);
    buf_fini(&state);
}

static void try_all(struct probe *p)
{
    struct supposed nothing = {.key = ALL_KEYS, .kind = '-'};
    struct outcome o = {0};
    try_state(p, &nothing, NULL, &o);
    if (keys_wrote(&p->keys) && !o.is_refused)
        try_again(p);
    outcome_fini(&o);
    for (int key = p->script->n_keys > 1 ? ALL_KEYS : 0; key < p->script->n_keys; key++) {
        try_kind(p, key, 's');
        try_kind(p, key, 'h');
    }
}

static void tell_cut(struct probe *p)
{
    static const struct probe_row others = {
        .state = "others", .does = "not tried: the runs took too many steps", .reply = ""};
    if (p->is_cut && p->row)
        p->row(p->arg, &others);
}

static struct probe *probe_new(struct cage *cage, const struct probe_script *script)
{
    struct probe *p = util_alloc(sizeof *p);
    p->cage = cage;
    p->script = script;
    for (int i = 0; i < script->n_args; i++)
        add_owner(p, i + 1, &script->args[i]);
    return p;
}

static void probe_free(struct probe *p)
{
    for (int i = 0; i < p->n_owners; i++)
        free(p->owners[i].text);
    for (int i = 0; i < KEYS_MAX; i++)
        probe_state_fini(&p->before[i]);
    keys_fini(&p->keys);
    free(p);
}

int probe_run(struct cage *cage, const struct probe_script *script, long steps_max,
              void (*row)(void *arg, const struct probe_row *), void *arg,
              struct store_reply *error)
{
    if (cage_check(cage, script->body, script->len, error) < 0)
        return -1;
    struct probe *p = probe_new(cage, script);
    p->row = row;
    p->arg = arg;
    p->is_bounded = steps_max > 0;
    p->steps_left = steps_max;
    try_all(p);
    tell_cut(p);
    int n_refused = p->n_refused;
    probe_free(p);
    return n_refused;
}

/* ---- a state at a time ---- */

enum { WALK_STATES = 400, WALK_STEPS = 4 * CAGE_STEPS };

struct probe_walk {
    struct probe_script script;
    struct probe *probe;
    struct supposed next;
    int n_states;
    long steps;
    struct buf state, does; /* of the last row */
};

struct probe_walk *probe_walk_new(struct cage *cage, const struct probe_script *script)
{
    struct probe_walk *w = util_alloc(sizeof *w);
    w->script = *script;
    w->probe = probe_new(cage, &w->script);
    w->probe->run_steps = PROBE_WALK_STEPS;
    w->next = (struct supposed){.key = ALL_KEYS, .kind = '-'};
    return w;
}

void probe_walk_free(struct probe_walk *w)
{
    probe_free(w->probe);
    buf_fini(&w->state);
    buf_fini(&w->does);
    free(w);
}

/* After free: each key (or all), as a string and a hash, of each owner, by count and time. */
static void go_to_next(struct probe_walk *w)
{
    struct supposed *s = &w->next;
    if (s->kind == '-') {
        *s = (struct supposed){
            .key = w->script.n_keys > 1 ? ALL_KEYS : 0, .kind = 's', .owner = ANOTHER, .count = 1};
        return;
    }
    if (s->left < LEFT_FOR_EVER) {
        s->left++;
        return;
    }
    s->left = LEFT_SOME;
    if (s->kind == 'h' && s->count == 1) {
        s->count = 2;
        return;
    }
    s->count = 1;
    if (++s->owner < w->probe->n_owners)
        return;
    s->owner = ANOTHER;
    s->key += s->kind == 'h';
    s->kind = s->kind == 's' ? 'h' : 's';
}

enum probe_step probe_walk_step(struct probe_walk *w, struct probe_row *row)
{
    struct probe *p = w->probe;
    struct outcome o = {0};
    if (w->next.key >= w->script.n_keys || w->n_states++ == WALK_STATES || w->steps > WALK_STEPS)
        return PROBE_OVER;
    begin_probe(p, &w->next);
    run_supposed(p, &o);
    w->steps += cage_steps(p->cage);
    bool is_long = cage_steps(p->cage) >= PROBE_WALK_STEPS;
    enum probe_step step = is_long ? PROBE_OVER : o.is_refused ? PROBE_REFUSED : PROBE_SERVED;
    if (step == PROBE_REFUSED) {
        say_supposed(&w->state, p, &w->next);
        buf_append(&w->state, "", 1);
        buf_append(&o.does, "", 1);
        buf_append(&w->does, buf_head(&o.does), buf_len(&o.does));
        *row = (struct probe_row){.state = buf_head(&w->state),
                                  .does = buf_head(&w->does),
                                  .reply = "",
                                  .is_refused = true};
    }
    outcome_fini(&o);
    go_to_next(w);
    return step;
}
