/*
 * What becomes of a lock request, as a reply. It is written when it leaves, so that the validity in
 * it is what is left then.
 */
#include "command/handlers.h"
#include "dropin/call.h"
#include "dropin/state.h"
#include "lock/broker.h"
#include "lock/lock_info.h"
#include "lock/multilock.h"
#include "lock/view.h"

/* Returns until when the reply is true, 0 if it is not any more: it may have waited behind others,
 * and this process may have stood still. What the same connection has given up by a later request
 * was true in its time. */
static int64_t promised_ms(const struct lock_request *r, const struct hold_ref *ref)
{
    const struct hold *h = ref->hold;
    if (h) /* all that is left of it may be what nobody was told of */
        return h->state == HOLD_LOST || h->count <= h->untold ? 0 : h->deadline_ms;
    return ref->released_by == r->base.session->id ? r->deadline_ms : 0;
}

int64_t cmd_lock_promised_ms(const struct lock_request *r)
{
    int64_t until_ms = INT64_MAX;
    if (r->result == RESULT_GRANTED)
        return promised_ms(r, &r->hold);
    for (int i = 0; i < multilock_count(r->multilock); i++) {
        int64_t one_ms = promised_ms(r, multilock_hold(r->multilock, i));
        until_ms = one_ms < until_ms ? one_ms : until_ms;
    }
    return until_ms;
}

static void write_granted(struct lock_request *r, struct resp_writer *w, int64_t now_ms)
{
    int64_t until_ms = cmd_lock_promised_ms(r);
    if (until_ms > now_ms) {
        resp_array(w, 2);
        resp_int(w, r->token);
        resp_int(w, until_ms - now_ms);
    } else if (r->verb == VERB_LOCK) {
        resp_null_array(w);
    } else {
        cmd_write_error(&r->base, w, "NOTHELD the hold has ended before this reply could leave");
    }
}

/* Writes [[token, ...], validity], or nil when one of the holds has ended meanwhile: the others are
 * then given back, as their owner is told of none. */
static void write_many(struct lock_request *r, struct resp_writer *w, int64_t now_ms)
{
    int n = multilock_count(r->multilock);
    int64_t until_ms = cmd_lock_promised_ms(r);
    if (until_ms <= now_ms) {
        r->untold = true;
        resp_null_array(w);
        return;
    }
    resp_array(w, 2);
    resp_array(w, (size_t)n);
    for (int i = 0; i < n; i++)
        resp_int(w, multilock_token(r->multilock, i));
    resp_int(w, until_ms - now_ms);
}

/* What commands of Redis have written there, and who, if that was a client of this broker. */
static void write_drop_in_holder(const struct lock_info *info, const struct lock_info_holder *h,
                                 struct resp_writer *w, int64_t now_ms)
{
    struct dropin_hold hold;
    struct buf shown = {0};
    bool here = cmd_hooks()->dropin &&
                dropin_find_hold(cmd_hooks()->dropin, info->name, info->name_len, &hold, now_ms) &&
                hold.token == h->token && hold.session_id != 0;
    if (here)
        state_show(hold.state, hold.state_len, &shown);
    else
        state_show(h->owner->text, h->owner->len, &shown);
    resp_map(w, here ? 7 : 5);
    resp_str(w, "owner");
    resp_bulk(w, buf_head(&shown), buf_len(&shown));
    resp_pair_int(w, "count", h->count);
    resp_pair_int(w, "token", h->token);
    resp_pair_int(w, "remaining_ms", h->left_ms);
    if (here) {
        resp_pair_int(w, "held_ms", hold.held_ms);
        resp_pair_str(w, "library", hold.library);
    }
    resp_str(w, "connection");
    if (here)
        resp_int(w, (int64_t)hold.session_id);
    else
        resp_str(w, "elsewhere");
    buf_fini(&shown);
}

static void write_holder(const struct lock_info_holder *h, struct resp_writer *w)
{
    resp_map(w, h->here ? 7 : 5);
    resp_str(w, "owner");
    resp_bulk(w, h->owner->text, h->owner->len);
    resp_pair_int(w, "count", h->count);
    resp_pair_int(w, "token", h->token);
    resp_pair_int(w, "remaining_ms", h->left_ms);
    if (h->here) {
        resp_pair_int(w, "held_ms", h->since_ms);
        resp_str(w, "watched");
        resp_bool(w, h->watched);
    }
    resp_str(w, "connection");
    if (h->here)
        resp_int(w, (int64_t)h->session_id);
    else
        resp_str(w, "elsewhere");
}

static void write_waiter(const struct lock_info_waiter *waiter, struct resp_writer *w)
{
    resp_map(w, 5);
    resp_str(w, "owner");
    resp_bulk(w, waiter->owner->text, waiter->owner->len);
    resp_pair_int(w, "connection", (int64_t)waiter->session_id);
    resp_pair_int(w, "waited_ms", waiter->waited_ms);
    resp_pair_str(w, "kind", lock_kind_name(waiter->want.kind));
    resp_str(w, "fair");
    resp_bool(w, waiter->fair);
}

/* Writes how many may have the lock at the same time; nil for a free one, and for readers, who may
 * be any number. */
static void write_limit(const struct lock_info *info, struct resp_writer *w)
{
    if (!info->held || info->part.kind == LOCK_SHARED)
        resp_null(w);
    else
        resp_int(w, info->part.kind == LOCK_LIMIT ? info->part.limit : 1);
}

static bool is_drop_in(const struct lock_info_holder *h)
{
    return owner_is_drop_in(h->owner->text, h->owner->len);
}

static void write_kind(const struct lock_info *info, struct resp_writer *w)
{
    if (!info->held)
        resp_null(w);
    else if (info->n_listed > 0 && is_drop_in(&info->listed[0]))
        resp_str(w, "drop-in");
    else
        resp_str(w, lock_kind_name(info->part.kind));
}

static void write_lock_info(const struct lock_request *r, struct resp_writer *w, int64_t now_ms)
{
    const struct lock_info *info = r->info;
    resp_map(w, 7);
    resp_str(w, "kind");
    write_kind(info, w);
    resp_str(w, "limit");
    write_limit(info, w);
    resp_pair_int(w, "holding", info->n_holders);
    resp_str(w, "holders");
    resp_array(w, (size_t)info->n_listed);
    for (int i = 0; i < info->n_listed; i++) {
        if (is_drop_in(&info->listed[i]))
            write_drop_in_holder(info, &info->listed[i], w, now_ms);
        else
            write_holder(&info->listed[i], w);
    }
    resp_pair_int(w, "waiting", info->n_waiters);
    resp_str(w, "waiters");
    resp_array(w, (size_t)info->n_waiters_listed);
    for (int i = 0; i < info->n_waiters_listed; i++)
        write_waiter(&info->waiters[i], w);
    resp_str(w, "masters");
    resp_map(w, (size_t)info->n_masters);
    for (int i = 0; i < info->n_masters; i++) {
        resp_str(w, view_master_name(r->broker, i));
        resp_str(w, info->masters[i].text);
    }
}

static void on_write(struct request *base, struct resp_writer *w, int64_t now_ms)
{
    struct lock_request *r = (struct lock_request *)base;
    switch ((enum lock_result)r->result) {
    case RESULT_GRANTED:
        write_granted(r, w, now_ms);
        break;
    case RESULT_COUNT:
        resp_int(w, r->count);
        break;
    case RESULT_MANY:
        write_many(r, w, now_ms);
        break;
    case RESULT_INFO:
        write_lock_info(r, w, now_ms);
        break;
    case RESULT_NOT_HELD:
    case RESULT_ERROR:
        cmd_write_error(base, w, "%s", r->text);
        break;
    case RESULT_NOT_GRANTED:
    case RESULT_NONE:
        resp_null_array(w);
        break;
    }
}

static void on_abandon(struct request *base, int64_t now_ms)
{
    struct lock_request *r = (struct lock_request *)base;
    broker_abandon(r->broker, r, now_ms);
}

static void on_free(struct request *base)
{
    struct lock_request *r = (struct lock_request *)base;
    bool is_granted = r->result == RESULT_GRANTED || r->result == RESULT_MANY;
    r->untold |= r->async && is_granted && !r->told; /* it was cancelled, or its connection ended */
    if (r->untold)
        broker_untold(r->broker, r);
    multilock_free(r->multilock);
    r->multilock = NULL;
    lock_request_free(r);
}

const struct request_type cmd_lock_request_type = {on_write, on_abandon, on_free, cmd_async_push};
