#pragma once
/*
 * args: writes the arguments of a script call for one lock as it goes over the wire, once for all
 * masters.
 *
 *     struct args *it = args_begin(name, name_len);   key: holdfast:{name}, or in a Cluster
 *                                                     holdfast:{tag}{name} (partition.h)
 *     args_text(it, text, len); args_int(it, n);
 *     round_ask(..., it, ...)
 *
 * One list is under construction at a time: the memory is the module's and is used again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct master_item;

struct args {
    struct buf key, args;
    int partition; /* that the key is of */
    int64_t floor; /* see struct master_item */
    int bucket;
    bool early, undoes, renewal;
};

struct args *args_begin(const char *name, size_t name_len);
/* Finds the name in a key; false: it is none of a lock. */
bool args_name_of_key(const char *key, size_t key_len, const char **name, size_t *name_len);
void args_text(struct args *, const char *text, size_t len);
void args_str(struct args *, const char *text);
void args_int(struct args *, int64_t n);
/* As bytes, for master_ask(); valid until the next args_begin(). */
void args_bytes(const struct args *, struct master_item *out);
