/*
 * The partitions of a Redis Cluster (redis/partition.h): each is as a master alone, for its names.
 * Several names of several partitions are held all or none.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "story.h"
#include "suite.h"

/* ---- the scene ---- */

/* Returns the one-letter name that is number `i` of those in this partition. */
static const char *name_in(int partition, int i)
{
    static char names[26][2];
    for (int letter = 0; letter < 26; letter++) {
        names[letter][0] = (char)('a' + letter);
        if (world_server_of(names[letter]) == partition && i-- == 0)
            return names[letter];
    }
    ck_abort_msg("too few letters");
    return NULL;
}

static int64_t gets(int app, const char *name)
{
    char words[32];
    snprintf(words, sizeof words, "LOCK %s", name);
    return story_gets(app, words);
}

/* One name of each partition, with blanks between. */
static const char *one_of_each(int partitions)
{
    static char names[32];
    names[0] = '\0';
    for (int p = 0; p < partitions; p++)
        sprintf(names + strlen(names), " %s", name_in(p, 0));
    return names;
}

static void are_held(int partitions, int copies)
{
    for (int p = 0; p < partitions; p++)
        ck_assert_int_eq(world_copies(name_in(p, 0)), copies);
}

static bool is_granted(int app)
{
    return world_reply(app)[0] == '[';
}

/* ---- where names are ---- */

START_TEST(each_name_is_in_its_partition)
{
    story_begin_parts(_i, 1, "x");
    for (int p = 0; p < _i; p++) {
        for (int n = 0; n < 3; n++) {
            const char *name = name_in(p, n);
            (void)gets(0, name);
            ck_assert_int_eq(world_copies(name), 1);
            ck_assert(world_lock_at(p, name) != NULL);
        }
    }
    world_end();
}
END_TEST

/* A line, and who is called up, at another broker. */
START_TEST(waiters_of_each_partition_are_served)
{
    story_begin_parts(2, 2, "xy");
    for (int p = 0; p < 2; p++) {
        const char *name = name_in(p, 0);
        int64_t token = gets(0, name);
        world_say(1, "LOCK %s WAIT 5000", name);
        world_run_ms(20);
        world_say(0, "UNLOCK %s", name);
        world_run_ms(20);
        story_answers(0, "1");
        ck_assert_int_gt(story_granted(1), token);
    }
    world_end();
}
END_TEST

/* ---- several names ---- */

START_TEST(names_of_all_partitions_are_held)
{
    story_begin_parts(_i, 1, "x");
    world_say(0, "MLOCK %d%s", _i, one_of_each(_i));
    world_run_ms(10);
    ck_assert(is_granted(0));
    are_held(_i, 1);
    world_say(0, "MUNLOCK %d%s", _i, one_of_each(_i));
    world_run_ms(10);
    are_held(_i, 0);
    world_end();
}
END_TEST

/* The last partition does not answer: what the others have granted is given back. */
START_TEST(none_is_held_where_a_partition_is_lost)
{
    story_begin_parts(_i, 2, "xy");
    story_cut(0, _i - 1, true);
    world_say(0, "MLOCK %d%s", _i, one_of_each(_i));
    world_run_ms(story_conf.broker.request_timeout_ms + 20);
    story_answers(0, "-NOQUORUM");
    are_held(_i, 0);
    for (int p = 0; p < _i; p++)
        (void)gets(1, name_in(p, 0));
    story_cut(0, _i - 1, false); /* what was held up arrives, and is of no use */
    world_run_ms(100);
    for (int p = 0; p < _i; p++) {
        const struct fake_lock *l = world_lock_at(p, name_in(p, 0));
        ck_assert(l && strcmp(l->owner, "y") == 0);
    }
    world_end();
}
END_TEST

/* The reply of an MLOCK stands behind that of a partition which is slow, and with it that of a LOCK
 * that has entered one of its names again. Meanwhile another connection of the owner leaves both
 * once: nothing counts any more that one of the replies would tell of, and both say nil. */
START_TEST(what_a_late_reply_does_not_tell_of_is_given_back)
{
    story_begin_parts(2, 1, "xxy");
    const char *slow = name_in(1, 0);
    char n[16], m[16];
    strcpy(n, name_in(0, 0));
    strcpy(m, name_in(0, 1));
    gets(0, slow);
    story_cut(0, 1, true);
    world_say(0, "UNLOCK %s", slow);
    world_say(0, "MLOCK 2 %s %s", n, m);
    world_say(0, "LOCK %s", n);
    world_run_ms(20);
    world_say(1, "UNLOCK %s", n);
    world_say(1, "UNLOCK %s", m);
    world_run_ms(20);
    story_answers(1, "0");
    story_answers(1, "1");
    story_answers(0, "");
    world_run_ms(story_conf.broker.request_timeout_ms);
    story_answers(0, "-NOQUORUM");
    story_answers(0, "nil");
    story_answers(0, "nil");
    (void)gets(2, n);
    story_cut(0, 1, false);
    world_end();
}
END_TEST

START_TEST(none_is_held_where_one_is_taken)
{
    story_begin_parts(4, 2, "xy");
    int64_t token = gets(1, name_in(_i, 0));
    world_say(0, "MLOCK 4%s", one_of_each(4));
    world_run_ms(20);
    story_answers(0, "nil");
    for (int p = 0; p < 4; p++)
        ck_assert_int_eq(world_copies(name_in(p, 0)), p == _i);
    world_say(0, "MLOCK 4%s WAIT 5000", one_of_each(4));
    world_run_ms(20);
    for (int p = 0; p < 4; p++)
        ck_assert_int_eq(world_copies(name_in(p, 0)), p == _i);
    world_say(1, "UNLOCK %s", name_in(_i, 0));
    world_run_ms(20);
    story_answers(1, "1");
    ck_assert(is_granted(0));
    ck_assert_int_gt(token, 0);
    are_held(4, 1);
    world_end();
}
END_TEST

/* ---- a partition begins anew ---- */

/* What is held there is put there again, and nothing else; the others go on. */
START_TEST(one_partition_forgets_everything)
{
    story_begin_parts(2, 1, "xx");
    int64_t token = gets(0, name_in(0, 0));
    (void)gets(0, name_in(1, 0));
    story_restart_empty(0);
    ck_assert_int_eq(story_state(0, 0), MASTER_QUARANTINE);
    ck_assert_int_eq(story_state(0, 1), MASTER_ACTIVE);
    struct fake_lock first;
    for (int p = 0; p < 2; p++)
        ck_assert_int_eq(fake_server_count_locks(&world.servers[p], &first), 1);
    ck_assert(world_lock_at(0, name_in(0, 0)) != NULL);
    (void)gets(0, name_in(1, 1));
    world_say(0, "LOCK %s", name_in(0, 1));
    world_run_ms(10);
    story_answers(0, "-NOQUORUM");
    world_settle();
    ck_assert_int_gt(gets(0, name_in(0, 1)), token);
    for (const char *push; *(push = world_push(0));) {
        ck_assert(strncmp(push, "lost", 4) != 0);
        ck_assert_ptr_nonnull(strstr(push, name_in(0, 0)));
    }
    world_end();
}
END_TEST

/* The roll call of one asks no other one. */
START_TEST(one_partition_is_called_by_itself)
{
    story_list("b0,b1", NULL);
    story_begin_parts(4, 2, "xy");
    world_run_ms(3 * story_conf.broker.max_lease_ms);
    int64_t token = gets(0, name_in(2, 0));
    story_cut(0, 3, true);
    story_restart_empty(2);
    world_run_ms(200);
    for (int b = 0; b < 2; b++)
        ck_assert_int_eq(story_state(b, 2), MASTER_ACTIVE);
    ck_assert_int_eq(world_copies(name_in(2, 0)), 1);
    ck_assert_int_gt(gets(1, name_in(2, 1)), token);
    world_end();
    story_list(NULL, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("partitions");
    TCase *c = tcase_create("partitions");
    tcase_add_loop_test(c, each_name_is_in_its_partition, 1, 3);
    tcase_add_loop_test(c, each_name_is_in_its_partition, 4, 5);
    tcase_add_test(c, waiters_of_each_partition_are_served);
    tcase_add_loop_test(c, names_of_all_partitions_are_held, 2, 3);
    tcase_add_loop_test(c, names_of_all_partitions_are_held, 4, 5);
    tcase_add_loop_test(c, none_is_held_where_a_partition_is_lost, 2, 3);
    tcase_add_loop_test(c, none_is_held_where_a_partition_is_lost, 4, 5);
    tcase_add_test(c, what_a_late_reply_does_not_tell_of_is_given_back);
    tcase_add_loop_test(c, none_is_held_where_one_is_taken, 0, 4);
    tcase_add_test(c, one_partition_forgets_everything);
    tcase_add_test(c, one_partition_is_called_by_itself);
    suite_add_tcase(s, c);
    return suite_run(s);
}
