/*
 * Whether this broker may sign, and when it asks. All that it goes by is in the status of the
 * masters: what they have said is taken by place.c.
 */
#include "redis/rollcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "redis/master.h"
#include "redis/place.h"
#include "redis/rounds.h"

enum { LOOK_FIRST_MS = 10, LOOK_MS = 250, SPARE_MS = 1000 };

static const struct master_status *status_of(const struct rollcall *r, int i, int64_t now_ms)
{
    return master_status(r->rounds->masters[i], now_ms);
}

/* ---- may it sign? ---- */

/* Has the master told in the life that it is in now that this broker has its name? */
static bool knows_us(const struct master_status *s)
{
    return s->place->is_ours && strcmp(s->place->life.text, s->life) == 0;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns from when on this broker remembers everything, by the masters of a group at which it had
 * its name before joined_ms; INT64_MAX: these are no majority. */
static int64_t complete_ms(const struct rollcall *r, int first, int64_t joined_ms, int64_t now_ms)
{
    int64_t times_ms[QUORUM_MASTERS_MAX];
    int n = 0, need = quorum_need(r->rounds->n);

    for (int j = first; j < first + r->rounds->n; j++) {
        const struct place *p = status_of(r, j, now_ms)->place;
        if (p->is_ours && p->whole_ms < joined_ms)
            times_ms[n++] = place_complete_ms(p, r->memory_ms);
    }
    if (n < need)
        return INT64_MAX;
    qsort(times_ms, (size_t)n, sizeof times_ms[0], compare_times);
    return times_ms[need - 1];
}

/* Asks the active masters, since this life began, whether this broker still has its name. It has
 * when so many of them say so that every majority has one of these; or, where masters have lost
 * their data, when all others say so and these have said it in the life before. */
static bool is_current(const struct rollcall *r, int first, const struct place *here,
                       int64_t now_ms)
{
    int n = r->rounds->n, n_fresh = 0, n_followed = 0;

    for (int j = first; j < first + n; j++) {
        const struct master_status *s = status_of(r, j, now_ms);
        bool fresh = knows_us(s) && s->place->asked_ms >= here->joined_ms;
        if (s->state == MASTER_ACTIVE) {
            n_fresh += fresh;
            if (!fresh)
                master_roll(r->rounds->masters[j], MASTER_IS_HERE, 0, 0);
        } else if (s->state == MASTER_QUARANTINE) {
            n_followed += knows_us(s) && s->place->whole_ms < here->joined_ms;
        }
    }
    return n_fresh >= n - quorum_need(n) + 1 || n_fresh + n_followed == n;
}

static bool has_lost_name(const struct rollcall *r, int64_t now_ms)
{
    for (int j = 0; j < r->rounds->n_all; j++)
        if (status_of(r, j, now_ms)->place->is_lost)
            return true;
    return false;
}

const char *rollcall_why_not(const struct rollcall *r, int i, int64_t now_ms)
{
    const struct master_status *s = status_of(r, i, now_ms);
    int first = rounds_group(r->rounds, i);

    if (s->roll_veto[0])
        return s->roll_veto;
    if (rounds_veto(r->rounds))
        return "brokers disagree";
    if (has_lost_name(r, now_ms))
        return "another broker has taken the name of this one";
    if (!knows_us(s))
        return "it has not answered yet";
    int64_t complete = complete_ms(r, first, s->place->joined_ms, now_ms);
    if (complete == INT64_MAX)
        return "this broker was not there before";
    if (now_ms < complete)
        return "this broker has started only just now, and the one before it did not end cleanly";
    if (now_ms < r->unsure_until_ms)
        return "clients have locks by commands of Redis, which no broker remembers";
    if (!r->masters[i].is_done)
        return "locks are still being put there";
    return is_current(r, first, s->place, now_ms) ? NULL : "other masters are still being asked";
}

/* The highest token that this broker has granted or seen, or can have made of its clock. */
static int64_t highest_token(const struct rollcall *r, int64_t now_ms)
{
    int64_t highest = rounds_floor(r->rounds, now_ms);

    for (int j = 0; j < r->rounds->n_all; j++) {
        const struct master_status *s = status_of(r, j, now_ms);
        highest = s->high > highest ? s->high : highest;
        highest = s->place->token > highest ? s->place->token : highest;
    }
    return highest;
}

/* ---- the turn ---- */

/* Says once for each life and state of things who is missing, or why this broker does not sign. */
static void log_missing(struct rollcall *r, int i, const char *why, int64_t now_ms)
{
    const struct master_status *s = status_of(r, i, now_ms);
    char text[160], left[48];

    util_format_duration(left, sizeof left, s->quarantine_left_ms / 1000 * 1000);
    if (s->roll_veto[0])
        snprintf(text, sizeof text, "no roll call: %s", s->roll_veto);
    else if (why)
        snprintf(text, sizeof text, "not signed here: %s", why);
    else
        snprintf(text, sizeof text, "signed, missing: %s", s->roll_missing);
    if (strcmp(text, r->masters[i].told) == 0)
        return;
    strcpy(r->masters[i].told, text);
    log_info("quarantine", "master %s: %s; at most %s", master_name(r->rounds->masters[i]), text,
             left);
}

static int64_t next_look_ms(struct rollcall_master *rm, int64_t now_ms)
{
    int64_t wait_ms = LOOK_FIRST_MS << rm->looks;

    if (wait_ms >= LOOK_MS)
        return now_ms + LOOK_MS;
    rm->looks++;
    return now_ms + wait_ms;
}

int64_t rollcall_turn(struct rollcall *r, int i, int64_t now_ms)
{
    struct rollcall_master *rm = &r->masters[i];
    const struct master_status *s = status_of(r, i, now_ms);

    if (strcmp(rm->life.text, s->life) != 0) {
        *rm = (struct rollcall_master){.is_done = rm->is_done};
        snprintf(rm->life.text, sizeof rm->life.text, "%s", s->life);
    }
    const char *why = rollcall_why_not(r, i, now_ms);
    if ((why == NULL) != rm->was_able)
        rm->looks = 0;
    else if (now_ms < rm->next_ms)
        return rm->next_ms;
    rm->was_able = !why;
    if (rm->looks > 2) /* else it is most often over at once */
        log_missing(r, i, why, now_ms);
    master_roll(r->rounds->masters[i], why ? MASTER_IS_HERE : MASTER_SIGNS,
                why ? 0 : highest_token(r, now_ms), 0);
    rm->next_ms = next_look_ms(rm, now_ms);
    return rm->next_ms;
}

void rollcall_over(struct rollcall *r, int i)
{
    r->masters[i] = (struct rollcall_master){.next_ms = 0};
}

bool rollcall_set_done(struct rollcall *r, int i, bool done)
{
    bool is_new = done && !r->masters[i].is_done;

    r->masters[i].is_done = done;
    return is_new;
}

void rollcall_set_unsure(struct rollcall *r, int64_t until_ms)
{
    r->unsure_until_ms = until_ms > r->unsure_until_ms ? until_ms : r->unsure_until_ms;
}

/* ---- the end ---- */

int64_t rollcall_memory_left_ms(const struct rollcall *r, int64_t now_ms)
{
    int64_t until_ms = r->unsure_until_ms;

    for (int first = 0; first < r->rounds->n_all; first += r->rounds->n) {
        int64_t complete = complete_ms(r, first, INT64_MAX, now_ms);
        until_ms = complete > until_ms ? complete : until_ms;
    }
    if (until_ms == INT64_MAX || has_lost_name(r, now_ms))
        return r->memory_ms;
    return until_ms > now_ms ? until_ms - now_ms : 0;
}

/* Returns for how long anybody may rely on what this broker, or one of its name before it, has
 * told. */
static int64_t left_ms(const struct rollcall *r, bool has_holds, int64_t now_ms)
{
    int64_t ms = has_holds ? r->memory_ms : rollcall_memory_left_ms(r, now_ms);

    /* by this clock: that of the next one may be faster */
    return ms > 0 ? ms + ms * r->drift_ppm / 1000000 + SPARE_MS : 0;
}

void rollcall_leave(struct rollcall *r, bool has_holds, int64_t now_ms)
{
    if (!rollcall_is_on(r) || has_lost_name(r, now_ms))
        return;
    for (int j = 0; j < r->rounds->n_all; j++)
        master_roll(r->rounds->masters[j], MASTER_LEAVES, highest_token(r, now_ms),
                    left_ms(r, has_holds, now_ms));
}

void rollcall_init(struct rollcall *r, struct rounds *b)
{
    *r = (struct rollcall){.rounds = b};
}

void rollcall_begin(struct rollcall *r, int64_t longest_ms, int64_t drift_ppm)
{
    r->drift_ppm = drift_ppm;
    r->memory_ms = longest_ms + longest_ms * drift_ppm / 1000000 + SPARE_MS;
}
