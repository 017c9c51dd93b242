#ifndef HOLDFAST_ITEM_H
#define HOLDFAST_ITEM_H
/*
 * item: writes one item of a script call as it goes over the wire, once for all masters.
 *
 *     struct item *it = item_begin(name, name_len);   key: holdfast:{name}
 *     item_arg(it, text, len); item_arg_int(it, n);
 *     backend_ask(..., it, ...)
 *
 * One item is under construction at a time: the memory is the module's and is used again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct master_item;

struct item {
    struct buf key, args;
    int64_t floor; /* see struct master_item */
    int bucket;
    bool early, renewal;
};

struct item *item_begin(const char *name, size_t name_len);
void item_arg(struct item *, const char *text, size_t len);
void item_arg_str(struct item *, const char *text);
void item_arg_int(struct item *, int64_t n);
/* As bytes, for master_ask(); valid until the next item_begin(). */
void item_bytes(const struct item *, struct master_item *out);

/* The counter of a name: one of ITEM_BUCKETS fields of holdfast:master. Every broker must compute
 * the same, so the function is fixed: FNV-1a. */
enum { ITEM_BUCKETS = 4096 };
uint32_t item_hash(const char *text, size_t len);
int item_bucket(const char *name, size_t name_len);
#endif
