/*
 * What a claim says to the masters: the arguments of acquire.lua, takeover.lua and commit.lua, in
 * the order in which those scripts read them. The operation is always the first.
 *
 * It looks at the claim and changes nothing; it does not know in which round the claim is.
 */
#include <inttypes.h>
#include <stdio.h>

#include "broker_state.h"
#include "claim_private.h"
#include "item.h"

static const char *const kind_words[LOCK_KINDS] = {"x", "s", "n"};

static struct item *begin(const struct claim *c)
{
    char op[BROKER_OP_MAX + 1];
    broker_op_text(c->broker, c->op, op);
    struct item *it = item_begin(c->lock->name, c->lock->name_len);
    item_arg_str(it, op);
    return it;
}

/* The last argument of acquire.lua: nearly always there is nothing to say. */
static void add_more(const struct claim *c, struct item *it, int64_t now_ms)
{
    char prev[BROKER_OP_MAX + 1] = "-", mode[16], all[BROKER_OP_MAX + 32] = "-";
    char more[sizeof prev + sizeof(struct line_words) + sizeof mode + sizeof all + 128];
    struct line_words line;
    if (c->part.kind == LOCK_EXCLUSIVE && !c->prev_op && !c->place.where && !c->maxhold_ms &&
        !c->group) {
        item_arg_str(it, "-");
        return;
    }
    snprintf(mode, sizeof mode, "%s", kind_words[c->part.kind]);
    if (c->part.kind == LOCK_LIMIT)
        snprintf(mode, sizeof mode, "%u:%u", (unsigned)c->part.limit, (unsigned)c->part.slot);
    if (c->prev_op)
        broker_op_text(c->broker, c->prev_op, prev);
    if (c->group)
        snprintf(all, sizeof all, "%s.%" PRIu64 "/%d", c->broker->id, c->group, c->group_size);
    line_words(c->broker, c->lock, &c->place, &line, now_ms);
    snprintf(more, sizeof more, "%s,%" PRId64 ",%s,%s,%s,%" PRId64 ",%s,%s", prev,
             c->prev_op ? broker_tomb_ms(c->broker) : 0, line.ticket, line.place, line.judge,
             c->maxhold_ms, mode, all);
    item_arg_str(it, more);
}

static void add_acquire(const struct claim *c, struct item *it, int64_t now_ms)
{
    item_arg(it, c->owner->text, c->owner->len);
    item_arg_int(it, c->lease_ms);
    item_arg_int(it, backend_floor(&c->broker->backend, now_ms));
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    add_more(c, it, now_ms);
}

static void add_takeover(const struct claim *c, struct item *it, int64_t now_ms)
{
    item_arg_int(it, broker_tomb_ms(c->broker));
    item_arg(it, c->owner->text, c->owner->len);
    item_arg_int(it, backend_floor(&c->broker->backend, now_ms));
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    item_arg_str(it, c->has_hold ? "hold" : "none");
    item_arg_str(it, c->any ? "?" : kind_words[c->part.kind]);
}

struct item *claim_item_ask(const struct claim *c, int64_t now_ms)
{
    struct item *it = begin(c);
    if (c->takeover)
        add_takeover(c, it, now_ms);
    else
        add_acquire(c, it, now_ms);
    return it;
}

struct item *claim_item_commit(const struct claim *c)
{
    struct item *it = begin(c);
    item_arg_int(it, c->token);
    item_arg_int(it, item_bucket(c->lock->name, c->lock->name_len));
    line_add_part(it, c->part, c->owner);
    return it;
}
