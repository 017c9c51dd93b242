/* Random calls of the scripts on a real Redis and on the store that the simulation runs them over:
 * they answer alike and leave the same behind. What the simulation shows is then true of Redis.
 *
 *   DRIFT_SEED=n     the first sequence (1)      DRIFT_SEEDS=n   how many (150)
 *   DRIFT_SHOW=1     every line with both answers
 *
 * A difference is shown as the lines of its sequence, which can go into cases.h as they are. Times
 * to live differ by the time that a call takes. A sequence in which the real side was so slow that
 * a turn (half a second) may have ended there is void. */
#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "sides.h"
#include "suite.h"

enum { STEPS = 40, OPS = 128, LINE = 1200, SLOW_MS = 250, OWNERS = 4, NAMES = 3, BROKERS = 3 };

/* What has been asked for, to come back to. */
struct op {
    char id[24], owner[8], name[8], part[24], bucket[8], line[LINE];
    int64_t token;
};

static uint64_t state;
static struct op ops[OPS];
static int n_ops, n_group;
static char lines[STEPS * 8][LINE];
static int n_lines;
static int64_t started_ms;
static bool is_alone; /* the only master: all tokens come from one counter */

static unsigned rnd(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 20) % n);
}

static bool one_in(unsigned n)
{
    return rnd(n) == 0;
}

#define ANY(words) ((words)[rnd(sizeof(words) / sizeof(words)[0])])

/* ---- making calls ---- */

/* Near the tokens that have been given: now above all of them, now not. */
static int64_t floor_of(void)
{
    return 7000000 + 3 * n_lines + (int64_t)rnd(9);
}

static const struct op *old_op(void)
{
    return &ops[rnd((unsigned)n_ops)];
}

static void name_it(struct op *o, unsigned name)
{
    snprintf(o->name, sizeof o->name, "%c", 'm' + (int)name);
    if (is_alone)
        strcpy(o->bucket, "base");
    else
        snprintf(o->bucket, sizeof o->bucket, "%u", 7 + name % 2);
}

static struct op *new_op(void)
{
    struct op *o = &ops[n_ops < OPS - 1 ? n_ops++ : (int)rnd(OPS - 1)];
    memset(o, 0, sizeof *o);
    snprintf(o->id, sizeof o->id, "b%u.%x", rnd(BROKERS), (unsigned)n_ops + (unsigned)n_lines);
    snprintf(o->owner, sizeof o->owner, "%c", 'A' + (int)rnd(OWNERS));
    name_it(o, rnd(NAMES));
    o->token = floor_of();
    return o;
}

static void add(char *line, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(char *line, const char *fmt, ...)
{
    va_list args;
    size_t len = strlen(line);
    va_start(args, fmt);
    vsnprintf(line + len, LINE - len, fmt, args);
    va_end(args);
}

static const char *mode_of(struct op *o, char mode[16])
{
    static const char *const modes[] = {"x", "x", "s", "s", "2:0", "2:1", "3:1", "3:2", "1:0"};
    snprintf(mode, 16, "%s", ANY(modes));
    if (*mode == 'x')
        strcpy(o->part, "-");
    else if (*mode == 's')
        snprintf(o->part, sizeof o->part, "r:%s", o->owner);
    else
        snprintf(o->part, sizeof o->part, "s:%s", mode);
    return mode;
}

static void add_item(char *line, struct op *o, const char *all)
{
    static const char *const tickets[] = {"-",    "-",    "b0",   "b1",  "b2",
                                          "b0/1", "b0/2", "b1/1", "b2/1"};
    static const char *const places[] = {"keep", "tail", "front"};
    static const char *const judges[] = {"-", "-", "RUN", "else"};
    char mode[16];
    add(line, " %s %s %d %" PRId64 " %s ", o->id, o->owner, one_in(4) ? 30000 : 60000, o->token,
        o->bucket);
    if (one_in(3) && strcmp(all, "-") == 0) {
        strcpy(o->part, "-");
        add(line, "-");
        return;
    }
    const char *prev = n_ops > 1 && one_in(3) ? old_op()->id : "-";
    if (strcmp(prev, o->id) == 0)
        prev = "-";
    mode_of(o, mode);
    add(line, "prev=%s,tomb=%d,ticket=%s,place=%s,judge=%s,maxhold=%d,mode=%s,group=%s", prev,
        one_in(2) ? 0 : 9000, ANY(tickets), ANY(places), ANY(judges), one_in(3) ? 40000 : 0, mode,
        all);
}

static void make_acquire(char *line)
{
    struct op *made[4];
    char all[16] = "-";
    int n = 1 + (int)rnd(4);
    if (n_ops > 0 && one_in(5) && *old_op()->line) {
        snprintf(line, LINE, "%s",
                 old_op()->line); /* once more, or nothing when that one had none */
        if (*line)
            return;
    }
    bool is_group = n > 1 && n <= NAMES && one_in(2);
    if (is_group)
        snprintf(all, sizeof all, "g%d/%d", n_group++, one_in(5) ? n + 1 : n);
    for (int i = 0; i < n; i++) {
        made[i] = new_op();
        if (i > 0) /* the tokens of a call ascend */
            made[i]->token = made[i - 1]->token + 1 + rnd(2);
        if (is_group) /* no name is twice in one */
            name_it(made[i], (unsigned)i);
    }
    strcpy(line, "acquire ");
    for (int i = 0; i < n; i++)
        add(line, "%s%s", i ? "," : "", made[i]->name);
    add(line, " -");
    for (int i = 0; i < n; i++)
        add_item(line, made[i], all);
    for (int i = 0; i < n; i++)
        snprintf(made[i]->line, LINE, "%s", line);
}

/* A drop-in hold that ends, changes, comes into being, is put back or made good. */
static void make_exchange(char *line)
{
    static const char *const as[] = {"vote", "vote", "vote", "heal", "back"};
    int n = 1 + (int)rnd(3), size = one_in(8) ? n + 1 : n;
    bool is_group = one_in(2);
    struct op *made[3];
    for (int i = 0; i < n; i++) {
        made[i] = new_op();
        if (i > 0)
            made[i]->token = made[i - 1]->token + 1 + rnd(2);
        strcpy(made[i]->part, "-");
        name_it(made[i], (unsigned)i);
    }
    strcpy(line, "exchange ");
    for (int i = 0; i < n; i++)
        add(line, "%s%s", i ? "," : "", made[i]->name);
    add(line, " -");
    for (int i = 0; i < n; i++) {
        const struct op *old = old_op();
        unsigned dice = rnd(6);
        bool is_new = dice != 1 && one_in(3); /* nothing cannot be ended */
        const char *what = dice == 0   ? "look"
                           : dice == 1 ? "end"
                           : dice == 2 ? old->id
                                       : made[i]->id;
        add(line, " %s %s %s 60000 %" PRId64 " %s ", is_new ? "free" : old->id, what,
            made[i]->owner, made[i]->token, made[i]->bucket);
        if (!is_group && one_in(2)) {
            add(line, "%s", dice == 0 && one_in(2) ? "t" : "-");
            continue;
        }
        add(line, "v=%" PRId64 ".%u,token=%s,tomb=%d,by=%s,as=%s,seq=%" PRId64 ".%u/%s,time=%s,",
            one_in(2) ? old->token : made[i]->token, rnd(4), one_in(2) ? "new" : "kept",
            one_in(2) ? 0 : 9000, old_op()->id, ANY(as), old->token, rnd(4), old_op()->id,
            one_in(2) ? "t" : "-");
        if (is_group)
            add(line, "group=e%d/%d", n_lines, size);
        else
            add(line, "group=-");
    }
}

static void make_release(char *line)
{
    static const char *const more[] = {"next=wait,", "", "ticket=b0,place=tail,",
                                       "ticket=b1/1,place=front,next=wait,"};
    const struct op *o = old_op();
    snprintf(line, LINE, "release %s - %s %d ", o->name, o->id, one_in(3) ? 0 : 9000);
    if (one_in(2) && strcmp(o->part, "-") == 0)
        add(line, "-");
    else
        add(line, "%spart=%s", ANY(more), o->part);
}

static void make_renew(char *line)
{
    static const int leases[] = {0, 20000, 60000, 60000, 90000};
    const struct op *o = old_op();
    if (one_in(3) && strcmp(o->part, "-") == 0)
        snprintf(line, LINE, "renew %s - %s %d - - -", o->name, o->id, ANY(leases));
    else
        snprintf(line, LINE, "renew %s - %s %s%d %u %" PRId64 " %s", o->name, o->id,
                 one_in(3) ? "=" : "", ANY(leases), 1 + rnd(3), o->token + (int64_t)rnd(4) - 1,
                 o->part);
}

static void make_commit(char *line)
{
    const struct op *o = old_op();
    snprintf(line, LINE, "commit %s - %s %" PRId64 " %s %s", o->name, o->id,
             o->token + (int64_t)rnd(5) - 1, o->bucket, o->part);
}

static void make_takeover(char *line)
{
    static const char *const kinds[] = {"?", "?", "x", "s", "n"};
    const struct op *like = old_op();
    struct op *o = new_op();
    strcpy(o->name, like->name);
    strcpy(o->owner, like->owner);
    strcpy(o->part, like->part);
    snprintf(line, LINE, "takeover %s - %s %d %s %" PRId64 " %s %s %s", o->name, o->id,
             one_in(2) ? 0 : 9000, o->owner, o->token, o->bucket, one_in(2) ? "hold" : "none",
             ANY(kinds));
}

static void make_plant(char *line)
{
    const struct op *o = old_op();
    snprintf(line, LINE, "plant %s - %s %s %" PRId64 " %u %" PRId64 " 60000 %s %d %s", o->name,
             o->id, o->owner, o->token, 1 + rnd(3), o->token, o->bucket, one_in(3) ? 40000 : 0,
             o->part);
}

static void make_other(char *line)
{
    static const char *const tickets[] = {"-", "b0", "b1/1", "b0/2"};
    const struct op *o = old_op();
    switch (rnd(5)) {
    case 0:
        snprintf(line, LINE, "peek m,n,o - - %s %s", o->owner, one_in(2) ? "-" : o->owner);
        break;
    case 1:
        snprintf(line, LINE, "line %s - %s", o->name, one_in(2) ? "b0" : "b2/1");
        break;
    case 2:
        snprintf(line, LINE, "pass %s - %s %s", o->name, ANY(tickets), one_in(2) ? "call" : "wait");
        break;
    case 3:
        snprintf(line, LINE, one_in(6) ? "SET %s" : "LINE %s", o->name);
        break;
    default:
        snprintf(line, LINE, "LAPSE %s %s", o->name, o->part);
    }
}

static void make_line(char *line)
{
    unsigned dice = rnd(24);
    *line = '\0';
    if (one_in(12))
        snprintf(line, LINE, "CALL %u", 76 + rnd(3));
    else if (dice < 8 || n_ops == 0)
        make_acquire(line);
    else if (dice < 11)
        make_release(line);
    else if (dice < 13)
        make_renew(line);
    else if (dice < 15)
        make_commit(line);
    else if (dice < 16)
        make_takeover(line);
    else if (dice < 17)
        make_plant(line);
    else if (dice < 21)
        make_exchange(line);
    else
        make_other(line);
}

/* ---- comparing ---- */

/* Numbers of this size are times to live; smaller ones are codes and counts, larger ones tokens. */
static bool is_ms(long long n)
{
    return n >= 10000 && n <= 100000;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(char **words, int n)
{
    static char some_ms[] = "~";
    for (int i = 0; i < n; i++) {
        words[i] += *words[i] == '[';
        words[i][strcspn(words[i], "]")] = '\0';
        if (is_ms(atoll(words[i])))
            words[i] = some_ms;
    }
    qsort(words, (size_t)n, sizeof *words, by_text);
}

/* What ends in the same ms on one side need not do so on the other, and stands in the order of the
 * ends: the shares of a peek, and those whose turn it is. */
static void sort_what_has_no_order(const char *line, char **words, int n)
{
    int first = 0;
    if (strncmp(line, "LINE", 4) == 0) {
        while (first < n && strncmp(words[first], "turn:", 5) != 0)
            first++;
    } else if (strncmp(line, "peek", 4) != 0) {
        return;
    }
    sort(words + first, n - first);
}

static bool is_same(const char *line, const char *real, const char *model)
{
    char a[SIDE_TEXT], b[SIDE_TEXT], *x[SIDE_WORDS], *y[SIDE_WORDS];
    snprintf(a, sizeof a, "%s", real);
    snprintf(b, sizeof b, "%s", model);
    int n = side_split(a, x), m = side_split(b, y);
    if (n != m)
        return false;
    sort_what_has_no_order(line, x, n);
    sort_what_has_no_order(line, y, n);
    for (int i = 0; i < n; i++) {
        long long p = atoll(x[i]), q = atoll(y[i]);
        if (strcmp(x[i], y[i]) != 0 && !(is_ms(p) && is_ms(q) && llabs(p - q) < 2 * SLOW_MS))
            return false;
    }
    return true;
}

static void differ(uint64_t seed, const char *real, const char *model)
{
    for (int i = 0; i < n_lines; i++)
        fprintf(stderr, "        \"%s\",\n", lines[i]);
    ck_abort_msg("DRIFT_SEED=%" PRIu64 ": redis says '%s', the model '%s'", seed, real, model);
}

/* The real one's times tell nothing when the machine has stood still meanwhile. clock_ms() is the
 * model's. */
static int64_t real_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_slow(void)
{
    return real_ms() - started_ms > SLOW_MS;
}

static void compare(uint64_t seed, const char *line)
{
    char real[SIDE_TEXT], model[SIDE_TEXT];
    snprintf(lines[n_lines++], LINE, "%s", line);
    side_step(sides[SIDE_REDIS], line, real);
    side_step(sides[SIDE_MODEL], line, model);
    if (getenv("DRIFT_SHOW"))
        fprintf(stderr, "%s -> %s | %s\n", line, real, model);
    if (!is_same(line, real, model) && !is_slow())
        differ(seed, real, model);
    else if (strncmp(line, "STATE", 5) == 0 || strncmp(line, "LINE", 4) == 0)
        n_lines--;
}

/* What is left behind, as far as the last call can have changed it. */
static void compare_state(uint64_t seed)
{
    char line[LINE];
    for (int i = 0; i < NAMES; i++) {
        snprintf(line, sizeof line, "STATE %c", 'm' + i);
        compare(seed, line);
        snprintf(line, sizeof line, "LINE %c", 'm' + i);
        compare(seed, line);
    }
    for (int i = n_ops - 1; i >= 0 && i > n_ops - 6; i--) {
        snprintf(line, sizeof line, "STATE %s %s", ops[i].name, ops[i].part);
        if (strcmp(ops[i].part, "-") != 0)
            compare(seed, line);
    }
}

static bool run_sequence(uint64_t seed)
{
    char line[LINE];
    state = util_hash(&seed, sizeof seed) | 1;
    n_ops = n_lines = n_group = 0;
    is_alone = one_in(2);
    started_ms = real_ms();
    compare(seed, "FLUSHALL");
    compare(seed, "join - - RUN 0 s");
    for (int i = 0; i < STEPS; i++) {
        make_line(line);
        compare(seed, line);
        compare_state(seed);
        if (is_slow())
            return false;
    }
    return true;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(scripts_and_model_agree)
{
    uint64_t first = number_of("DRIFT_SEED", 1), n = number_of("DRIFT_SEEDS", 150), voids = 0;
    util_hash_seed(1, 2); /* the same sequences every time */
    for (int i = 0; i < SIDES; i++)
        side_begin(sides[i]);
    for (int i = 0; i < SIDES; i++) { /* the third broker is dead */
        char out[SIDE_TEXT];
        side_step(sides[i], "LISTEN b0", out);
        side_step(sides[i], "LISTEN b1", out);
    }
    for (uint64_t seed = first; seed < first + n; seed++)
        voids += !run_sequence(seed);
    printf("%" PRIu64 " sequences, %" PRIu64 " of them void\n", n, voids);
    ck_assert_msg(voids < n, "every sequence was too slow");
    for (int i = 0; i < SIDES; i++)
        side_end(sides[i]);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("drift");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, scripts_and_model_agree);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run_with_redis(suite());
}
