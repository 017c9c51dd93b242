/* Slots, partitions and their tags, and the keys of locks. */
#include <check.h>
#include <string.h>

#include "redis/args.h"
#include "redis/master.h"
#include "redis/partition.h"
#include "suite.h"

static int slot(const char *key)
{
    return cluster_slot(key, strlen(key));
}

/* As redis-cli CLUSTER KEYSLOT says. */
START_TEST(slots_are_those_of_redis)
{
    ck_assert_int_eq(slot("123456789"), 0x31c3);
    ck_assert_int_eq(slot("foo"), 12182);
    ck_assert_int_eq(slot(""), 0);
    ck_assert_int_eq(slot("{user1000}.following"), slot("user1000"));
    ck_assert_int_eq(slot("foo{}{bar}"), 8363);
    ck_assert_int_eq(slot("foo{{bar}}zap"), slot("{bar"));
    ck_assert_int_eq(slot("foo{bar}{zap}"), slot("bar"));
    ck_assert_int_ne(slot("{open"), slot("open"));
}
END_TEST

START_TEST(partitions_are_ranges_of_slots)
{
    const char *names[] = {"foo", "123456789", "", "{user1000}.following"};

    partitions_use(PARTITIONS);
    ck_assert_int_eq(partitions(), PARTITIONS);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_int_eq(partition_of(names[i], strlen(names[i])),
                         slot(names[i]) * PARTITIONS / CLUSTER_SLOTS);
    for (int p = 0; p < PARTITIONS; p++) {
        ck_assert_int_eq(slot(partition_tag(p)), partition_slot(p));
        ck_assert_int_eq(slot(partition_at(p)), partition_slot(p));
        ck_assert_int_eq(partition_slot(p) * PARTITIONS / CLUSTER_SLOTS, p);
        ck_assert_int_eq(partition_slot(p) % (CLUSTER_SLOTS / PARTITIONS),
                         CLUSTER_SLOTS / PARTITIONS / 2);
    }
    ck_assert_str_eq(partition_at(0), "holdfast:{40821}:"); /* for ever */
    partitions_use(0);
}
END_TEST

/* The key of a lock stands in its partition's slot, whatever its name is, and leads back to it. */
START_TEST(keys_lead_to_names)
{
    const char *const names[] = {"x", "{a}b", "a}b", "master", "}", "db3:y", ":", "a b{"};
    struct master_item item;
    size_t key_len, name_len;
    const char *name;

    for (int n = 0; n <= PARTITIONS; n += PARTITIONS) {
        partitions_use(n);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            size_t len = strlen(names[i]);
            args_bytes(args_begin(names[i], len), &item);
            const char *key = strchr(item.key, '\n') + 1;
            key_len = item.key_len - (size_t)(key - item.key) - 2;
            if (n > 0)
                ck_assert_int_eq(cluster_slot(key, key_len),
                                 partition_slot(partition_of(names[i], len)));
            ck_assert(args_name_of_key(key, key_len, &name, &name_len));
            ck_assert_uint_eq(name_len, len);
            ck_assert_mem_eq(name, names[i], len);
            ck_assert(!args_name_of_key(key, 9, &name, &name_len));
        }
        ck_assert(!args_name_of_key("holdfast:master", 15, &name, &name_len));
        ck_assert(!args_name_of_key(partition_at(0), strlen(partition_at(0)), &name, &name_len));
    }
    partitions_use(0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("partition");
    TCase *c = tcase_create("partition");
    tcase_add_test(c, slots_are_those_of_redis);
    tcase_add_test(c, partitions_are_ranges_of_slots);
    tcase_add_test(c, keys_lead_to_names);
    suite_add_tcase(s, c);
    return suite_run(s);
}
