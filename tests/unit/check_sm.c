/* Allowed moves happen and are traced, all others end the process, and silence costs nothing. */
#include "base/sm.h"

#include <signal.h>
#include <string.h>

#include "suite.h"

enum { IDLE, BUSY, DEAD, LAST = 31 };

static const struct sm_state states[] = {
    [IDLE] = {"idle", 1U << BUSY | 1U << DEAD},
    [BUSY] = {"busy", 1U << IDLE | 1U << BUSY | 1U << LAST},
    [DEAD] = {"dead", 0},
    [LAST] = {"last", 0},
};

static char seen[256];
static int lines, evaluated;

static void keep_line(void *arg, enum log_level level, const char *line)
{
    (void)arg;
    (void)level;
    lines++;
    snprintf(seen, sizeof(seen), "%s", line);
}

static const char *object_name(void)
{
    evaluated++;
    return "hold 7";
}

START_TEST(moves)
{
    uint8_t state = IDLE;
    ck_assert_str_eq(sm_name(states, state), "idle");
    sm_move(states, &state, "hold 7", BUSY);
    ck_assert_int_eq(state, BUSY);
    sm_move(states, &state, "hold 7", BUSY);
    sm_move(states, &state, "hold 7", IDLE);
    ck_assert_int_eq(state, IDLE);
    sm_move(states, &state, "hold 7", BUSY);
    sm_move(states, &state, "hold 7", LAST);
    ck_assert_str_eq(sm_name(states, state), "last");
}
END_TEST

START_TEST(allows)
{
    ck_assert(sm_allows(states, IDLE, BUSY));
    ck_assert(sm_allows(states, BUSY, LAST));
    ck_assert(!sm_allows(states, IDLE, IDLE));
    ck_assert(!sm_allows(states, DEAD, IDLE));
    ck_assert(!sm_allows(states, BUSY, -1));
    ck_assert(!sm_allows(states, BUSY, 32));
    ck_assert(!sm_allows(states, BUSY, 63));
}
END_TEST

START_TEST(traces)
{
    uint8_t state = IDLE;
    log_set_sink(keep_line, NULL);
    log_set_level(LOG_LEVEL_DEBUG);
    sm_move(states, &state, object_name(), BUSY);
    ck_assert_int_eq(lines, 0);
    ck_assert_int_eq(evaluated, 0);
    log_set_level(LOG_LEVEL_TRACE);
    sm_move(states, &state, object_name(), IDLE);
    ck_assert_int_eq(lines, 1);
    ck_assert_int_eq(evaluated, 1);
    ck_assert_str_eq(seen, "hold 7: state busy -> idle");
}
END_TEST

START_TEST(arguments_once)
{
    uint8_t row[2] = {IDLE, IDLE};
    uint8_t *state = row;
    int to = BUSY;
    sm_move(states, state++, "hold 7", to++);
    ck_assert_ptr_eq(state, row + 1);
    ck_assert_int_eq(to, BUSY + 1);
    ck_assert_int_eq(row[0], BUSY);
    ck_assert_int_eq(row[1], IDLE);
}
END_TEST

START_TEST(refuses)
{
    static const struct {
        uint8_t from;
        int to;
    } rows[] = {{IDLE, IDLE}, {DEAD, IDLE}, {BUSY, DEAD}, {BUSY, 32}, {BUSY, -1}};
    uint8_t state = rows[_i].from;
    sm_move(states, &state, "hold 7", rows[_i].to);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sm");
    TCase *tc = tcase_create("sm");
    tcase_add_test(tc, moves);
    tcase_add_test(tc, allows);
    tcase_add_test(tc, traces);
    tcase_add_test(tc, arguments_once);
    tcase_add_loop_test_raise_signal(tc, refuses, SIGABRT, 0, 5);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
