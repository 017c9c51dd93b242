/*
 * Virtual time: a binary heap of events, and one generator of random numbers.
 * Invariant: the time never goes back, and an event never runs before its time.
 */
#include "sim_time.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"

struct sim_event {
    int64_t at_us;
    uint64_t number;
    sim_fn fn; /* NULL: cancelled */
    void *arg;
};

static struct {
    int64_t now_us;
    uint64_t made, random;
    struct sim_event **heap;
    size_t n, cap;
} sim;

/* Away from 0, where a forgotten time would not show. */
enum { START_US = 1000000000 };
static const int64_t wall_epoch_ms = INT64_C(1700000000000);

void sim_begin(uint64_t seed)
{
    assert(sim.n == 0);
    sim.now_us = START_US;
    sim.made = 0;
    sim.random = (seed + 1) * 0x9e3779b97f4a7c15ULL;
    util_hash_seed(seed, 1);
}

void sim_end(void)
{
    for (size_t i = 0; i < sim.n; i++)
        free(sim.heap[i]);
    free(sim.heap);
    sim.heap = NULL;
    sim.n = sim.cap = 0;
}

int64_t sim_now_us(void)
{
    return sim.now_us;
}

/* ---- the heap ---- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

static void swap(size_t i, size_t j)
{
    struct sim_event *e = sim.heap[i];
    sim.heap[i] = sim.heap[j];
    sim.heap[j] = e;
}

static void rise(size_t i)
{
    for (; i > 0 && before(sim.heap[i], sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static void sink(size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < sim.n; child++)
            least = before(sim.heap[child], sim.heap[least]) ? child : least;
        if (least == i)
            return;
        swap(i, least);
        i = least;
    }
}

struct sim_event *sim_at(int64_t at_us, sim_fn fn, void *arg)
{
    struct sim_event *e = util_alloc(sizeof *e);
    e->at_us = at_us < sim.now_us ? sim.now_us : at_us;
    e->number = sim.made++;
    e->fn = fn;
    e->arg = arg;
    if (sim.n == sim.cap) {
        sim.cap = sim.cap ? 2 * sim.cap : 256;
        sim.heap = util_realloc(sim.heap, sim.cap * sizeof(struct sim_event *));
    }
    sim.heap[sim.n] = e;
    rise(sim.n++);
    return e;
}

void sim_cancel(struct sim_event *e)
{
    if (e)
        e->fn = NULL;
}

static void drop_first(void)
{
    free(sim.heap[0]);
    sim.heap[0] = sim.heap[--sim.n];
    if (sim.n)
        sink(0);
}

int64_t sim_next_us(void)
{
    while (sim.n && !sim.heap[0]->fn)
        drop_first();
    return sim.n ? sim.heap[0]->at_us : INT64_MAX;
}

bool sim_step(void)
{
    if (sim_next_us() == INT64_MAX)
        return false;
    struct sim_event e = *sim.heap[0];
    drop_first();
    assert(e.at_us >= sim.now_us);
    sim.now_us = e.at_us;
    e.fn(e.arg);
    return true;
}

void sim_run_until(int64_t until_us)
{
    while (sim_next_us() <= until_us)
        sim_step();
    if (until_us > sim.now_us)
        sim.now_us = until_us;
}

/* ---- chance: splitmix64, by Steele, Lea and Flood ---- */

static uint64_t draw(void)
{
    uint64_t z = sim.random += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

int64_t sim_random(int64_t below)
{
    return below > 1 ? (int64_t)(draw() % (uint64_t)below) : 0;
}

int64_t sim_between(int64_t min, int64_t max)
{
    return min + sim_random(max - min + 1);
}

bool sim_chance(int per_mille)
{
    return sim_random(1000) < per_mille;
}

/* ---- clock.h ---- */

int64_t clock_us(void)
{
    return sim.now_us;
}

int64_t clock_ms(void)
{
    return sim.now_us / 1000;
}

int64_t clock_wall_ms(void)
{
    return wall_epoch_ms + sim.now_us / 1000;
}
