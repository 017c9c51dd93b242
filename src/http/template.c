/*
 * Copies the text up to the next tag, then looks up what the tag names; the part between a tag and
 * its end is filled in the same way.
 */
#include "http/template.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TAG_MAX = 64 };

/* A part of the text, and what there is to fill it with. */
struct part {
    const char *text, *end;
    const struct template_values *values, *row; /* row: NULL outside of a list */
    const struct template_list *lists;
    const void *arg;
};

struct buf *template_value(struct template_values *values, const char *name)
{
    assert(values->n < TEMPLATE_VALUES_MAX);
    values->v[values->n].name = name;
    values->v[values->n++].start = buf_len(&values->text);
    return &values->text;
}

/* Returns the value's bytes; NULL if there is none of that name. */
static const char *find_value(const struct template_values *values, const char *name, size_t *len)
{
    *len = 0;
    for (size_t i = 0; values && i < values->n; i++) {
        if (strcmp(values->v[i].name, name) != 0)
            continue;
        size_t end = i + 1 < values->n ? values->v[i + 1].start : buf_len(&values->text);
        *len = end - values->v[i].start;
        return buf_head(&values->text) + values->v[i].start;
    }
    return NULL;
}

static const char *find_in_scope(const struct part *p, const char *name, size_t *len)
{
    const char *value = find_value(p->row, name, len);

    return value ? value : find_value(p->values, name, len);
}

static const struct template_list *find_list(const struct part *p, const char *name)
{
    const struct template_list *list = p->lists;

    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->name ? list : NULL;
}

static bool is_there(const struct part *p, const char *name)
{
    const struct template_list *list = find_list(p, name);
    size_t len;

    if (list)
        return list->n_rows > 0;
    find_in_scope(p, name, &len);
    return len > 0;
}

static void fill_part(struct buf *out, struct part p);

static void fill_rows(struct buf *out, struct part p, const char *name)
{
    const struct template_list *list = find_list(&p, name);

    for (size_t i = 0; list && i < list->n_rows; i++) {
        struct template_values row = {0};
        list->add_row(&row, p.arg, i);
        p.row = &row;
        fill_part(out, p);
        buf_fini(&row.text);
    }
}

/* Fills what stands between a tag of these words and its end. Returns what is behind that. */
static const char *fill_block(struct buf *out, struct part p, const char *words)
{
    char closing[TAG_MAX + 16];
    const char *behind;

    snprintf(closing, sizeof closing, "{{end %s}}", words);
    const char *end = memmem(p.text, (size_t)(p.end - p.text), closing, strlen(closing));
    assert(end);
    behind = end + strlen(closing);
    p.end = end;
    if (strncmp(words, "each ", 5) == 0)
        fill_rows(out, p, words + 5);
    else if (strncmp(words, "if not ", 7) == 0 ? !is_there(&p, words + 7) : is_there(&p, words + 3))
        fill_part(out, p);
    return behind;
}

/* Fills the tag whose words begin at p.text. Returns what is behind it, and behind its end. */
static const char *fill_tag(struct buf *out, struct part p)
{
    char words[TAG_MAX];
    size_t len = strcspn(p.text, "}"), value_len;

    assert(len < sizeof words);
    memcpy(words, p.text, len);
    words[len] = '\0';
    p.text += len + 2;
    if (strncmp(words, "each ", 5) == 0 || strncmp(words, "if ", 3) == 0)
        return fill_block(out, p, words);
    const char *value = find_in_scope(&p, words, &value_len);
    if (value)
        buf_append(out, value, value_len);
    return p.text;
}

static void fill_part(struct buf *out, struct part p)
{
    const char *tag;

    while ((tag = memmem(p.text, (size_t)(p.end - p.text), "{{", 2))) {
        buf_append(out, p.text, (size_t)(tag - p.text));
        p.text = tag + 2;
        p.text = fill_tag(out, p);
    }
    buf_append(out, p.text, (size_t)(p.end - p.text));
}

void template_fill(struct buf *out, const char *text, const struct template_values *values,
                   const struct template_list *lists, const void *arg)
{
    fill_part(out, (struct part){.text = text,
                                 .end = text + strlen(text),
                                 .values = values,
                                 .lists = lists,
                                 .arg = arg});
}
