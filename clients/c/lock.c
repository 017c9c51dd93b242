/*
 * The states of holdfast.h. A hold is relied on for as long as a broker has told, counted from
 * before that broker was asked: for RENEW from its sending, for what is pushed from the sending of
 * the last request that was answered before the push.
 *
 * Invariants: while HELD or IN_JEOPARDY all parts have a token; what ENDED or IS_LOST is found by
 * no tag and no token.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"

enum {
    HELD_UP_MS = 200, /* a timer that fires so much too late */
    MARGIN_MAX_MS = 500,
    RELEASE_MS = 10000,
    VERIFY_MS = 1000 /* after a pause of ours: for one question more */
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_error(const redisReply *reply, const char *code)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, strlen(code)) == 0;
}

static void set_why(struct holdfast_lock *l, const char *why)
{
    snprintf(l->why, sizeof l->why, "%s", why);
}

/* ---- time ---- */

int64_t lock_deadline_ms(const struct holdfast_lock *l)
{
    int64_t ms = HF_NEVER;
    for (size_t i = 0; i < l->n; i++)
        ms = min_of(ms, l->parts[i].deadline_ms);
    return ms;
}

/* Returns when the hold counts as lost: whoever is told needs a moment. */
static int64_t last_moment_ms(const struct holdfast_lock *l)
{
    int64_t validity_ms = HF_NEVER;
    for (size_t i = 0; i < l->n; i++)
        validity_ms = min_of(validity_ms, l->parts[i].validity_ms);
    return lock_deadline_ms(l) - min_of(validity_ms / 10, MARGIN_MAX_MS);
}

static int64_t due_ms(const struct holdfast_lock *l)
{
    switch (l->state) {
    case HOLDFAST_HELD:
    case HOLDFAST_IN_JEOPARDY:
        return l->verify_by_ms ? l->verify_by_ms : last_moment_ms(l);
    case HOLDFAST_WAITING: /* the broker keeps the time once it was asked */
        if (l->asked && l->h->link == LINK_READY && l->give_up_ms != HF_NEVER)
            return l->give_up_ms + l->h->silence_ms;
        return l->give_up_ms;
    case HOLDFAST_RELEASING:
        return l->give_up_ms;
    default:
        return HF_NEVER;
    }
}

void lock_set_timer(struct holdfast_lock *l)
{
    int64_t now_ms = hf_now_ms();
    l->due_ms = due_ms(l);
    if (l->due_ms == HF_NEVER) {
        (void)event_del(l->timer);
        return;
    }
    hf_set_timer(l->timer, l->due_ms - now_ms);
}

/* ---- ends ---- */

static void end(struct holdfast_lock *l, enum holdfast_state state, enum holdfast_event event)
{
    bool gives_up = l->cancelled && (event == HOLDFAST_RELEASED || event == HOLDFAST_LOST);
    l->state = state;
    (void)event_del(l->timer);
    hf_unlist(l);
    hf_tell(l, gives_up ? HOLDFAST_CANCELLED : event);
}

static void lose(struct holdfast_lock *l, const char *why, bool may_be_held)
{
    set_why(l, why);
    l->may_be_held = may_be_held || l->n > 1;
    end(l, HOLDFAST_IS_LOST, HOLDFAST_LOST);
}

static void endanger(struct holdfast_lock *l, const char *why)
{
    if (l->state != HOLDFAST_HELD)
        return;
    set_why(l, why);
    l->state = HOLDFAST_IN_JEOPARDY;
    hf_tell(l, HOLDFAST_JEOPARDY);
}

static void make_safe(struct holdfast_lock *l)
{
    bool was_in_jeopardy = l->state == HOLDFAST_IN_JEOPARDY;
    l->state = HOLDFAST_HELD;
    l->why[0] = '\0';
    if (was_in_jeopardy || l->wants_safe)
        hf_tell(l, HOLDFAST_SAFE);
    l->wants_safe = false;
}

/* ---- news ---- */

static void keep_until(struct part *p, int64_t token, int64_t validity_ms, int64_t from_ms)
{
    if (p->token != token)
        hf_set_token(p, token);
    p->validity_ms = validity_ms;
    p->deadline_ms = from_ms + validity_ms;
    link_beat_for(p->lock->h, validity_ms);
}

static void hold(struct holdfast_lock *l)
{
    l->confirming = false;
    l->taken = true;
    l->asked = false;
    if (l->state == HOLDFAST_RELEASING) {
        lock_ask(l);
        return;
    }
    l->state = HOLDFAST_HELD;
    l->why[0] = '\0';
    lock_set_timer(l);
    hf_tell(l, HOLDFAST_GRANTED);
}

/* "granted": token or tokens, validity, waited. */
static void on_granted(struct holdfast_lock *l, const redisReply *push)
{
    redisReply *const *v = push->element;
    bool is_many = push->elements == 7 && v[4]->type == REDIS_REPLY_ARRAY && v[4]->elements == l->n;
    bool is_one = push->elements == 7 && v[4]->type == REDIS_REPLY_INTEGER && l->n == 1;
    if (!is_many && !is_one)
        return;
    int64_t validity_ms = v[5]->integer, from_ms = l->sent_ms + v[6]->integer;
    if (l->h->heard_ms > from_ms)
        from_ms = l->h->heard_ms;
    for (size_t i = 0; i < l->n; i++)
        keep_until(&l->parts[i], is_one ? v[4]->integer : v[4]->element[i]->integer, validity_ms,
                   from_ms);
    if (l->state == HOLDFAST_WAITING && lock_deadline_ms(l) - hf_now_ms() < validity_ms / 2) {
        l->confirming = true;
        lock_ask_renew(l);
    } else {
        hold(l);
    }
}

static void on_lock_error(struct holdfast_lock *l, const char *text)
{
    set_why(l, text);
    if (l->state == HOLDFAST_RELEASING) {
        end(l, HOLDFAST_ENDED, HOLDFAST_CANCELLED);
    } else if (strncmp(text, "DRAINING", 8) == 0) { /* asked again at the next beat, or elsewhere */
        l->asked = false;
        link_ask_role(l->h);
    } else {
        end(l, HOLDFAST_ENDED, HOLDFAST_FAILED);
    }
}

static void on_async(struct holdfast *h, const redisReply *push)
{
    struct holdfast_lock *l = push->element[2]->str ? hf_by_tag(h, push->element[2]->str) : NULL;
    const char *what = push->element[3]->str;
    bool waits = l && (l->state == HOLDFAST_WAITING || l->state == HOLDFAST_RELEASING);
    if (!waits || !what)
        return;
    if (strcmp(what, "granted") == 0)
        on_granted(l, push);
    else if (strcmp(what, "error") == 0 && push->elements == 5 && push->element[4]->str)
        on_lock_error(l, push->element[4]->str);
    else if (strcmp(what, "cancelled") == 0 || l->state == HOLDFAST_RELEASING)
        end(l, HOLDFAST_ENDED, HOLDFAST_CANCELLED);
    else if (strcmp(what, "timeout") == 0)
        end(l, HOLDFAST_ENDED, HOLDFAST_TIMEOUT);
}

static void on_lost(struct holdfast_lock *l, const char *reason)
{
    if (strcmp(reason, "moved") == 0) { /* to a broker that had slept with a request of ours */
        l->taken = false;
        lock_ask(l);
    } else if (l->state != HOLDFAST_RELEASING) {
        lose(l, reason, false);
    }
}

void lock_push(struct holdfast *h, const redisReply *push)
{
    redisReply *const *v = push->element;
    const char *what = v[1]->str;
    if (push->elements < 4 || !what)
        return;
    if (strcmp(what, "async") == 0) {
        on_async(h, push);
        return;
    }
    struct part *p = v[2]->str && v[3]->type == REDIS_REPLY_INTEGER
                         ? hf_by_token(h, v[2]->str, v[3]->integer)
                         : NULL;
    if (!p || push->elements != 5)
        return;
    struct holdfast_lock *l = p->lock;
    if (strcmp(what, "lost") == 0 && v[4]->str) {
        on_lost(l, v[4]->str);
    } else if (strcmp(what, "jeopardy") == 0) {
        endanger(l, "the broker could not renew it");
        l->taken = l->n == 1; /* of several RENEW says when all are safe */
        link_ask_role(h);
    } else if (v[4]->type == REDIS_REPLY_INTEGER) { /* renewed, safe */
        if (h->heard_ms + v[4]->integer > p->deadline_ms)
            keep_until(p, p->token, v[4]->integer, h->heard_ms);
        if (l->state == HOLDFAST_IN_JEOPARDY && l->taken && l->n_asked == 0 && l->n == 1)
            make_safe(l);
        lock_set_timer(l);
    }
}

/* ---- answers ---- */

/* All parts are confirmed. */
static void on_all_renewed(struct holdfast_lock *l)
{
    l->verify_by_ms = 0;
    l->taken = true;
    if (l->state == HOLDFAST_WAITING) {
        hold(l);
        return;
    }
    if (l->has_new_token)
        hf_tell(l, HOLDFAST_TOKEN);
    make_safe(l);
    lock_set_timer(l);
}

static void on_renewed(struct holdfast_lock *l, const struct ask *ask, const redisReply *reply)
{
    struct part *p = &l->parts[ask->part];
    int64_t was = p->token;
    keep_until(p, reply->element[0]->integer, reply->element[1]->integer, ask->sent_ms);
    if (l->n_renewed++ == 0)
        l->has_new_token = false;
    l->has_new_token |= was != p->token;
    if (l->n_renewed < l->n)
        return; /* when the others fail, all again at the next beat */
    if (l->state != HOLDFAST_RELEASING)
        on_all_renewed(l);
    else if (l->recalled)
        lock_ask_unlock(l, l);
}

static void on_not_renewed(struct holdfast_lock *l, const redisReply *reply)
{
    bool is_gone = is_error(reply, "NOTHELD");
    const char *text = reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of a wrong shape";
    if (l->state == HOLDFAST_RELEASING) {
        if (l->recalled)
            lose(l, text, false);
    } else if (l->state == HOLDFAST_WAITING) {
        l->confirming = l->asked = false; /* from the beginning, now or at the next beat */
        if (is_gone)
            lock_ask(l);
    } else if (is_gone) {
        lose(l, text, false);
    } else {
        l->taken = false;
        endanger(l, text);
        set_why(l, text);
    }
}

static void on_unlocked(struct holdfast_lock *l, const redisReply *reply)
{
    bool again = l->n == 1 && reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
    if (again) { /* a LOCK that was thought lost had counted, too */
        lock_ask_unlock(l, l);
    } else if (is_error(reply, "NOTHELD") && !l->doubt && l->relinked && !l->recalled) {
        l->recalled = true;
        lock_ask_renew(l);
    } else if (is_error(reply, "NOTHELD") && !l->doubt && !l->cancelled) {
        lose(l, reply->str, false);
    } else {
        if (reply->type == REDIS_REPLY_ERROR && !is_error(reply, "NOTHELD"))
            set_why(l, reply->str);
        end(l, HOLDFAST_ENDED, HOLDFAST_RELEASED);
    }
}

void lock_answer(const struct ask *ask, const redisReply *reply)
{
    struct holdfast_lock *l = ask->lock;
    bool is_hold = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                   reply->element[0]->type == REDIS_REPLY_INTEGER &&
                   reply->element[1]->type == REDIS_REPLY_INTEGER;
    bool is_over = l->state == HOLDFAST_ENDED || l->state == HOLDFAST_IS_LOST;
    if (is_over)
        hf_look_at(l);
    else if (ask->verb == VERB_LOCK && reply->type == REDIS_REPLY_ERROR)
        on_lock_error(l, reply->str);
    else if (ask->verb == VERB_LOCK)
        return; /* QUEUED */
    else if (ask->verb == VERB_RENEW && is_hold)
        on_renewed(l, ask, reply);
    else if (ask->verb == VERB_RENEW)
        on_not_renewed(l, reply);
    else
        on_unlocked(l, reply);
}

/* ---- from outside ---- */

bool lock_is_taken(const struct holdfast_lock *l)
{
    bool is_held = l->state == HOLDFAST_HELD || l->state == HOLDFAST_IN_JEOPARDY;
    return !is_held || l->taken || l->lease_ms > 0;
}

void lock_unlinked(struct holdfast_lock *l)
{
    l->doubt |= l->state == HOLDFAST_RELEASING && l->asked;
    l->asked = l->taken = l->confirming = l->recalled = false;
    if (l->state == HOLDFAST_HELD || l->state == HOLDFAST_IN_JEOPARDY) {
        l->relinked = true; /* what was told stands until its time is over */
    } else if (l->state == HOLDFAST_WAITING) {
        lock_set_timer(l);
    } else {
        hf_look_at(l);
    }
}

void lock_denied(struct holdfast_lock *l, const char *why)
{
    bool waits = l->state == HOLDFAST_WAITING || (l->state == HOLDFAST_RELEASING && l->cancelled);
    if (!waits)
        return;
    set_why(l, why);
    end(l, HOLDFAST_ENDED, l->cancelled ? HOLDFAST_CANCELLED : HOLDFAST_FAILED);
}

void lock_release(struct holdfast_lock *l)
{
    bool is_held = l->state == HOLDFAST_HELD || l->state == HOLDFAST_IN_JEOPARDY;
    bool is_ready = l->h->link == LINK_READY;
    bool waits_there = l->asked && !l->confirming && is_ready;
    if (!is_held && l->state != HOLDFAST_WAITING)
        return;
    l->cancelled = !l->told_granted;
    if (!l->sent) {
        end(l, HOLDFAST_ENDED, HOLDFAST_CANCELLED);
        return;
    }
    l->give_up_ms = hf_now_ms() + RELEASE_MS;
    if (is_held)
        l->give_up_ms = min_of(l->give_up_ms, lock_deadline_ms(l));
    l->state = HOLDFAST_RELEASING;
    lock_set_timer(l);
    if (waits_there) {
        lock_ask_cancel(l);
    } else {
        l->asked = false;
        lock_ask(l);
    }
}

void lock_renew(struct holdfast_lock *l, int64_t lease_ms)
{
    if (l->state != HOLDFAST_HELD && l->state != HOLDFAST_IN_JEOPARDY)
        return;
    if (lease_ms > 0)
        l->lease_ms = lease_ms;
    l->wants_safe = true;
    l->taken = false;
    lock_ask(l);
}

void lock_forget(struct holdfast_lock *l)
{
    if (l->may_be_held && l->h->link == LINK_READY)
        lock_ask_unlock(l, NULL);
    l->may_be_held = false;
}

/* The last moment of a hold. When it was this program that stood still the broker may have renewed
 * the lock all the while: that is asked once before it is given up. */
static void on_last_moment(struct holdfast_lock *l, int64_t now_ms)
{
    bool was_held_up = now_ms > l->due_ms + HELD_UP_MS;
    if (l->verify_by_ms || !was_held_up || l->lease_ms > 0) {
        lose(l, l->lease_ms > 0 ? "its lease is over" : "not confirmed in time", true);
        return;
    }
    l->verify_by_ms = now_ms + VERIFY_MS;
    endanger(l, "the program stood still");
    l->taken = false;
    lock_ask(l);
    lock_set_timer(l);
}

void lock_on_timer(evutil_socket_t fd, short what, void *lock)
{
    struct holdfast_lock *l = lock;
    int64_t now_ms = hf_now_ms();
    (void)fd;
    (void)what;
    if (due_ms(l) > now_ms) {
        lock_set_timer(l);
    } else if (l->state == HOLDFAST_WAITING) {
        set_why(l, l->h->trouble[0] ? l->h->trouble : "no broker has answered in time");
        if (l->asked && l->h->link == LINK_READY) { /* it may still get there */
            lock_ask_cancel(l);
            lock_ask_unlock(l, NULL);
        }
        end(l, HOLDFAST_ENDED, HOLDFAST_FAILED);
    } else if (l->state == HOLDFAST_RELEASING) {
        set_why(l, "it could not be given back and ends with its lease");
        end(l, HOLDFAST_ENDED, HOLDFAST_RELEASED);
    } else {
        on_last_moment(l, now_ms);
    }
}
