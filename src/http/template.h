#ifndef HOLDFAST_HTTP_TEMPLATE_H
#define HOLDFAST_HTTP_TEMPLATE_H
/*
 * template: fills the gaps of a text with values that have names.
 *
 *   {{held}}                          the value; nothing if there is none
 *   {{if held}} ... {{end if held}}   what stands between, if the value or list is there and not
 * empty
 *   {{if not held}} ... {{end if not held}}
 *   {{each holds}} ... {{end each holds}}  once for each row of the list, whose values come before
 * those of the whole
 *
 * The same words may not be opened again between their own {{...}} and {{end ...}}. Values go into
 * the text as they are: escaping is up to whoever adds them.
 */
#include <stddef.h>

#include "base/buf.h"

enum { TEMPLATE_VALUES_MAX = 40 };

/* Begins as {0}, ends with buf_fini(&values->text). */
struct template_values {
    struct buf text; /* one value after the other */
    struct {
        const char *name; /* lent */
        size_t start;
    } v[TEMPLATE_VALUES_MAX];
    size_t n;
};

struct template_list {
    const char *name;
    size_t n_rows;
    /* Adds the values of row i < n_rows. */
    void (*add_row)(struct template_values *, const void *arg, size_t i);
};

/* Begins the value of that name: whatever is appended to the buffer until the next call belongs to
 * it. */
struct buf *template_value(struct template_values *, const char *name);

/* Appends the filled text. `lists` ends with a row without a name; arg is handed to add_row. */
void template_fill(struct buf *out, const char *text, const struct template_values *,
                   const struct template_list *lists, const void *arg);
#endif
