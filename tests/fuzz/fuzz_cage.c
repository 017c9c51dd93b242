/* Any bytes as a client's script, over a lock that is held. Besides not crashing: a run ends within
 * its bounds, gives one reply or says why not, leaves memory as it was, and leaves nothing to the
 * next script. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dropin/cage.h"
#include "dropin/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 8 << 20 };

static struct cage *cage;
static struct keys keys;

/* Says what fails: it may depend on all inputs before, so that the last one alone does not show it.
 */
static void require(bool ok, const char *what, const struct buf *out)
{
    if (ok)
        return;
    fprintf(stderr, "not so: %s; steps %ld, memory %zu, refusal \"%s\", reply \"%.*s\"\n", what,
            cage_steps(cage), cage_memory(cage), cage_refusal(cage), (int)buf_len(out),
            buf_head(out));
    abort();
}

static int run(const char *body, size_t len, struct buf *out)
{
    static const struct resp_arg names[] = {{"lock", 4}, {"mark", 4}};
    static const struct resp_arg args[] = {{"me", 2}, {"30000", 5}};
    static const struct resp_arg taken[] = {
        {"SET", 3}, {"lock", 4}, {"me", 2}, {"PX", 2}, {"5", 1}};
    struct store_reply reply = {0};
    struct resp_writer w = {out, 2};
    struct cage_job job = {.body = body,
                           .len = len,
                           .keys = names,
                           .n_keys = 2,
                           .args = args,
                           .n_args = 2,
                           .call = keys_call,
                           .arg = &keys};
    keys_begin(&keys, names, 2, 1000000);
    keys_suppose(&keys, taken, 5, NULL);
    int result = cage_run(cage, &job, &reply);
    require(result == 0 ? reply.n_nodes > 0 : *cage_refusal(cage) != '\0' && reply.n_nodes == 0,
            "a run gives a reply or a refusal", out);
    if (result == 0)
        store_reply_write(&reply, &w);
    store_reply_fini(&reply);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char probe[] = "return {type(redis.call), type(string.rep), KEYS[1], #ARGV, "
                                "redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}";
    static const char expected[] = "*6\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n$4\r\nlock\r\n:2\r\n"
                                   "$2\r\nme\r\n:5\r\n";
    struct buf out = {0};
    if (!cage)
        cage = cage_new(8);
    run((const char *)data, size, &out);
    require(cage_steps(cage) <= CAGE_STEPS, "steps within CAGE_STEPS", &out);
    require(cage_memory(cage) <= MEMORY_MAX, "memory within MEMORY_MAX", &out);
    buf_consume(&out, buf_len(&out));
    require(run(probe, sizeof probe - 1, &out) == 0, "the probe is not refused", &out);
    require(buf_len(&out) == sizeof expected - 1 &&
                memcmp(buf_head(&out), expected, sizeof expected - 1) == 0,
            "the probe's reply is as ever", &out);
    buf_fini(&out);
    return 0;
}
