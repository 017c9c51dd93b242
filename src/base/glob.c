/*
 * A pattern is a row of elements, each of which takes one byte, and of stars between them. The
 * states of the comparison are how many elements have taken a byte so far; all states that are
 * possible are kept at once, as bits, so nothing is ever tried again (Baeza-Yates and Gonnet, "A
 * new approach to text searching", 1992):
 *
 *     pattern  a[bc]*d      states  0 -a-> 1 -[bc]-> 2 -d-> 3
 *                                                    ^ stays, whatever comes: a star stands here
 *
 * One byte of text moves all states one on whose element takes the byte, and lets those stay where
 * there is a star. After k bytes no state above k is possible: the words above need no look.
 *
 * Invariant: bit i of accepts[byte] ^ usual is set when element i-1 takes the byte. `usual` has the
 * elements that take more bytes than they refuse: so a class costs at most as much as it is long.
 */
#include "base/glob.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"

enum { BYTES = 256, WORD = 64, WORDS_MAX = GLOB_MAX / WORD + 1 };

struct glob {
    size_t n_words, n_elements;
    uint64_t stays[WORDS_MAX], usual[WORDS_MAX];
    uint64_t accepts[]; /* n_words for each byte */
};

struct byte_set {
    uint64_t bits[BYTES / WORD];
};

static void set_bit(uint64_t *words, size_t i)
{
    words[i / WORD] |= UINT64_C(1) << i % WORD;
}

/* ---- reading a pattern ---- */

/* Returns the bits from `low` to `high` of one word. */
static uint64_t range_of_word(unsigned low, unsigned high)
{
    return (high == WORD - 1 ? UINT64_MAX : (UINT64_C(1) << (high + 1)) - 1) &
           ~((UINT64_C(1) << low) - 1);
}

static void add_range(struct byte_set *set, unsigned low, unsigned high)
{
    unsigned first = low < high ? low : high, last = low < high ? high : low;

    for (unsigned w = first / WORD; w <= last / WORD; w++)
        set->bits[w] |= range_of_word(w == first / WORD ? first % WORD : 0,
                                      w == last / WORD ? last % WORD : WORD - 1);
}

/* Reads the class behind its '[' at p; returns its length with the ']'. */
static size_t read_class(const unsigned char *p, size_t len, struct byte_set *set)
{
    bool negated = len > 0 && p[0] == '^';
    size_t i = negated;

    while (i < len && p[i] != ']') {
        bool escaped = p[i] == '\\';
        i += escaped && len - i > 1;
        unsigned char low = p[i++], high = low;
        /* As in Redis: after an escaped byte '-' is literal, and any byte may end a range. */
        if (!escaped && len - i >= 2 && p[i] == '-') {
            high = p[i + 1];
            i += 2;
        }
        add_range(set, low, high);
    }
    for (size_t w = 0; negated && w < BYTES / WORD; w++)
        set->bits[w] = ~set->bits[w];
    return i < len ? i + 1 : i;
}

/* Returns true for a byte that stands for itself: nearly all bytes of nearly all patterns. */
static bool is_literal(unsigned char c)
{
    return c != '*' && c != '?' && c != '[' && c != '\\';
}

/* Reads the element at p, which is no '*'; returns its length. */
static size_t read_element(const unsigned char *p, size_t len, struct byte_set *set)
{
    switch (p[0]) {
    case '?':
        add_range(set, 0, BYTES - 1);
        return 1;
    case '[':
        return 1 + read_class(p + 1, len - 1, set);
    case '\\':
        if (len > 1) {
            add_range(set, p[1], p[1]);
            return 2;
        }
        break;
    }
    add_range(set, p[0], p[0]);
    return 1;
}

static void add_element(struct glob *g, size_t state, const struct byte_set *set)
{
    int n = 0;
    uint64_t flip = 0;

    for (size_t w = 0; w < BYTES / WORD; w++)
        n += __builtin_popcountll(set->bits[w]);
    if (n > BYTES / 2) {
        set_bit(g->usual, state);
        flip = UINT64_MAX;
    }
    for (size_t w = 0; w < BYTES / WORD; w++)
        for (uint64_t bits = set->bits[w] ^ flip; bits; bits &= bits - 1)
            set_bit(g->accepts + (w * WORD + (size_t)__builtin_ctzll(bits)) * g->n_words, state);
}

static size_t count_elements(const unsigned char *p, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        struct byte_set ignored = {{0}};
        if (p[i] == '*' || is_literal(p[i])) {
            n += p[i++] != '*';
        } else {
            i += read_element(p + i, len - i, &ignored);
            n++;
        }
    }
    return n;
}

struct glob *glob_new(const char *pattern, size_t len)
{
    const unsigned char *p = (const unsigned char *)pattern;
    size_t state = 0;

    if (len > GLOB_MAX)
        return NULL;
    size_t n_words = count_elements(p, len) / WORD + 1;
    struct glob *g = util_alloc(sizeof *g + BYTES * n_words * sizeof g->accepts[0]);
    g->n_words = n_words;
    for (size_t i = 0; i < len;) {
        struct byte_set set = {{0}};
        if (p[i] == '*') {
            set_bit(g->stays, state);
            i++;
        } else if (is_literal(p[i])) {
            set_bit(g->accepts + p[i++] * n_words, ++state);
        } else {
            i += read_element(p + i, len - i, &set);
            add_element(g, ++state, &set);
        }
    }
    g->n_elements = state;
    return g;
}

void glob_free(struct glob *g)
{
    free(g);
}

/* ---- comparing ---- */

size_t glob_steps(const struct glob *g, size_t len)
{
    return len < g->n_elements ? 0 : len * g->n_words;
}

/* Takes one byte of the text: moves the lowest n words of states on. Returns false when no state is
 * possible any more. */
static bool step_states(const struct glob *g, uint64_t *states, size_t n, unsigned char byte)
{
    const uint64_t *accepts = g->accepts + byte * g->n_words;
    uint64_t carry = 0, alive = 0;

    for (size_t w = 0; w < n; w++) {
        uint64_t old = states[w];
        states[w] = ((old << 1 | carry) & (accepts[w] ^ g->usual[w])) | (old & g->stays[w]);
        carry = old >> (WORD - 1);
        alive |= states[w];
    }
    return alive;
}

bool glob_match(const struct glob *g, const char *text, size_t len)
{
    uint64_t states[WORDS_MAX] = {1};

    if (len < g->n_elements)
        return false;
    for (size_t i = 0; i < len; i++) {
        size_t n = (i + 1) / WORD + 1;
        if (!step_states(g, states, n < g->n_words ? n : g->n_words, (unsigned char)text[i]))
            return false;
    }
    return states[g->n_elements / WORD] >> g->n_elements % WORD & 1;
}
