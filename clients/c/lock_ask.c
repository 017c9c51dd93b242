/* What a lock says to its broker. */
#include "internal.h"

static void add_names(struct words *w, const struct holdfast_lock *l, const char *one,
                      const char *many)
{
    words_add(w, l->n > 1 ? many : one);
    if (l->n > 1)
        words_number(w, (int64_t)l->n);
    for (size_t i = 0; i < l->n; i++)
        words_add(w, l->parts[i].name);
    words_add(w, "OWNER");
    words_add(w, l->owner);
}

static void add_option(struct words *w, const char *word, int64_t number)
{
    words_add(w, word);
    words_number(w, number);
}

void lock_ask_unlock(struct holdfast_lock *l, struct holdfast_lock *who_hears)
{
    struct words w = {.n = 0};
    add_names(&w, l, "UNLOCK", "MUNLOCK");
    link_ask(l->h, VERB_UNLOCK, who_hears, 0, &w);
}

static void ask_lock(struct holdfast_lock *l)
{
    struct words w = {.n = 0};
    int64_t left_ms = l->give_up_ms - hf_now_ms();
    if (l->sent && l->n > 1) /* several names are not moved here by MLOCK */
        lock_ask_unlock(l, NULL);
    add_names(&w, l, "LOCK", "MLOCK");
    if (l->wait_ms != 0)
        add_option(&w, "WAIT", l->wait_ms < 0 ? 0 : left_ms > 1 ? left_ms : 1);
    if (l->lease_ms > 0)
        add_option(&w, "LEASE", l->lease_ms);
    if (l->maxhold_ms > 0)
        add_option(&w, "MAXHOLD", l->maxhold_ms);
    if (l->limit > 0)
        add_option(&w, "LIMIT", l->limit);
    if (l->shared)
        words_add(&w, "SHARED");
    if (l->fair)
        words_add(&w, "FAIR");
    words_add(&w, "ID"); /* so that it counts once, should it have come through before */
    words_add(&w, l->tag);
    words_add(&w, "ASYNC");
    words_add(&w, l->tag);
    l->sent = true;
    l->sent_ms = hf_now_ms();
    link_ask(l->h, VERB_LOCK, l, 0, &w);
}

void lock_ask_renew(struct holdfast_lock *l)
{
    l->n_renewed = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct words w = {.v = {"RENEW", l->parts[i].name, "OWNER", l->owner}, .n = 4};
        if (l->lease_ms > 0)
            add_option(&w, "LEASE", l->lease_ms);
        link_ask(l->h, VERB_RENEW, l, i, &w);
    }
}

void lock_ask_cancel(struct holdfast_lock *l)
{
    struct words w = {.v = {"CANCEL", l->tag}, .n = 2};
    link_ask(l->h, VERB_NONE, NULL, 0, &w);
}

void lock_ask(struct holdfast_lock *l)
{
    bool is_held = l->state == HOLDFAST_HELD || l->state == HOLDFAST_IN_JEOPARDY;
    if (l->h->link != LINK_READY || l->asked)
        return;
    if (is_held && !l->taken && l->n_asked == 0 && (l->lease_ms == 0 || l->wants_safe)) {
        lock_ask_renew(l);
    } else if (l->state == HOLDFAST_WAITING && l->n_asked == 0) {
        l->asked = true;
        ask_lock(l);
    } else if (l->state == HOLDFAST_RELEASING) {
        l->asked = true;
        lock_ask_unlock(l, l);
    }
}
