/*
 * What a claim says to the masters: the arguments of acquire.lua, takeover.lua and commit.lua, in
 * the order in which those scripts read them.
 *
 * It looks at the claim and changes nothing; it does not know in which round the claim is.
 */
#include <string.h>

#include "base/util.h"
#include "lock/broker_state.h"
#include "lock/claim_private.h"
#include "redis/args.h"

static const char *const kind_words[LOCK_KINDS] = {"x", "s", "n"};

static struct args *begin_claim_args(const struct claim *c)
{
    return args_begin(c->lock->name, c->lock->name_len);
}

static void add_op(const struct claim *c, struct args *it)
{
    char op[BROKER_OP_MAX + 1];
    broker_op_text(c->broker, c->op, op);
    args_str(it, op);
}

static void add_token_counter(const struct claim *c, struct args *it)
{
    char counter[TOKEN_COUNTER_MAX + 1];
    rounds_counter(&c->broker->rounds, c->lock->name, c->lock->name_len, counter);
    args_str(it, counter);
}

/* The digits of a number, made once where they are needed several times. */
struct digits {
    char text[20];
    size_t len;
};

static struct digits digits_of(int64_t n)
{
    struct digits d;
    d.len = (size_t)(util_put_digits(d.text, (uint64_t)n) - d.text);
    return d;
}

static char *put(char *to, const struct digits *d)
{
    memcpy(to, d->text, d->len);
    return to + d->len;
}

/* A hold as it is to stand on the masters (lua/hold.lua). */
static void add_hold(const struct claim *c, struct args *it, const struct digits *lease)
{
    const struct digits floor = digits_of(it->floor);
    char op[BROKER_OP_MAX + 1], text[sizeof op + LOCK_OWNER_MAX + 160], *p = text;
    broker_op_text(c->broker, c->op, op);
    p = stpcpy(stpcpy(p, "op="), op);
    p = put(stpcpy(p, " token="), &floor);
    p = put(stpcpy(p, " count=1 seq="), &floor);
    p = put(stpcpy(p, " lease="), lease);
    p = stpcpy(p, " end=0 taken=0 owner=");
    memcpy(p, c->owner->text, c->owner->len); /* any bytes */
    args_text(it, text, (size_t)(p - text) + c->owner->len);
}

/* No late copy of what took a hold that is handed over can create anything (lua/call.lua); but of a
 * permit it must be known that it was released, and not lost. */
static int64_t tomb_ms(const struct claim *c)
{
    return c->prev_op && c->prev_part.kind == LOCK_LIMIT ? broker_tomb_ms(c->broker) : 0;
}

static char *put_mode(const struct claim *c, char *p)
{
    if (c->part.kind != LOCK_LIMIT)
        return stpcpy(p, kind_words[c->part.kind]);
    p = util_put_digits(p, c->part.limit);
    *p++ = ':';
    return util_put_digits(p, c->part.slot);
}

static char *put_group(const struct claim *c, char *p)
{
    if (!c->group)
        return stpcpy(p, "-");
    p = util_put_digits(stpcpy(stpcpy(p, c->broker->id), "."), c->group);
    *p++ = '/';
    return util_put_digits(p, (uint64_t)c->group_size);
}

/* The wish of acquire.lua: how long; nearly always there is nothing else to say. */
static void add_wish(const struct claim *c, struct args *it, const struct digits *lease,
                     int64_t now_ms)
{
    char prev[BROKER_OP_MAX + 1] = "-", *p;
    struct tickets_words line;
    if (c->part.kind == LOCK_EXCLUSIVE && !c->prev_op && !c->place.where && !c->maxhold_ms &&
        !c->group) {
        args_text(it, lease->text, lease->len);
        return;
    }
    if (c->prev_op)
        broker_op_text(c->broker, c->prev_op, prev);
    tickets_words(c->broker, c->lock, &c->place, &line, now_ms);
    char wish[sizeof prev + sizeof line + BROKER_OP_MAX + 320];
    p = put(stpcpy(wish, "lease="), lease);
    p = stpcpy(stpcpy(p, " prev="), prev);
    p = util_put_digits(stpcpy(p, " tomb="), (uint64_t)tomb_ms(c));
    p = stpcpy(stpcpy(p, " ticket="), line.ticket);
    p = stpcpy(stpcpy(p, " place="), line.place);
    p = stpcpy(stpcpy(p, " judge="), line.judge);
    p = util_put_digits(stpcpy(p, " maxhold="), (uint64_t)c->maxhold_ms);
    p = put_mode(c, stpcpy(p, " mode="));
    p = put_group(c, stpcpy(p, " group="));
    args_text(it, wish, (size_t)(p - wish));
}

static void add_takeover(const struct claim *c, struct args *it, int64_t now_ms)
{
    add_op(c, it);
    args_int(it, broker_tomb_ms(c->broker));
    args_text(it, c->owner->text, c->owner->len);
    args_int(it, rounds_floor(&c->broker->rounds, now_ms));
    add_token_counter(c, it);
    args_str(it, c->has_hold ? "hold" : "none");
    args_str(it, c->any ? "?" : kind_words[c->part.kind]);
}

struct args *claim_item_ask(const struct claim *c, int64_t now_ms)
{
    struct args *it = begin_claim_args(c);
    if (c->takeover) {
        add_takeover(c, it, now_ms);
        return it;
    }
    const struct digits lease = digits_of(c->lease_ms);
    it->floor = rounds_floor(&c->broker->rounds, now_ms);
    it->bucket = rounds_bucket(&c->broker->rounds, c->lock->name, c->lock->name_len);
    add_hold(c, it, &lease);
    add_wish(c, it, &lease, now_ms);
    return it;
}

struct args *claim_item_commit(const struct claim *c)
{
    struct args *it = begin_claim_args(c);
    add_op(c, it);
    args_int(it, c->token);
    add_token_counter(c, it);
    broker_add_part(it, c->part, c->owner);
    return it;
}
