/* The table holds one reference to each of its bodies. */
#include "dropin/scripts.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void script_body_unref(struct script_body *s)
{
    if (s && --s->refs == 0)
        free(s);
}

static void drop_script(struct scripts *all, struct script_body *s)
{
    HASH_DEL(all->by_sha1, s); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
    all->bytes -= s->len;
    script_body_unref(s);
}

static void put_script_last(struct scripts *all, struct script_body *s)
{
    HASH_ADD_BYHASHVALUE(hh, all->by_sha1, sha1, CAGE_SHA1, cage_sha1_hash(s->sha1), s);
}

/* Marks the script as used last; returns a reference to its body. */
static struct script_body *use(struct scripts *all, struct script_body *s)
{
    if (s->hh.next) { /* another one was used last */
        HASH_DEL(all->by_sha1, s);
        put_script_last(all, s);
    }
    s->refs++;
    return s;
}

static struct script_body *find_script(const struct scripts *all, const char *sha1)
{
    struct script_body *s;
    HASH_FIND_BYHASHVALUE(hh, all->by_sha1, sha1, CAGE_SHA1, cage_sha1_hash(sha1), s);
    return s;
}

struct script_body *scripts_add(struct scripts *all, const struct resp_arg *body)
{
    char sha1[CAGE_SHA1 + 1];
    cage_sha1(body->ptr, body->len, sha1);
    struct script_body *s = find_script(all, sha1);
    if (s)
        return use(all, s);
    s = util_alloc(sizeof *s + body->len);
    s->refs = 2;
    s->len = body->len;
    memcpy(s->sha1, sha1, sizeof sha1);
    if (body->len)
        memcpy(s->text, body->ptr, body->len);
    put_script_last(all, s);
    all->bytes += s->len;
    while (HASH_COUNT(all->by_sha1) > SCRIPTS_MAX || all->bytes > SCRIPTS_BYTES)
        drop_script(all, all->by_sha1);
    return s;
}

struct script_body *scripts_find(struct scripts *all, const struct resp_arg *sha1)
{
    char lower[CAGE_SHA1];
    if (sha1->len != CAGE_SHA1)
        return NULL;
    for (int i = 0; i < CAGE_SHA1; i++) {
        char c = sha1->ptr[i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    struct script_body *s = find_script(all, lower);
    return s ? use(all, s) : NULL;
}

void scripts_flush(struct scripts *all)
{
    while (all->by_sha1)
        drop_script(all, all->by_sha1); /* NOLINT(clang-analyzer-unix.Malloc): uthash */
}
