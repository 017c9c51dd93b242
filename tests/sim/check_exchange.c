/*
 * Conditional operations over several masters in virtual time, as stories, and many at once over a
 * bad network: what a minority did is put back, of two that guess alike one is confirmed, late
 * copies find the way shut, and what was missed is made good.
 *
 *   EXCHANGE_SEED=n  the first run of those at random (1)   EXCHANGE_SEEDS=n  how many (10)
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dropin/exchange.h"
#include "story.h"
#include "suite.h"

enum { ITEMS = 2, ASKED = 8, LEASE_MS = 60000 };

/* One exchange; those of a story are told apart by their index. */
static struct asked {
    struct exchange_item items[ITEMS];
    struct truth guess[ITEMS];
    char text[ITEMS][32], reason[200];
    bool has_ended;
    enum exchange_end end;
} all[ASKED];

static bool is_told = true; /* guesses come from another broker */

static void on_end(struct exchange_item *items, int n, enum exchange_end end, const char *reason,
                   void *arg, int64_t now_ms)
{
    struct asked *a = arg;
    (void)items, (void)n, (void)now_ms;
    ck_assert(!a->has_ended);
    a->has_ended = true;
    a->end = end;
    snprintf(a->reason, sizeof a->reason, "%s", reason ? reason : "");
}

static void begin(int n_servers, int n_brokers)
{
    story_begin(n_servers, n_brokers, "");
}

static void end(void)
{
    world_end();
    for (int i = 0; i < ASKED; i++) {
        for (int j = 0; j < ITEMS; j++) {
            truth_fini(&all[i].guess[j]);
            truth_fini(&all[i].items[j].truth);
        }
    }
    memset(all, 0, sizeof all);
}

/* ---- asking ---- */

/* Item j of exchange i: what is to become of this name, if it is as `guess` says (NULL: free). */
static void item(int i, int j, const char *name, enum exchange_what what, const struct truth *guess,
                 const char *state)
{
    struct asked *a = &all[i];
    static const struct truth nothing = {.kind = TRUTH_FREE};
    struct truth told = a->items[j].truth;
    truth_copy(&a->guess[j], guess ? guess : &nothing);
    snprintf(a->text[j], sizeof a->text[j], "drop-in s t %s", state ? state : "");
    a->items[j] = (struct exchange_item){.guess = &a->guess[j],
                                         .what = what,
                                         .text = a->text[j],
                                         .len = strlen(a->text[j]),
                                         .lease_ms = LEASE_MS,
                                         .wants_time = what == EXCHANGE_LOOK,
                                         .truth = told};
    a->items[j].lock = (struct lock *)(uintptr_t)name; /* start() looks it up */
}

static void start(int i, int broker, int n)
{
    struct world_broker *wb = &world.brokers[broker];
    struct asked *a = &all[i];
    int64_t now_ms = world_local_ms(wb);
    a->has_ended = false;
    broker_begin(&wb->b, now_ms);
    for (int j = 0; j < n; j++) {
        const char *name = (const char *)a->items[j].lock;
        if (a->guess[j].kind != TRUTH_FREE && is_told) /* by its own clock */
            a->guess[j].expires_ms = now_ms + LEASE_MS;
        a->items[j].lock = locktab_get(&wb->b.locks, name, strlen(name));
    }
    exchange_start(&wb->b, a->items, n, on_end, a, now_ms);
    ck_assert(!a->has_ended); /* never inside */
    broker_end(&wb->b, now_ms);
    world_wake(broker);
}

static void start_one(int i, int broker, enum exchange_what what, const struct truth *guess,
                      const char *state)
{
    item(i, 0, "n", what, guess, state);
    start(i, broker, 1);
}

/* Until it has ended, or for ms. */
static void wait(int i, int64_t ms)
{
    for (; ms > 0 && !all[i].has_ended; ms--)
        world_run_ms(1);
}

static const struct truth *ends(int i, enum exchange_end end)
{
    wait(i, 3000);
    ck_assert(all[i].has_ended);
    ck_assert_msg(all[i].end == end, "end %d, not %d: %s", all[i].end, end, all[i].reason);
    return &all[i].items[0].truth;
}

/* Exchange 0 of lock `n`, to its end. */
static const struct truth *does(int broker, enum exchange_what what, const struct truth *guess,
                                const char *state)
{
    start_one(0, broker, what, guess, state);
    return ends(0, EXCHANGE_CONFIRMED);
}

static void ck_truth(const struct truth *t, enum truth_kind kind, const char *state)
{
    ck_assert_int_eq(t->kind, kind);
    if (kind == TRUTH_DROPIN)
        ck_assert_msg(truth_len(t) == 12 + strlen(state) &&
                          memcmp(t->text->bytes + 12, state, strlen(state)) == 0,
                      "%.*s", (int)truth_len(t), truth_bytes(t));
}

/* What stands at this master under `n`: the state, or "". */
static const char *stands(int server)
{
    const struct fake_lock *l = world_lock_at(server, "n");
    return l ? l->owner + 12 : "";
}

static void ck_stands(const char *a, const char *b, const char *c)
{
    ck_assert_str_eq(stands(0), a);
    ck_assert_str_eq(stands(1), b);
    ck_assert_str_eq(stands(2), c);
}

/* A copy of what was told last, as the next exchange overwrites it. */
static struct truth kept[3];
static const struct truth *keep(int i, const struct truth *t)
{
    truth_copy(&kept[i], t);
    return &kept[i];
}

static void drop_kept(void)
{
    for (int i = 0; i < 3; i++) {
        truth_fini(&kept[i]);
        kept[i] = (struct truth){0};
    }
}

static void cut_all_but(int broker, int server, bool cut)
{
    for (int i = 0; i < story_conf.n_servers; i++) {
        if (i != server)
            story_cut(broker, i, cut);
    }
}

/* ---- stories ---- */

START_TEST(from_free_to_free)
{
    begin(_i, 1);
    ck_truth(does(0, EXCHANGE_LOOK, NULL, NULL), TRUTH_FREE, NULL);
    const struct truth *t = does(0, EXCHANGE_NEW, NULL, "a");
    ck_truth(t, TRUTH_DROPIN, "a");
    ck_assert_int_eq(t->number, 0);
    ck_assert_int_ge(t->fence, t->token);
    ck_assert_int_eq(world_copies("n"), _i);
    keep(0, t);
    t = does(0, EXCHANGE_IN_PLACE, &kept[0], "b");
    ck_truth(t, TRUTH_DROPIN, "b");
    ck_assert_int_eq(t->number, 1);
    ck_assert_int_eq(t->token, kept[0].token);
    ck_assert_int_eq(t->fence, kept[0].fence);
    ck_assert_str_ne(t->op, kept[0].op);
    keep(0, t);
    ck_truth(does(0, EXCHANGE_LOOK, &kept[0], NULL), TRUTH_DROPIN, "b");
    int64_t left_ms = all[0].items[0].truth.expires_ms - world_local_ms(&world.brokers[0]);
    ck_assert_int_gt(left_ms, LEASE_MS - 100);
    ck_assert_int_le(left_ms, LEASE_MS);
    t = keep(1, does(0, EXCHANGE_NEW, &kept[0], "c"));
    ck_truth(t, TRUTH_DROPIN, "c");
    ck_assert_int_gt(t->fence, kept[0].fence);
    ck_truth(does(0, EXCHANGE_END, &kept[1], NULL), TRUTH_FREE, NULL);
    world_run_ms(5);
    ck_assert_int_eq(world_copies("n"), 0);
    end();
    drop_kept();
}
END_TEST

START_TEST(a_wrong_guess_brings_the_truth)
{
    static const enum exchange_what whats[] = {EXCHANGE_LOOK, EXCHANGE_END, EXCHANGE_IN_PLACE,
                                               EXCHANGE_NEW};
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    keep(1, does(1, EXCHANGE_IN_PLACE, &kept[0], "b"));
    for (size_t i = 0; i < 4; i++) {
        start_one(0, 0, whats[i], &kept[0], "c");
        const struct truth *t = ends(0, EXCHANGE_REFUSED);
        ck_truth(t, TRUTH_DROPIN, "b");
        ck_assert_str_eq(t->op, kept[1].op);
        ck_assert_int_eq(t->token, kept[1].token);
        ck_assert_int_eq(t->number, 1);
        ck_assert_int_gt(t->expires_ms, world_local_ms(&world.brokers[0]) + LEASE_MS - 1000);
    }
    start_one(0, 0, EXCHANGE_NEW, NULL, "c");
    ck_truth(ends(0, EXCHANGE_REFUSED), TRUTH_DROPIN, "b");
    does(0, EXCHANGE_END, &kept[1], NULL);
    start_one(0, 1, EXCHANGE_IN_PLACE, &kept[1], "c");
    ck_truth(ends(0, EXCHANGE_REFUSED), TRUTH_FREE, NULL);
    world_run_ms(10);
    ck_assert_int_eq(world_copies("n"), 0);
    end();
    drop_kept();
}
END_TEST

/* From free, in place, handed over: what they guess is the same. */
START_TEST(of_two_that_guess_alike_one_is_confirmed)
{
    static const enum exchange_what whats[] = {EXCHANGE_NEW, EXCHANGE_IN_PLACE, EXCHANGE_NEW};
    begin(3, 2);
    const struct truth *guess = _i == 0 ? NULL : keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    story_cut(1, 0, true); /* each is first at one of them */
    story_cut(0, 2, true);
    start_one(0, 0, whats[_i], guess, "b");
    start_one(1, 1, whats[_i], guess, "c");
    world_run_ms(20);
    story_cut(1, 0, false);
    story_cut(0, 2, false);
    wait(0, 3000);
    wait(1, 3000);
    int confirmed = (all[0].end == EXCHANGE_CONFIRMED) + (all[1].end == EXCHANGE_CONFIRMED);
    ck_assert_int_eq(confirmed, 1);
    bool is_first = all[0].end == EXCHANGE_CONFIRMED;
    ck_assert_int_eq(all[is_first].end, EXCHANGE_REFUSED);
    ck_truth(&all[is_first].items[0].truth, TRUTH_DROPIN, is_first ? "b" : "c");
    world_run_ms(50);
    const char *state = is_first ? "b" : "c";
    ck_assert_int_ge((strcmp(stands(0), state) == 0) + (strcmp(stands(1), state) == 0) +
                         (strcmp(stands(2), state) == 0),
                     2);
    end();
    drop_kept();
}
END_TEST

START_TEST(what_a_minority_did_is_put_back)
{
    static const enum exchange_what whats[] = {EXCHANGE_IN_PLACE, EXCHANGE_NEW};
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(1, 0, true);
    start_one(1, 1, whats[_i], &kept[0], "b");
    world_run_ms(20);
    ck_stands("b", "a", "a");
    ends(1, EXCHANGE_FAILED);
    ck_assert_msg(strncmp(all[1].reason, "NOQUORUM ", 9) == 0, "%s", all[1].reason);
    world_run_ms(20);
    ck_stands("a", "a", "a");
    ck_assert_str_eq(world_lock_at(0, "n")->op, kept[0].op);
    cut_all_but(1, 0, false); /* what was held up comes now, and what undoes it behind it */
    world_run_ms(20);
    ck_stands("a", "a", "a");
    ck_truth(does(0, EXCHANGE_IN_PLACE, &kept[0], "c"), TRUTH_DROPIN, "c");
    end();
    drop_kept();
}
END_TEST

/* The link is lost with what undoes it on the way: it is undone when the link is back, in place or
 * handed over, and lives no longer for that. */
START_TEST(it_is_put_back_over_another_link)
{
    static const enum exchange_what whats[] = {EXCHANGE_IN_PLACE, EXCHANGE_NEW};
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(1, 0, true);
    start_one(1, 1, whats[_i], &kept[0], "b");
    world_run_ms(20);
    story_cut(1, 0, true);
    ends(1, EXCHANGE_FAILED);
    fake_master_break(world.brokers[1].masters[0]);
    world_run_ms(5000);
    ck_stands("b", "a", "a");
    for (int i = 0; i < 3; i++)
        story_cut(1, i, false);
    world_run_ms(3000);
    ck_stands("a", "a", "a");
    ck_assert_str_eq(world_lock_at(0, "n")->op, kept[0].op);
    ck_assert_int_lt(world_lock_at(0, "n")->left_ms, LEASE_MS - 6000);
    ck_assert_int_gt(world_lock_at(0, "n")->left_ms, LEASE_MS - 10000);
    end();
    drop_kept();
}
END_TEST

START_TEST(a_new_hold_of_a_minority_is_released)
{
    begin(3, 1);
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    start_one(1, 0, EXCHANGE_NEW, NULL, "a");
    world_run_ms(20);
    ck_stands("a", "", "");
    ends(1, EXCHANGE_FAILED);
    cut_all_but(0, 0, false);
    world_run_ms(2000);
    ck_stands("", "", "");
    ck_truth(does(0, EXCHANGE_NEW, NULL, "b"), TRUTH_DROPIN, "b");
    end();
}
END_TEST

/* A change that only a minority has does not count as the latest one. */
START_TEST(a_minority_is_no_truth)
{
    begin(3, 3);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(1, 2, true);
    story_cut(0, 2, true);
    start_one(1, 1, EXCHANGE_IN_PLACE, &kept[0], "b");
    world_run_ms(20);
    world_broker_kill(1);
    keep(1, does(0, EXCHANGE_IN_PLACE, &kept[0], "c"));
    ck_stands("c", "c", "b");
    story_cut(2, 0, true); /* it sees one of each */
    start_one(1, 2, EXCHANGE_LOOK, &kept[1], NULL);
    ck_truth(ends(1, EXCHANGE_REFUSED), TRUTH_SPLIT, NULL);
    start_one(1, 2, EXCHANGE_IN_PLACE, &kept[1], "d");
    ck_truth(ends(1, EXCHANGE_REFUSED), TRUTH_SPLIT, NULL);
    story_cut(2, 0, false);
    story_cut(0, 2, false);
    world_run_ms(3000);
    ck_stands("c", "c", "c"); /* the number of what was left over is no higher */
    start_one(1, 2, EXCHANGE_LOOK, &kept[1], NULL);
    ends(1, EXCHANGE_CONFIRMED);
    end();
    drop_kept();
}
END_TEST

START_TEST(a_master_is_silent)
{
    begin(3, 2);
    story_cut(0, 2, true);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    start_one(0, 0, EXCHANGE_IN_PLACE, &kept[0], "b");
    wait(0, 10);
    keep(0, ends(0, EXCHANGE_CONFIRMED));
    start_one(1, 0, EXCHANGE_NEW, NULL, "x");
    wait(1, 10);
    ck_truth(ends(1, EXCHANGE_REFUSED), TRUTH_DROPIN, "b");
    story_cut(0, 2, false);
    world_run_ms(3000);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "c"));
    world_run_ms(20);
    ck_stands("c", "c", "c");
    story_cut(0, 2, true);
    does(0, EXCHANGE_END, &kept[0], NULL);
    ck_stands("", "", "c");
    world_run_ms(2000);
    story_cut(0, 2, false);
    world_run_ms(3000);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

/* What creates it comes too late to one master, what ends it comes in time: it is not planted
 * behind its end. */
START_TEST(nothing_is_made_good_behind_its_end)
{
    begin(3, 1);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    fake_server_lapse(&world.servers[2], "holdfast:{n}", "-");
    story_cut(0, 2, true);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "b"));
    does(0, EXCHANGE_END, &kept[0], NULL);
    story_cut(0, 2, false);
    world_run_ms(3000);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

/* A master that has missed a change misses the end, too. */
START_TEST(an_earlier_version_ends_as_well)
{
    begin(3, 1);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    story_cut(0, 2, true);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "b"));
    world_run_ms(1000);
    fake_master_break(world.brokers[0].masters[2]);
    does(0, EXCHANGE_END, &kept[0], NULL);
    world_run_ms(1000);
    ck_stands("", "", "a");
    story_cut(0, 2, false);
    world_run_ms(3000);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

/* ---- made whole ---- */

/* Cut off from this master, and what was said to it is lost. */
static void lose_link(int broker, int server)
{
    story_cut(broker, server, true);
    fake_master_break(world.brokers[broker].masters[server]);
}

/* It is there for as long as it was asked for. */
static void ck_lasts(int server, int64_t since_ms)
{
    int64_t left_ms = world_lock_at(server, "n")->left_ms,
            passed_ms = sim_now_us() / 1000 - since_ms;
    ck_assert_int_ge(left_ms, LEASE_MS - passed_ms - 20);
    ck_assert_int_le(left_ms, LEASE_MS - passed_ms + 200);
}

/* The loser of a race has one master until it has undone it. */
START_TEST(the_winner_gets_what_the_loser_had)
{
    begin(3, 2);
    cut_all_but(1, 2, true);
    story_cut(0, 2, true);
    int64_t since_ms = sim_now_us() / 1000;
    start_one(0, 0, EXCHANGE_NEW, NULL, "a");
    start_one(1, 1, EXCHANGE_NEW, NULL, "b");
    world_run_ms(20);
    story_cut(0, 2, false);
    story_cut(1, 2, true);
    ends(0, EXCHANGE_CONFIRMED);
    world_run_ms(1000);
    ck_stands("a", "a", "b");
    for (int i = 0; i < 3; i++)
        story_cut(1, i, false);
    world_run_ms(3000);
    ck_stands("a", "a", "a");
    ck_lasts(2, since_ms);
    end();
}
END_TEST

/* Taken, changed or handed over while a master could not be reached: it hears of it later. */
START_TEST(what_a_master_missed_it_gets_later)
{
    static const enum exchange_what whats[] = {EXCHANGE_NEW, EXCHANGE_IN_PLACE, EXCHANGE_NEW};
    begin(3, 1);
    const struct truth *guess = _i == 0 ? NULL : keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    lose_link(0, 2);
    int64_t since_ms = sim_now_us() / 1000;
    start_one(0, 0, whats[_i], guess, "b");
    ends(0, EXCHANGE_CONFIRMED);
    lose_link(0, 2);
    world_run_ms(20000);
    ck_stands("b", "b", _i == 0 ? "" : "a");
    story_cut(0, 2, false);
    world_run_ms(12000);
    ck_stands("b", "b", "b");
    ck_lasts(2, since_ms);
    end();
    drop_kept();
}
END_TEST

/* What was missed has ended meanwhile, or is another: it does not come back. */
START_TEST(what_has_ended_is_not_made_whole)
{
    begin(3, 2);
    lose_link(0, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    lose_link(0, 2);
    does(_i % 2, EXCHANGE_END, &kept[0], NULL);
    if (_i > 1)
        does(1, EXCHANGE_NEW, NULL, "b");
    world_run_ms(5000);
    story_cut(0, 2, false);
    world_run_ms(12000);
    if (_i > 1)
        ck_stands("b", "b", "b");
    else
        ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

/* Its broker has died, a master has missed its last change, and somebody looks. */
START_TEST(who_looks_makes_an_earlier_version_whole)
{
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    lose_link(0, 2);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "b"));
    world_broker_kill(0);
    world_run_ms(1000);
    ck_stands("b", "b", "a");
    does(1, EXCHANGE_LOOK, &kept[0], NULL);
    world_run_ms(20);
    ck_stands("b", "b", "b");
    ck_assert_str_eq(world_lock_at(2, "n")->op, kept[0].op);
    end();
    drop_kept();
}
END_TEST

/* Another change of the same state is no earlier version, whoever looks: it may be confirmed yet.
 */
START_TEST(who_looks_overwrites_no_rival)
{
    begin(3, 3);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(1, 2, true);
    story_cut(0, 2, true);
    start_one(1, 1, EXCHANGE_IN_PLACE, &kept[0], "b");
    world_run_ms(20);
    lose_link(1, 2);
    world_broker_kill(1);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "c"));
    lose_link(0, 2);
    does(2, EXCHANGE_LOOK, &kept[0], NULL);
    world_run_ms(200);
    ck_stands("c", "c", "b");
    world_run_ms(12000); /* now it is certain that it will not */
    ck_stands("c", "c", "c");
    end();
    drop_kept();
}
END_TEST

/* Who changes a hold, and not its time, knows of that no more than it was when he asked. */
START_TEST(a_change_without_a_time_keeps_it)
{
    begin(3, 2);
    int64_t since_ms = sim_now_us() / 1000;
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    item(1, 0, "n", EXCHANGE_IN_PLACE, &kept[0], "b");
    all[1].items[0].lease_ms = LEASE_MS / 2;
    all[1].items[0].keeps_time = true;
    start(1, _i, 1);
    ends(1, EXCHANGE_CONFIRMED);
    world_run_ms(20);
    ck_stands("b", "b", "b");
    for (int i = 0; i < 3; i++)
        ck_lasts(i, since_ms);
    end();
    drop_kept();
}
END_TEST

/* What is put back lasts for what it may have had, and not only for what was known of that. */
START_TEST(what_is_put_back_lasts_as_long)
{
    enum { LATE_MS = 80 };
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    int64_t since_ms = sim_now_us() / 1000, latency_us = fake_net.latency_max_us;
    fake_net.latency_min_us = fake_net.latency_max_us = LATE_MS * 1000 / 2;
    keep(1, does(1, EXCHANGE_LOOK, &kept[0], NULL));
    fake_net.latency_min_us = fake_net.latency_max_us = latency_us;
    ck_assert_int_ge(kept[1].slack_ms, LATE_MS);
    is_told = false;
    cut_all_but(1, 0, true);
    start_one(1, 1, EXCHANGE_IN_PLACE, &kept[1], "b");
    ends(1, EXCHANGE_FAILED);
    is_told = true;
    world_run_ms(20);
    ck_stands("a", "a", "a");
    ck_assert_int_ge(world_lock_at(0, "n")->left_ms,
                     since_ms + LEASE_MS - sim_now_us() / 1000 - 20);
    end();
    drop_kept();
}
END_TEST

/* What somebody has left is written anew on a master that has nothing, once its own broker has had
 * the time to do it. */
START_TEST(who_looks_writes_anew_what_is_left)
{
    begin(3, 2);
    int64_t since_ms = sim_now_us() / 1000;
    lose_link(0, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    world_broker_kill(0);
    world_run_ms(1000);
    does(1, EXCHANGE_LOOK, &kept[0], NULL);
    world_run_ms(100);
    ck_stands("a", "a", "");
    world_run_ms(10000);
    ck_stands("a", "a", "a");
    ck_lasts(0, since_ms);
    ck_lasts(2, since_ms);
    end();
    drop_kept();
}
END_TEST

/* A look that no majority confirms makes nothing whole. */
START_TEST(a_look_that_is_split_changes_nothing)
{
    begin(3, 3);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(0, 0, true);
    cut_all_but(1, 1, true);
    start_one(1, 0, EXCHANGE_IN_PLACE, &kept[0], "b");
    start_one(2, 1, EXCHANGE_IN_PLACE, &kept[0], "c");
    world_run_ms(20);
    for (int i = 0; i < 2; i++) {
        lose_link(i, 1 - i);
        lose_link(i, 2);
        world_broker_kill(i);
    }
    ck_stands("b", "c", "a");
    start_one(3, 2, EXCHANGE_LOOK, &kept[0], NULL);
    ck_truth(ends(3, EXCHANGE_REFUSED), TRUTH_SPLIT, NULL);
    world_run_ms(12000);
    ck_stands("b", "c", "a");
    end();
    drop_kept();
}
END_TEST

/* What a dead broker should have ended is still there on one master: the next hold gets that one
 * too, once it is certain that nobody can have it. */
START_TEST(what_nobody_has_is_overwritten)
{
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    lose_link(0, 2);
    does(0, EXCHANGE_END, &kept[0], NULL);
    world_broker_kill(0);
    world_run_ms(1000);
    ck_stands("", "", "a");
    does(1, EXCHANGE_NEW, NULL, "b");
    world_run_ms(500);
    ck_stands("b", "b", "a");
    world_run_ms(12000);
    ck_stands("b", "b", "b");
    end();
    drop_kept();
}
END_TEST

START_TEST(a_late_create_finds_the_way_shut)
{
    begin(3, 2);
    story_cut(0, 2, true);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    does(1, EXCHANGE_END, &kept[0], NULL);
    world_run_ms(10);
    story_cut(0, 2, false);
    world_run_ms(3000);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

START_TEST(a_master_that_lost_its_data_gets_it_back)
{
    begin(3, 1);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    story_restart_empty(2);
    ck_stands("a", "a", "");
    ck_assert_int_eq(story_state(0, 2), MASTER_QUARANTINE);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "b"));
    world_run_ms(20);
    ck_stands("b", "b", "b");
    story_cut(0, 1, true); /* what stands there is no vote */
    start_one(1, 0, EXCHANGE_LOOK, &kept[0], NULL);
    ends(1, EXCHANGE_FAILED);
    end();
    drop_kept();
}
END_TEST

START_TEST(an_end_that_failed_goes_on)
{
    begin(3, 2);
    keep(0, does(1, EXCHANGE_NEW, NULL, "a"));
    cut_all_but(0, 0, true);
    start_one(1, 0, EXCHANGE_END, &kept[0], NULL);
    ends(1, EXCHANGE_FAILED);
    ck_stands("", "a", "a");
    cut_all_but(0, 0, false);
    world_run_ms(3000);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

/* Two brokers end what one master has lost: each finds one copy, and neither knows of the other. */
START_TEST(an_end_in_doubt_is_pursued)
{
    begin(3, 2);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    fake_server_lapse(&world.servers[2], "holdfast:{n}", "-");
    story_cut(0, 1, true);
    story_cut(1, 0, true);
    start_one(1, 0, EXCHANGE_END, &kept[0], NULL);
    start_one(2, 1, EXCHANGE_END, &kept[0], NULL);
    world_run_ms(20);
    ck_stands("", "", "");
    story_cut(0, 1, false);
    story_cut(1, 0, false);
    ends(1, EXCHANGE_FAILED);
    ends(2, EXCHANGE_FAILED);
    world_run_ms(100);
    ck_stands("", "", "");
    end();
    drop_kept();
}
END_TEST

START_TEST(all_of_a_group_or_none)
{
    begin(3, 2);
    item(1, 0, "n", EXCHANGE_NEW, NULL, "a");
    item(1, 1, "m", EXCHANGE_NEW, NULL, "b");
    start(1, 0, 2);
    ends(1, EXCHANGE_CONFIRMED);
    keep(0, &all[1].items[0].truth);
    keep(1, &all[1].items[1].truth);
    ck_truth(&kept[1], TRUTH_DROPIN, "b");
    item(1, 0, "n", EXCHANGE_END, &kept[0], NULL);
    item(1, 1, "m", EXCHANGE_NEW, NULL, "c");
    start(1, 1, 2);
    ck_truth(ends(1, EXCHANGE_REFUSED), TRUTH_DROPIN, "a");
    ck_truth(&all[1].items[1].truth, TRUTH_DROPIN, "b");
    ck_stands("a", "a", "a");
    cut_all_but(1, 0, true);
    item(1, 0, "n", EXCHANGE_END, &kept[0], NULL);
    item(1, 1, "m", EXCHANGE_IN_PLACE, &kept[1], "c");
    start(1, 1, 2);
    world_run_ms(20);
    ck_stands("", "a", "a");
    ck_assert_str_eq(world_lock_at(0, "m")->owner, "drop-in s t c");
    ends(1, EXCHANGE_FAILED);
    world_run_ms(20);
    ck_stands("a", "a", "a");
    ck_assert_str_eq(world_lock_at(0, "m")->owner, "drop-in s t b");
    cut_all_but(1, 0, false);
    world_run_ms(3000);
    ck_stands("a", "a", "a");
    item(1, 0, "n", EXCHANGE_END, &kept[0], NULL);
    item(1, 1, "m", EXCHANGE_LOOK, &kept[1], NULL);
    start(1, 1, 2);
    ends(1, EXCHANGE_CONFIRMED);
    world_run_ms(20);
    ck_assert_int_eq(world_copies("n"), 0);
    ck_assert_int_eq(world_copies("m"), 3);
    end();
    drop_kept();
}
END_TEST

START_TEST(different_tokens_are_agreed_on)
{
    begin(3, 1);
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    does(0, EXCHANGE_END, &kept[0], NULL);
    int64_t high = kept[0].fence + ((int64_t)1 << 40);
    story_set_counter(0, high);
    const struct truth *t = does(0, EXCHANGE_NEW, NULL, "a");
    world_run_ms(20);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(world_lock_at(i, "n")->token, t->fence);
    ck_assert_int_eq(t->fence, high + 1);
    keep(0, t);
    t = does(0, EXCHANGE_IN_PLACE, &kept[0], "b");
    ck_assert_int_eq(t->fence, high + 1);
    end();
    drop_kept();
}
END_TEST

/* Two brokers that take it in the same millisecond, with the same floor: what the one changes later
 * is no later version of what the other one has left behind. */
START_TEST(the_same_floor_makes_no_hold_the_same)
{
    begin(3, 2);
    cut_all_but(1, 2, true);
    story_cut(0, 2, true);
    start_one(0, 0, EXCHANGE_NEW, NULL, "a");
    start_one(1, 1, EXCHANGE_NEW, NULL, "b");
    world_run_ms(20);
    keep(0, ends(0, EXCHANGE_CONFIRMED));
    ck_stands("a", "a", "b");
    ck_assert_int_eq(atoll(world_lock_at(2, "n")->seq), kept[0].token);
    story_cut(1, 2, true); /* what undoes it is on its way */
    story_cut(0, 2, false);
    keep(0, does(0, EXCHANGE_IN_PLACE, &kept[0], "c"));
    ck_assert_str_ne(kept[0].op, kept[0].birth);
    world_run_ms(20);
    ck_stands("c", "c", "b");
    does(0, EXCHANGE_END, &kept[0], NULL);
    world_run_ms(20);
    ck_stands("", "", "b");
    end();
    drop_kept();
}
END_TEST

START_TEST(native_locks_are_in_the_way)
{
    begin(3, 2);
    world_connect(0, 0, "x");
    story_gets(0, "LOCK n LEASE 5000");
    start_one(1, 1, EXCHANGE_NEW, NULL, "a");
    const struct truth *t = ends(1, EXCHANGE_REFUSED);
    ck_assert_int_eq(t->kind, TRUTH_NATIVE);
    ck_assert_msg(truth_len(t) == 1 && *truth_bytes(t) == 'x', "not its owner");
    keep(0, t);
    ck_assert_int_eq(does(1, EXCHANGE_LOOK, &kept[0], NULL)->kind, TRUTH_NATIVE);
    story_frees(0);
    keep(0, does(1, EXCHANGE_NEW, NULL, "a"));
    world_say(0, "LOCK n");
    world_run_ms(20);
    story_answers(0, "nil");
    end();
    drop_kept();
}
END_TEST

/* Who waits with LOCK, here or at another broker, gets it when it ends. */
START_TEST(who_waits_is_called_up)
{
    begin(3, 2);
    world_connect(0, _i, "x");
    keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    world_say(0, "LOCK n WAIT 50000");
    world_run_ms(100);
    story_answers(0, "");
    does(0, EXCHANGE_END, &kept[0], NULL);
    world_run_ms(30);
    story_granted(0);
    end();
    drop_kept();
}
END_TEST

/* Somebody ends on one master what a slow one does only then: taken, or changed in place. */
START_TEST(what_was_forced_is_not_confirmed)
{
    begin(3, 2);
    const struct truth *guess = _i == 0 ? NULL : keep(0, does(0, EXCHANGE_NEW, NULL, "a"));
    story_cut(0, 1, true);
    story_cut(0, 2, true);
    story_cut(1, 1, true);
    start_one(1, 0, _i == 0 ? EXCHANGE_NEW : EXCHANGE_IN_PLACE, guess, "b");
    world_run_ms(5);
    const char *before = _i == 0 ? "" : "a";
    ck_stands("b", before, before);
    kept[1].kind = TRUTH_DROPIN;
    strcpy(kept[1].op, world_lock_at(0, "n")->op);
    start_one(2, 1, EXCHANGE_END, &kept[1], NULL);
    world_run_ms(10);
    ck_stands("", before, before);
    story_cut(0, 1, false);
    ends(1, EXCHANGE_FAILED);
    story_cut(0, 2, false);
    story_cut(1, 1, false);
    world_run_ms(3000);
    ck_assert_str_eq(stands(0), "");
    ck_assert_str_ne(stands(1), "b");
    ck_assert_str_eq(stands(2), before);
    end();
    drop_kept();
}
END_TEST

/* Too late to be of use: it is not granted, and nothing of it is left. */
START_TEST(what_comes_too_late_is_not_granted)
{
    begin(3, 1);
    fake_net = (struct fake_net){.latency_min_us = 60000, .latency_max_us = 60000};
    item(1, 0, "n", EXCHANGE_NEW, NULL, "a");
    all[1].items[0].lease_ms = 150;
    start(1, 0, 1);
    ends(1, EXCHANGE_FAILED);
    world_run_ms(1000);
    ck_assert_int_eq(world_copies("n"), 0);
    end();
}
END_TEST

/* ---- at random ---- */

enum { CHANGES_MAX = 4000 };
static char guesses[CHANGES_MAX][DROPIN_OP_MAX + 1]; /* of the changes that were confirmed */
static int n_guesses;
static struct truth known[ASKED];

/* Of one state one change at most was confirmed. */
static void note_confirmed(const struct asked *a)
{
    const struct exchange_item *it = &a->items[0];
    if (it->what == EXCHANGE_LOOK || a->guess[0].kind == TRUTH_FREE)
        return;
    for (int i = 0; i < n_guesses; i++)
        ck_assert_str_ne(guesses[i], a->guess[0].op);
    ck_assert_int_lt(n_guesses, CHANGES_MAX);
    strcpy(guesses[n_guesses++], a->guess[0].op);
}

static void note_end(int i)
{
    struct asked *a = &all[i];
    if (a->end == EXCHANGE_CONFIRMED)
        note_confirmed(a);
    const struct truth *t = &a->items[0].truth;
    bool is_known = a->end != EXCHANGE_FAILED && (t->kind == TRUTH_FREE || t->kind == TRUTH_DROPIN);
    const struct truth nothing = {.kind = TRUTH_FREE};
    truth_copy(&known[i], is_known ? t : &nothing);
}

static void start_any(int i)
{
    static const enum exchange_what held[] = {EXCHANGE_LOOK, EXCHANGE_IN_PLACE, EXCHANGE_IN_PLACE,
                                              EXCHANGE_NEW, EXCHANGE_END};
    enum exchange_what what = known[i].kind == TRUTH_FREE ? EXCHANGE_NEW : held[sim_random(5)];
    char state[16];
    snprintf(state, sizeof state, "%d", (int)sim_random(1000));
    item(i, 0, "n", what, &known[i], state);
    all[i].items[0].lease_ms = 20000;
    start(i, i % world.conf.n_brokers, 1);
}

static void some_fault(void)
{
    int broker = (int)sim_random(3), server = (int)sim_random(3);
    switch (sim_random(400)) {
    case 0:
        story_cut(broker, server, true);
        break;
    case 1:
    case 2:
        for (int i = 0; i < 9; i++)
            story_cut(i / 3, i % 3, false);
        break;
    case 3:
        fake_master_break(world.brokers[broker].masters[server]);
        break;
    default:
        break;
    }
}

START_TEST(many_at_once)
{
    const char *first = getenv("EXCHANGE_SEED");
    int rests[ASKED] = {0}; /* before the next exchange, in ms */
    n_guesses = 0;
    is_told = false;
    world_defaults(&story_conf, (uint64_t)((first ? atoi(first) : 1) + _i));
    story_conf.n_servers = story_conf.n_brokers = 3;
    world_begin(&story_conf);
    world_settle();
    fake_net = (struct fake_net){.latency_min_us = 200,
                                 .latency_max_us = 3000,
                                 .slow_per_mille = 30,
                                 .slow_us = 300000,
                                 .copy_per_mille = 20,
                                 .copy_us = 1000000};
    for (int i = 0; i < 6; i++) {
        known[i].kind = TRUTH_FREE;
        start_any(i);
    }
    for (int step = 0; step < 6000; step++) {
        world_run_ms(1);
        some_fault();
        for (int i = 0; i < 6; i++) {
            if (all[i].has_ended) {
                note_end(i);
                all[i].has_ended = false;
                rests[i] = all[i].end == EXCHANGE_CONFIRMED ? 1 : 1 + (int)sim_random(60);
            }
            if (rests[i] > 0 && --rests[i] == 0)
                start_any(i);
        }
    }
    for (int i = 0; i < 9; i++)
        story_cut(i / 3, i % 3, false);
    ck_assert_int_gt(n_guesses, 20);
    world_run_ms(21000);
    ck_assert_int_eq(world_copies("n"), 0); /* each hold is over, and none comes back */
    end();
    is_told = true;
    for (int i = 0; i < ASKED; i++) {
        truth_fini(&known[i]);
        known[i] = (struct truth){0};
    }
}
END_TEST

static Suite *exchange_suite(void)
{
    const char *seeds = getenv("EXCHANGE_SEEDS");
    Suite *s = suite_create("exchange");
    TCase *c = tcase_create("stories");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, from_free_to_free, 1, 4);
    tcase_add_test(c, a_wrong_guess_brings_the_truth);
    tcase_add_loop_test(c, of_two_that_guess_alike_one_is_confirmed, 0, 3);
    tcase_add_loop_test(c, what_a_minority_did_is_put_back, 0, 2);
    tcase_add_loop_test(c, it_is_put_back_over_another_link, 0, 2);
    tcase_add_test(c, a_new_hold_of_a_minority_is_released);
    tcase_add_test(c, a_minority_is_no_truth);
    tcase_add_test(c, a_master_is_silent);
    tcase_add_test(c, nothing_is_made_good_behind_its_end);
    tcase_add_test(c, an_earlier_version_ends_as_well);
    tcase_add_test(c, the_winner_gets_what_the_loser_had);
    tcase_add_loop_test(c, what_a_master_missed_it_gets_later, 0, 3);
    tcase_add_loop_test(c, what_has_ended_is_not_made_whole, 0, 4);
    tcase_add_test(c, who_looks_makes_an_earlier_version_whole);
    tcase_add_test(c, who_looks_overwrites_no_rival);
    tcase_add_test(c, who_looks_writes_anew_what_is_left);
    tcase_add_loop_test(c, a_change_without_a_time_keeps_it, 0, 2);
    tcase_add_test(c, what_is_put_back_lasts_as_long);
    tcase_add_test(c, a_look_that_is_split_changes_nothing);
    tcase_add_test(c, what_nobody_has_is_overwritten);
    tcase_add_test(c, a_late_create_finds_the_way_shut);
    tcase_add_test(c, a_master_that_lost_its_data_gets_it_back);
    tcase_add_test(c, an_end_that_failed_goes_on);
    tcase_add_test(c, an_end_in_doubt_is_pursued);
    tcase_add_test(c, all_of_a_group_or_none);
    tcase_add_test(c, different_tokens_are_agreed_on);
    tcase_add_test(c, the_same_floor_makes_no_hold_the_same);
    tcase_add_test(c, native_locks_are_in_the_way);
    tcase_add_loop_test(c, who_waits_is_called_up, 0, 2);
    tcase_add_loop_test(c, what_was_forced_is_not_confirmed, 0, 2);
    tcase_add_test(c, what_comes_too_late_is_not_granted);
    tcase_add_loop_test(c, many_at_once, 0, seeds ? atoi(seeds) : 10);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(exchange_suite());
}
