/* Which node of a Redis Cluster keeps a partition: what its nodes say, and whose words are enough.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/shards.h"
#include "suite.h"

enum { TIMEOUT_MS = 5000 };

static const struct naming_address asked = {.host = "10.0.0.9", .port = 7000};

/* ---- what a node says ---- */

/* As redis-server 7.0 has it, and with what later ones add to the address. */
static const char three_masters[] =
    "dddddddddddddddddddddddddddddddddddddddd 10.0.0.4:7004@17004 slave "
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 0 1795449938000 2 connected\n"
    "cccccccccccccccccccccccccccccccccccccccc 10.0.0.3:7003@17003,c.example,shard-id=0 master,fail "
    "- "
    "0 1795449938125 3 disconnected 10923-16383\n"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa :7001@17001 myself,master - 0 1795449938000 1 "
    "connected "
    "0-5000 5002-5460 [77->-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]\n"
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 2001:db8::2:7002@17002 master - 0 1795449938125 2 "
    "connected 5001 5461-10922\n"
    "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee :0@0 master,noaddr - 0 1795449938125 2 "
    "disconnected\n";

static int read_text(struct nodes *nodes, const char *text)
{
    const char *why;

    return nodes_read(nodes, text, strlen(text), &asked, &why);
}

START_TEST(masters_and_their_slots)
{
    struct nodes nodes;

    partitions_use(PARTITIONS);
    ck_assert_int_eq(read_text(&nodes, three_masters), 0);
    ck_assert_int_eq(nodes.n, 3);
    ck_assert_int_eq(nodes.myself, 1);
    ck_assert_str_eq(nodes.v[0].address.host, "10.0.0.3");
    ck_assert_str_eq(nodes.v[1].address.host, asked.host); /* it does not know its own */
    ck_assert_int_eq(nodes.v[1].address.port, 7001);
    ck_assert(nodes.v[1].is_guess && !nodes.v[0].is_guess);
    ck_assert_str_eq(nodes.v[2].address.host, "2001:db8::2");
    ck_assert_int_eq(nodes.v[2].address.port, 7002);
    uint64_t all = 0;
    for (int i = 0; i < nodes.n; i++) {
        ck_assert(nodes.v[i].has_slots);
        ck_assert_uint_eq(all & nodes.v[i].partitions, 0);
        all |= nodes.v[i].partitions;
    }
    ck_assert_uint_eq(all, UINT64_MAX);
    ck_assert_uint_eq(nodes.v[1].partitions, (UINT64_C(1) << 21) - 1);
}
END_TEST

START_TEST(what_is_no_such_text)
{
    static const char *const texts[] = {
        "",
        "ERR",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:7001@17001 master - 0 0 1 connected "
        "0-5\n",
        "aaa 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1 myself,master - 0 0 1 connected 0-5\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:70010@1,x:99999@1 myself,master - 0 0 1 "
        "connected 0-x\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:99999@1 myself,master - 0 0 1 connected "
        "5\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:7001@1 myself,master - 0 0 1 connected "
        "0-16384\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:7001@1 myself,master - 0 0 1 connected "
        "9-5\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 10.0.0.1:7001@1 myself,master - 0 0\n",
    };
    struct nodes nodes;

    partitions_use(PARTITIONS);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(read_text(&nodes, texts[i]) == -1, "text %zu", i);
}
END_TEST

START_TEST(too_many_masters)
{
    static char text[(NODES_MAX + 1) * 128];
    struct nodes nodes;
    const char *why;

    partitions_use(PARTITIONS);
    for (int n = NODES_MAX; n <= NODES_MAX + 1; n++) {
        text[0] = '\0';
        for (int i = 0; i < n; i++)
            sprintf(text + strlen(text), "%040x 10.0.0.1:%d@1 %smaster - 0 0 1 connected %d\n", i,
                    7000 + i, i ? "" : "myself,", i);
        ck_assert_int_eq(nodes_read(&nodes, text, strlen(text), &asked, &why),
                         n == NODES_MAX ? 0 : -1);
    }
    ck_assert(strstr(why, "more masters"));
}
END_TEST

/* ---- whose words are enough ---- */

static struct shards s;

/* The node of this letter says: who keeps what, "A" for each partition that a keeps. Those in
 * `others` are masters, too, of no partition. */
static uint64_t says(char who, const char *keepers, const char *others, int64_t asked_ms,
                     int64_t now_ms)
{
    struct nodes said = {.myself = -1};
    char letters[32];

    snprintf(letters, sizeof letters, "%s%s%c", keepers, others, who);
    for (const char *p = letters; *p; p++) {
        if (strchr(letters, *p) != p)
            continue;
        struct node *n = &said.v[said.n];
        memset(n->id, *p, NODES_ID_LEN);
        n->address = (struct naming_address){.port = *p};
        n->has_slots = strchr(keepers, *p) || strchr(others, *p);
        for (int k = 0; keepers[k]; k++)
            n->partitions |= keepers[k] == *p ? UINT64_C(1) << k : 0;
        if (*p == who)
            said.myself = said.n;
        said.n++;
    }
    return shards_take(&s, &said, asked_ms, now_ms);
}

/* The nodes of these letters say so, one millisecond after they were asked. */
static void all_say(const char *who, const char *keepers, const char *others, int64_t asked_ms)
{
    for (; *who; who++)
        says(*who, keepers, others, asked_ms, asked_ms + 1);
}

/* The partitions are kept by the nodes of these letters; '-': by nobody. */
static void kept(const char *keepers)
{
    for (int p = 0; keepers[p]; p++) {
        const struct shards_node *n = shards_keeper(&s, p);
        ck_assert_int_eq(n ? n->id[0] : '-', keepers[p]);
    }
}

static void set_up(void)
{
    partitions_use(4);
    shards_init(&s, TIMEOUT_MS);
}

START_TEST(a_majority_of_the_masters)
{
    kept("----");
    ck_assert_uint_eq(says('a', "aabc", "", 100, 101), 0);
    ck_assert_uint_eq(says('a', "aabc", "", 150, 151), 0);
    ck_assert_uint_eq(says('x', "aabc", "", 150, 151), 0); /* a replica */
    ck_assert_uint_eq(says('b', "aabc", "", 300, 301), 0xf);
    kept("aabc"); /* whatever c says itself */
    ck_assert_int_eq(shards_keeper(&s, 3)->address.port, 'c');
    ck_assert_int_eq(s.named[0].until_ms, 150 + TIMEOUT_MS);
    ck_assert_uint_eq(says('c', "aabc", "", 200, 310), 0);
    ck_assert_int_eq(s.named[0].until_ms, 200 + TIMEOUT_MS);
}
END_TEST

START_TEST(words_grow_old)
{
    all_say("a", "aabc", "", 100);
    all_say("b", "aabc", "", 300);
    ck_assert_uint_eq(shards_pass(&s, 99 + TIMEOUT_MS), 0);
    ck_assert_uint_eq(shards_pass(&s, 100 + TIMEOUT_MS), 0xf);
    kept("----");
    ck_assert_uint_eq(says('c', "aabc", "", 5200, 5201), 0xf); /* with that of b */
    ck_assert_int_eq(s.named[1].until_ms, 300 + TIMEOUT_MS);
}
END_TEST

/* A replica of a takes its place. The old one, and who hears no other, stay behind. */
START_TEST(another_node_takes_its_place)
{
    all_say("abc", "aabc", "", 100);
    ck_assert_uint_eq(says('b', "ddbc", "", 200, 201), 0);
    kept("aabc"); /* by a and c, still */
    ck_assert_uint_eq(says('c', "ddbc", "", 210, 211), 0x3);
    kept("ddbc");
    ck_assert_uint_eq(says('a', "aabc", "", 300, 301), 0);
    ck_assert_uint_eq(says('d', "ddbc", "", 300, 301), 0);
    ck_assert_int_eq(s.named[0].until_ms, 210 + TIMEOUT_MS);
}
END_TEST

/* Two know of three masters, the third of five: what it says needs three of these. */
START_TEST(each_word_needs_a_majority_of_those_that_it_knows)
{
    all_say("a", "aaaa", "bc", 100);
    all_say("c", "aaaa", "bcde", 100);
    kept("----");
    all_say("b", "aaaa", "bcde", 100);
    kept("aaaa");
    shards_init(&s, TIMEOUT_MS);
    all_say("cb", "aaaa", "bcde", 100);
    kept("----");
    all_say("a", "aaaa", "bcde", 100);
    kept("aaaa");
}
END_TEST

START_TEST(two_that_could_both_be_meant)
{
    all_say("ab", "aaab", "", 100);
    kept("aaab");
    all_say("c", "cddd", "", 100);
    ck_assert_uint_eq(says('d', "cddd", "", 100, 101), 0xf);
    kept("----");
}
END_TEST

/* More nodes come and go than there is room for. */
START_TEST(nodes_that_have_gone_are_forgotten)
{
    for (int i = 0; i < 1000; i++) {
        int64_t now_ms = 1000 + i * (TIMEOUT_MS + 10);
        char who = (char)('b' + i % 20), keepers[] = {who, who, who, who, 0};
        ck_assert_uint_eq(says(who, keepers, "", now_ms, now_ms), 0xf);
        kept(keepers);
    }
}
END_TEST

/* ---- where a node is ---- */

/* The node of this letter is asked at `at` and says that this host is where a is ("": it is not
 * known), with all partitions. */
static void tells_of_a(char who, const char *at, const char *host, int64_t asked_ms)
{
    char text[600], word[NAMING_HOST_MAX + 1];
    struct naming_address asked_at = {.port = 1};
    struct nodes nodes;
    const char *why;

    strcpy(asked_at.host, at);
    memset(word, who, NODES_ID_LEN);
    word[NODES_ID_LEN] = 0;
    snprintf(text, sizeof text, "%s %s:1@1 %s - 0 0 1 connected 0-16383\n",
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", host,
             who == 'a' ? "myself,master" : "master");
    if (who != 'a')
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s %s:1@1 myself,slave - 0 0 1 connected\n", word, at);
    ck_assert_int_eq(nodes_read(&nodes, text, strlen(text), &asked_at, &why), 0);
    shards_take(&s, &nodes, asked_ms, asked_ms);
}

static void a_is_at(const char *host)
{
    ck_assert_ptr_nonnull(shards_keeper(&s, 0));
    ck_assert_str_eq(shards_keeper(&s, 0)->address.host, host);
}

/* a is the only master: without a word of its own nobody is named. */
START_TEST(its_own_word_about_its_address_wins)
{
    tells_of_a('b', "b1", "other", 100);
    tells_of_a('a', "a1", "own", 101);
    a_is_at("own");
    tells_of_a('b', "b1", "other", 102);
    a_is_at("own");
    tells_of_a('a', "a1", "moved", 103);
    a_is_at("moved");
}
END_TEST

START_TEST(an_address_that_it_does_not_know_is_the_one_that_was_asked)
{
    tells_of_a('a', "name1", "", 100);
    a_is_at("name1");
    tells_of_a('a', "name2", "", 101); /* the same node by another name */
    a_is_at("name1");
    tells_of_a('b', "b1", "", 102);
    a_is_at("name1");
    tells_of_a('a', "name1", "own", 103);
    a_is_at("own");
    tells_of_a('a', "name1", "", 104);
    a_is_at("own");
}
END_TEST

START_TEST(the_word_of_others_does_not_change_from_one_to_the_next)
{
    tells_of_a('b', "b1", "by_b", 100);
    tells_of_a('c', "c1", "by_c", 101);
    tells_of_a('a', "name", "", 102);
    a_is_at("by_b");
    tells_of_a('b', "b1", "by_b_now", 103);
    a_is_at("by_b_now");
}
END_TEST

/* It does not say it itself, as nobody reaches it there. */
START_TEST(a_node_that_has_moved_is_found_by_the_word_of_others)
{
    tells_of_a('a', "old", "old", 100);
    tells_of_a('b', "b1", "new", 101);
    tells_of_a('b', "b1", "new", 99 + TIMEOUT_MS);
    a_is_at("old");
    tells_of_a('b', "b1", "new", 100 + TIMEOUT_MS);
    tells_of_a('a', "new", "new", 101 + TIMEOUT_MS);
    a_is_at("new");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shards");
    TCase *t = tcase_create("nodes");

    tcase_add_test(t, masters_and_their_slots);
    tcase_add_test(t, what_is_no_such_text);
    tcase_add_test(t, too_many_masters);
    suite_add_tcase(suite, t);
    t = tcase_create("shards");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, a_majority_of_the_masters);
    tcase_add_test(t, words_grow_old);
    tcase_add_test(t, another_node_takes_its_place);
    tcase_add_test(t, each_word_needs_a_majority_of_those_that_it_knows);
    tcase_add_test(t, two_that_could_both_be_meant);
    tcase_add_test(t, nodes_that_have_gone_are_forgotten);
    suite_add_tcase(suite, t);
    t = tcase_create("addresses");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, its_own_word_about_its_address_wins);
    tcase_add_test(t, an_address_that_it_does_not_know_is_the_one_that_was_asked);
    tcase_add_test(t, the_word_of_others_does_not_change_from_one_to_the_next);
    tcase_add_test(t, a_node_that_has_moved_is_found_by_the_word_of_others);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
