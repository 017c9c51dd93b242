/* Which broker clients are sent to. */
#include <check.h>
#include <stdio.h>

#include "session/peers.h"
#include "suite.h"

static struct peers p;
static struct peers_move moves[PEERS_MOVES_MAX];
static int n_moves;

static struct peers_address at(char name)
{
    struct peers_address a = {.port = 5625};

    snprintf(a.host, sizeof a.host, "%c", name);
    return a;
}

/* This broker is 'a', with the peers b, c... */
static void begin(int n)
{
    struct peers_address own = at('a'), others[PEERS_MAX];

    for (int i = 0; i < n; i++)
        others[i] = at((char)('b' + i));
    peers_init(&p);
    peers_configure(&p, &own, others, n);
}

static char named(int64_t now_ms)
{
    n_moves = peers_judge(&p, now_ms, moves);
    return peers_named(&p)->host[0];
}

/* The moves of the last judgement, "a>b". */
static const char *told(void)
{
    static char text[4 * PEERS_MOVES_MAX + 1];
    int len = 0;

    text[0] = '\0';
    for (int i = 0; i < n_moves; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%s>%s", i > 0 ? " " : "",
                        moves[i].from.host, moves[i].to.host);
    return text;
}

START_TEST(itself_while_it_can_grant)
{
    begin(2);
    peers_hear(&p, 0, PEERS_WELL, 0);
    peers_set_own(&p, PEERS_GRANTS, 0);
    ck_assert_int_eq(named(0), 'a');
    ck_assert_int_eq(n_moves, 0);
}
END_TEST

START_TEST(a_majority_may_be_away_for_a_moment)
{
    begin(1);
    for (int64_t t = 100; t <= 100 + PEERS_PATIENCE_MS; t += 100) {
        peers_set_own(&p, PEERS_LACKS_QUORUM, t);
        peers_hear(&p, 0, PEERS_WELL, t);
        ck_assert_int_eq(named(t), 'a');
        ck_assert(!peers_is_well(&p));
    }
    ck_assert_int_eq(named(101 + PEERS_PATIENCE_MS), 'b');
    ck_assert_str_eq(told(), "a>b");
    ck_assert_int_eq(named(102 + PEERS_PATIENCE_MS), 'b');
    ck_assert_int_eq(n_moves, 0);
    peers_set_own(&p, PEERS_GRANTS, 103 + PEERS_PATIENCE_MS);
    ck_assert_int_eq(named(103 + PEERS_PATIENCE_MS), 'a');
    ck_assert_str_eq(told(), "b>a");
    peers_set_own(&p, PEERS_LACKS_QUORUM, 104 + PEERS_PATIENCE_MS); /* counted anew */
    ck_assert_int_eq(named(104 + PEERS_PATIENCE_MS), 'a');
}
END_TEST

START_TEST(who_leaves_sends_them_away_at_once)
{
    begin(1);
    peers_hear(&p, 0, PEERS_WELL, 10);
    peers_set_own(&p, PEERS_LEAVES, 10);
    ck_assert_int_eq(named(10), 'b');
}
END_TEST

START_TEST(nobody_else_is_well)
{
    begin(2);
    peers_set_own(&p, PEERS_LEAVES, 0);
    ck_assert_int_eq(named(0), 'a'); /* none has said anything */
    peers_hear(&p, 0, PEERS_SICK, 1);
    peers_hear(&p, 1, PEERS_GONE, 1);
    ck_assert_int_eq(named(1), 'a');
    ck_assert(peers_speaks(&p, 0, 1));
    ck_assert(!peers_speaks(&p, 1, 1));
    peers_hear(&p, 1, PEERS_WELL, 2);
    ck_assert_int_eq(named(2), 'c');
}
END_TEST

START_TEST(no_detours_among_those_that_are_well)
{
    begin(2);
    peers_set_own(&p, PEERS_LEAVES, 0);
    peers_hear(&p, 1, PEERS_WELL, 0);
    ck_assert_int_eq(named(0), 'c');
    peers_hear(&p, 0, PEERS_WELL, 1);
    ck_assert_int_eq(named(1), 'c');
    peers_hear(&p, 1, PEERS_SICK, 2);
    ck_assert_int_eq(named(2), 'b');
    ck_assert_str_eq(told(), "c>b");
}
END_TEST

START_TEST(words_grow_old)
{
    begin(1);
    peers_set_own(&p, PEERS_LEAVES, 0);
    peers_hear(&p, 0, PEERS_WELL, 0);
    ck_assert_int_eq(named(PEERS_WORD_MS), 'b');
    ck_assert_int_eq(named(PEERS_WORD_MS + 1), 'a');
    ck_assert_str_eq(told(), "b>a");
}
END_TEST

/* Clients of the one that has fallen may ask here. */
START_TEST(a_fallen_peer_is_told_of)
{
    begin(2);
    peers_hear(&p, 0, PEERS_WELL, 0);
    peers_hear(&p, 1, PEERS_WELL, 0);
    ck_assert_int_eq(named(0), 'a');
    peers_hear(&p, 0, PEERS_GONE, 1);
    ck_assert_int_eq(named(1), 'a');
    ck_assert_str_eq(told(), "b>a");
    ck_assert_int_eq(named(2), 'a');
    ck_assert_int_eq(n_moves, 0);
    peers_hear(&p, 1, PEERS_SICK, 3);
    peers_set_own(&p, PEERS_LEAVES, 3);
    peers_hear(&p, 0, PEERS_WELL, 3);
    ck_assert_int_eq(named(3), 'b');
    ck_assert_str_eq(told(), "a>b c>b");
}
END_TEST

START_TEST(its_own_address_among_the_peers)
{
    struct peers_address own = at('b'), others[] = {at('a'), at('b'), at('c')};

    peers_init(&p);
    peers_configure(&p, &own, others, 3);
    ck_assert_int_eq(p.n, 2);
    ck_assert_str_eq(p.v[1].address.host, "c");
}
END_TEST

START_TEST(without_an_address_of_its_own)
{
    static const struct peers_address none = {.port = 0};

    peers_init(&p);
    peers_configure(&p, &none, NULL, 0);
    peers_set_own(&p, PEERS_LEAVES, 0);
    ck_assert_int_eq(peers_judge(&p, 0, moves), 0);
    ck_assert_ptr_null(peers_named(&p));
}
END_TEST

static Suite *peers_suite(void)
{
    Suite *suite = suite_create("peers");
    TCase *c = tcase_create("peers");
    tcase_add_test(c, itself_while_it_can_grant);
    tcase_add_test(c, a_majority_may_be_away_for_a_moment);
    tcase_add_test(c, who_leaves_sends_them_away_at_once);
    tcase_add_test(c, nobody_else_is_well);
    tcase_add_test(c, no_detours_among_those_that_are_well);
    tcase_add_test(c, words_grow_old);
    tcase_add_test(c, a_fallen_peer_is_told_of);
    tcase_add_test(c, its_own_address_among_the_peers);
    tcase_add_test(c, without_an_address_of_its_own);
    suite_add_tcase(suite, c);
    return suite;
}

int main(void)
{
    return suite_run(peers_suite());
}
