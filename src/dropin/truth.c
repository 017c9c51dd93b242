/* Texts come from the pool, and go back with their last reference. */
#include "dropin/truth.h"

#include <string.h>

#include "base/pool.h"

struct truth_text *truth_text_new(const char *bytes, size_t len)
{
    if (len == 0)
        return NULL;
    struct truth_text *t = pool_get(sizeof *t + len);
    t->refs = 1;
    t->len = (uint32_t)len;
    memcpy(t->bytes, bytes, len);
    return t;
}

struct truth_text *truth_text_ref(struct truth_text *t)
{
    if (t)
        t->refs++;
    return t;
}

void truth_text_unref(struct truth_text *t)
{
    if (t && --t->refs == 0)
        pool_put(t, sizeof *t + t->len);
}

void truth_copy(struct truth *to, const struct truth *from)
{
    struct truth_text *text = truth_text_ref(from->text);
    truth_text_unref(to->text);
    *to = *from;
    to->text = text;
}

void truth_set(struct truth *t, enum truth_kind kind)
{
    truth_text_unref(t->text);
    t->kind = (uint8_t)kind;
    t->op[0] = t->birth[0] = '\0';
    t->token = t->number = t->fence = t->expires_ms = t->slack_ms = 0;
    t->text = NULL;
}

void truth_set_text(struct truth *t, const char *bytes, size_t len)
{
    truth_text_unref(t->text);
    t->text = truth_text_new(bytes, len);
}

void truth_fini(struct truth *t)
{
    truth_text_unref(t->text);
    t->text = NULL;
}
