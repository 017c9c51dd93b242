#pragma once
/* scripts: bodies of scripts by the SHA-1 of their bytes, as many as SCRIPTS_MAX and SCRIPTS_BYTES;
 * the one that was not used for longest goes first. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "dropin/cage.h"
#include "net/resp.h"

enum { SCRIPTS_MAX = 1000, SCRIPTS_BYTES = 4 * 1024 * 1024 };

/* A body: counted, as calls that run it may outlive its place in the table. */
struct script_body {
    UT_hash_handle hh;
    uint32_t refs;
    bool is_checked; /* over states of its keys, see call_check.c */
    char sha1[CAGE_SHA1 + 1];
    size_t len;
    char text[];
};

/* All zero is an empty one. */
struct scripts {
    struct script_body *by_sha1; /* in the order of their last use */
    size_t bytes;
};

/* Both return a reference. */
struct script_body *scripts_add(struct scripts *, const struct resp_arg *body);
struct script_body *scripts_find(struct scripts *, const struct resp_arg *sha1); /* NULL: none */
void scripts_flush(struct scripts *);
void script_body_unref(struct script_body *); /* also NULL */
