/* Reads the records of lua/roll.lua, and keeps since when they are ours. */
#include "redis/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

enum { PLACE_TAKEN = -2, PLACE_FREE = -1 };

struct record {
    char instance[PLACE_RECORD_MAX];
    int64_t left_ms, token;
};

/* Reads "<instance> <left> <token> <time>". */
static int read_record(const char *text, struct record *out)
{
    int64_t time_ms;
    int end = 0;

    if (sscanf(text, "%127s %" SCNd64 " %" SCNd64 " %" SCNd64 "%n", out->instance, &out->left_ms,
               &out->token, &time_ms, &end) != 4)
        return -1;
    return text[end] == '\0' && out->left_ms >= PLACE_TAKEN && out->token >= 0 ? 0 : -1;
}

/* The place has been taken anew: what was before this answer is not known. */
static void begin(struct place *p, const struct record *r, int64_t heard_ms)
{
    p->since_ms = heard_ms;
    p->whole_ms = INT64_MAX;
    p->left_ms = r->left_ms;
    p->token = r->token;
}

static bool goes_on(const struct place *p, int64_t heard_ms)
{
    int64_t gap_ms = p->has_broken ? PLACE_GAP_MS : PLACE_SILENCE_MS;

    return p->is_ours && !p->is_doubtful && heard_ms - p->asked_ms <= gap_ms;
}

bool place_take(struct place *p, const char *instance, const struct place_told *told,
                const struct life *life)
{
    char text[PLACE_RECORD_MAX];
    struct record r = {.instance = ""};

    if (told->len >= sizeof text)
        return false;
    memcpy(text, told->record, told->len);
    text[told->len] = '\0';
    if (told->len > 0 && read_record(text, &r) != 0)
        return false;
    if (strcmp(r.instance, instance) != 0) {
        p->is_ours = false;
        p->is_lost = true;
        return true;
    }
    bool is_new_life = strcmp(p->life.text, life->text) != 0;
    if (is_new_life) {
        p->joined_ms = told->asked_ms;
        if (!goes_on(p, told->heard_ms) || r.left_ms != PLACE_FREE)
            begin(p, &r, told->heard_ms);
    } else if (strcmp(p->record, text) != 0) {
        begin(p, &r, told->heard_ms);
    }
    if (told->is_active && p->whole_ms == INT64_MAX)
        p->whole_ms = told->heard_ms;
    p->life = *life;
    memcpy(p->record, text, sizeof text);
    p->is_ours = true;
    p->has_broken = p->is_doubtful = false;
    p->asked_ms = told->asked_ms;
    return true;
}

void place_broke(struct place *p, int64_t now_ms)
{
    p->has_broken = true;
    p->is_doubtful |= now_ms - p->asked_ms > PLACE_SILENCE_MS;
}

int64_t place_complete_ms(const struct place *p, int64_t memory_ms)
{
    if (!p->is_ours || p->is_lost)
        return INT64_MAX;
    return p->since_ms + (p->left_ms >= 0 ? util_min(p->left_ms, memory_ms) : memory_ms);
}
