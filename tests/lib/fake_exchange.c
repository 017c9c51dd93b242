#include "fake_exchange.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lock/broker.h"

struct stand {
    struct stand *next;
    char *name;
    struct truth truth;
};

struct asked {
    struct asked *next;
    struct broker *broker;
    struct exchange_item *items;
    int n;
    exchange_fn on_end;
    void *arg;
};

int64_t fake_margin_ms;
static struct stand *stands;
static struct asked *waiting;
static int n_asked, n_ops;

/* ---- truths ---- */

static struct truth *stand_of(const char *name)
{
    struct stand *s = stands;
    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    if (!s) {
        s = util_alloc(sizeof *s);
        s->name = util_strdup(name);
        s->truth.kind = TRUTH_FREE;
        s->next = stands;
        stands = s;
    }
    return &s->truth;
}

static void set_free(struct truth *t)
{
    truth_fini(t);
    *t = (struct truth){.kind = TRUTH_FREE};
}

const struct truth *fake_truth(const char *name, int64_t now_ms)
{
    struct truth *t = stand_of(name);
    if (t->kind != TRUTH_FREE && t->expires_ms <= now_ms)
        set_free(t);
    return t;
}

void fake_put(const char *name, enum truth_kind kind, const char *text, int64_t expires_ms)
{
    struct truth *t = stand_of(name);
    set_free(t);
    t->kind = (uint8_t)kind;
    t->expires_ms = expires_ms;
    snprintf(t->op, sizeof t->op, "other.%d", ++n_ops);
    truth_set_text(t, text, strlen(text));
}

void fake_end(const char *name)
{
    set_free(stand_of(name));
}

void fake_exchange_reset(void)
{
    assert(!waiting);
    while (stands) {
        struct stand *s = stands;
        stands = s->next;
        truth_fini(&s->truth);
        free(s->name);
        free(s);
    }
    n_asked = 0;
    fake_margin_ms = 0;
}

/* ---- exchanges ---- */

void exchange_start(struct broker *b, struct exchange_item *items, int n, exchange_fn on_end,
                    void *arg, int64_t now_ms)
{
    struct asked *a = util_alloc(sizeof *a), **last = &waiting;
    (void)now_ms;
    assert(b->phase != BROKER_IDLE && n > 0 && n <= DROPIN_KEYS_MAX);
    *a = (struct asked){.broker = b, .items = items, .n = n, .on_end = on_end, .arg = arg};
    for (int i = 0; i < n; i++) {
        const struct exchange_item *item = &items[i];
        assert(item->guess->kind == TRUTH_FREE || item->guess->kind == TRUTH_DROPIN ||
               (item->guess->kind == TRUTH_NATIVE && item->what == EXCHANGE_LOOK));
        assert(item->what != EXCHANGE_NEW || (item->len > 0 && item->lease_ms > 0));
        work_ref(item->lock);
    }
    while (*last)
        last = &(*last)->next;
    *last = a;
    n_asked++;
}

void exchange_doubt(struct broker *b, const char *op, size_t len)
{
    (void)b, (void)op, (void)len;
}

void exchange_close(struct broker *b)
{
    (void)b;
}

int fake_waiting(void)
{
    int n = 0;
    for (const struct asked *a = waiting; a; a = a->next)
        n++;
    return n;
}

int fake_asked(void)
{
    return n_asked;
}

const struct exchange_item *fake_item(int i)
{
    assert(waiting && i < waiting->n);
    return &waiting->items[i];
}

static struct asked *take(int n)
{
    struct asked **p = &waiting;
    while (n-- > 0)
        p = &(*p)->next;
    struct asked *a = *p;
    *p = a->next;
    return a;
}

static bool is_met(const struct asked *a, int64_t now_ms)
{
    for (int i = 0; i < a->n; i++) {
        const struct truth *t = fake_truth(a->items[i].lock->name, now_ms);
        const struct truth *guess = a->items[i].guess;
        if (t->kind != guess->kind || strcmp(t->op, guess->op) != 0)
            return false;
    }
    return true;
}

static void do_item(struct broker *b, const struct exchange_item *item, int64_t now_ms)
{
    struct truth *t = stand_of(item->lock->name);
    if (item->what == EXCHANGE_LOOK)
        return;
    set_free(t);
    if (item->what == EXCHANGE_END)
        return;
    t->kind = TRUTH_DROPIN;
    t->expires_ms = now_ms + item->lease_ms;
    broker_op_text(b, ++b->last_op, t->op);
    truth_set_text(t, item->text, item->len);
}

static void end(struct asked *a, enum exchange_end how, const char *reason, int64_t now_ms)
{
    struct broker *b = a->broker;
    struct lock *locks[DROPIN_KEYS_MAX];
    int n = a->n;
    broker_begin(b, now_ms);
    for (int i = 0; i < n; i++)
        locks[i] = a->items[i].lock;
    a->on_end(a->items, n, how, reason, a->arg, now_ms);
    for (int i = 0; i < n; i++)
        work_unref(&b->work, locks[i]);
    broker_end(b, now_ms);
    free(a);
}

static void say_truths(struct asked *a, int64_t now_ms)
{
    for (int i = 0; i < a->n; i++) {
        truth_copy(&a->items[i].truth, fake_truth(a->items[i].lock->name, now_ms));
        a->items[i].truth.expires_ms -= fake_margin_ms;
    }
}

void fake_judge(int n, int64_t now_ms)
{
    struct asked *a = take(n);
    bool met = is_met(a, now_ms);
    for (int i = 0; met && i < a->n; i++)
        do_item(a->broker, &a->items[i], now_ms);
    say_truths(a, now_ms);
    end(a, met ? EXCHANGE_CONFIRMED : EXCHANGE_REFUSED, NULL, now_ms);
}

void fake_judge_all(int64_t now_ms)
{
    while (waiting)
        fake_judge(0, now_ms);
}

void fake_fail(bool done, int64_t now_ms)
{
    struct asked *a = take(0);
    for (int i = 0; done && i < a->n; i++)
        do_item(a->broker, &a->items[i], now_ms);
    end(a, EXCHANGE_FAILED, "NOQUORUM only 1 of 3 masters answered", now_ms);
}

void fake_refuse(enum truth_kind kind, int64_t now_ms)
{
    struct asked *a = take(0);
    say_truths(a, now_ms);
    set_free(&a->items[0].truth);
    a->items[0].truth.kind = (uint8_t)kind;
    end(a, EXCHANGE_REFUSED, NULL, now_ms);
}
