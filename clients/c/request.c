/* The calls of holdfast.h that are about one lock. */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static bool is_wrong(const struct holdfast_request *r)
{
    if (!r->names || r->n_names < 1 || r->n_names > HOLDFAST_NAMES_MAX)
        return true;
    for (size_t i = 0; i < r->n_names; i++) {
        size_t n = r->names[i] ? strlen(r->names[i]) : 0;
        if (n < 1 || n > HF_NAME_MAX)
            return true;
    }
    return r->wait_ms < HOLDFAST_FOREVER || r->lease_ms < 0 || r->maxhold_ms < 0 || r->limit < 0 ||
           (r->shared && r->limit) || (r->fair && r->n_names > 1);
}

static int64_t give_up_ms(const struct holdfast *h, int64_t wait_ms)
{
    if (wait_ms < 0)
        return HF_NEVER;
    return hf_now_ms() + (wait_ms > 0 ? wait_ms : 2 * h->silence_ms);
}

static struct holdfast_lock *make(struct holdfast *h, const struct holdfast_request *r)
{
    bool is_whole = true;
    struct holdfast_lock *l = calloc(1, sizeof *l + r->n_names * sizeof l->parts[0]);
    if (!l)
        return NULL;
    *l = (struct holdfast_lock){.h = h,
                                .id = ++h->last_id,
                                .state = HOLDFAST_WAITING,
                                .entered = 1,
                                .wait_ms = r->wait_ms,
                                .lease_ms = r->lease_ms,
                                .maxhold_ms = r->maxhold_ms,
                                .limit = r->limit,
                                .shared = r->shared != 0,
                                .fair = r->fair != 0,
                                .give_up_ms = give_up_ms(h, r->wait_ms),
                                .n = r->n_names};
    snprintf(l->tag, sizeof l->tag, "%" PRIu64, l->id);
    snprintf(l->owner, sizeof l->owner, "%s/%s", h->owner, l->tag);
    for (size_t i = 0; i < l->n; i++) {
        l->parts[i].lock = l;
        l->parts[i].name = l->parts[i].own_name = strdup(r->names[i]);
        is_whole = is_whole && l->parts[i].name;
    }
    l->timer = event_new(h->base, -1, 0, lock_on_timer, l);
    if (is_whole && l->timer && hf_list(l) == 0)
        return l;
    for (size_t i = 0; i < l->n; i++)
        free(l->parts[i].own_name);
    if (l->timer)
        event_free(l->timer);
    free(l);
    return NULL;
}

struct holdfast_lock *holdfast_lock(struct holdfast *h, const struct holdfast_request *request,
                                    holdfast_callback callback, void *arg)
{
    struct holdfast_request r = HOLDFAST_REQUEST;
    memcpy(&r, request, request->size < sizeof r ? request->size : sizeof r);
    if (is_wrong(&r) || !callback) {
        errno = EINVAL;
        return NULL;
    }
    struct holdfast_lock *l = make(h, &r);
    if (!l) {
        errno = ENOMEM;
        return NULL;
    }
    l->callback = callback;
    l->arg = arg;
    lock_set_timer(l);
    link_want(h);
    lock_ask(l);
    return l;
}

struct holdfast_lock *holdfast_lock_name(struct holdfast *h, const char *name, int64_t wait_ms,
                                         holdfast_callback callback, void *arg)
{
    struct holdfast_request r = HOLDFAST_REQUEST;
    r.names = &name;
    r.n_names = 1;
    r.wait_ms = wait_ms;
    return holdfast_lock(h, &r, callback, arg);
}

int holdfast_enter(struct holdfast_lock *lock)
{
    return lock->state == HOLDFAST_HELD ? ++lock->entered : 0;
}

void holdfast_release(struct holdfast_lock *lock)
{
    if (lock->entered > 1)
        lock->entered--;
    else
        lock_release(lock);
}

void holdfast_renew(struct holdfast_lock *lock, int64_t lease_ms)
{
    lock_renew(lock, lease_ms);
}

void holdfast_lock_free(struct holdfast_lock *lock)
{
    if (!lock)
        return;
    lock->freed = true;
    lock_release(lock);
    lock_forget(lock);
    hf_look_at(lock);
}

enum holdfast_state holdfast_state(const struct holdfast_lock *lock)
{
    return lock->state;
}

int64_t holdfast_left_ms(const struct holdfast_lock *lock)
{
    bool is_held = lock->state == HOLDFAST_HELD || lock->state == HOLDFAST_IN_JEOPARDY;
    int64_t left_ms = is_held ? lock_deadline_ms(lock) - hf_now_ms() : 0;
    return left_ms > 0 ? left_ms : 0;
}

int64_t holdfast_token(const struct holdfast_lock *lock, size_t i)
{
    return i < lock->n ? lock->parts[i].token : 0;
}

const char *holdfast_name(const struct holdfast_lock *lock, size_t i)
{
    return i < lock->n ? lock->parts[i].name : NULL;
}

const char *holdfast_owner(const struct holdfast_lock *lock)
{
    return lock->owner;
}

const char *holdfast_why(const struct holdfast_lock *lock)
{
    return lock->why;
}

const char *holdfast_event_name(enum holdfast_event event)
{
    static const char *const names[] = {
        [HOLDFAST_GRANTED] = "granted",   [HOLDFAST_TOKEN] = "token",
        [HOLDFAST_JEOPARDY] = "jeopardy", [HOLDFAST_SAFE] = "safe",
        [HOLDFAST_LOST] = "lost",         [HOLDFAST_RELEASED] = "released",
        [HOLDFAST_TIMEOUT] = "timeout",   [HOLDFAST_CANCELLED] = "cancelled",
        [HOLDFAST_FAILED] = "failed"};
    return event >= HOLDFAST_GRANTED && event <= HOLDFAST_FAILED ? names[event] : "?";
}
