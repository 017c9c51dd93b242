/* Makes and frees the answer to LOCKINFO, counts the masters that show a hold, and says for people
 * what a master shows. */
#include "lock/lock_info.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct lock_info *lock_info_new(int n_masters)
{
    struct lock_info *info = util_alloc(sizeof *info + (size_t)n_masters * sizeof info->masters[0]);
    info->n_masters = n_masters;
    return info;
}

void lock_info_free(struct lock_info *info)
{
    if (!info)
        return;
    for (int i = 0; i < info->n_listed; i++)
        owner_unref(info->listed[i].owner);
    for (int i = 0; i < info->n_waiters_listed; i++)
        owner_unref(info->waiters[i].owner);
    for (int i = 0; i < info->n_masters; i++) {
        struct lock_info_master *m = &info->masters[i];
        for (int j = 0; j < m->n_seen; j++) {
            free(m->seen[j].op);
            owner_unref(m->seen[j].owner);
        }
        free(m->seen);
        free(m->text);
    }
    free(info->name);
    free(info);
}

void lock_info_saw(struct lock_info *info, int i, const struct lock_info_seen *seen)
{
    struct lock_info_master *m = &info->masters[i];
    assert(m->n_seen < LOCK_INFO_HOLDERS);
    if (!m->seen)
        m->seen = util_alloc(LOCK_INFO_HOLDERS * sizeof m->seen[0]);
    m->seen[m->n_seen++] = *seen;
}

static const struct lock_info_seen *find_seen(const struct lock_info_master *m, const char *op)
{
    for (int j = 0; j < m->n_seen; j++) {
        if (strcmp(m->seen[j].op, op) == 0)
            return &m->seen[j];
    }
    return NULL;
}

bool lock_info_is_held(const struct lock_info *info, const char *op)
{
    int votes = 0;
    for (int i = 0; i < info->n_masters; i++)
        votes += find_seen(&info->masters[i], op) != NULL;
    return votes >= quorum_need(info->n_masters);
}

bool lock_info_may_hold(const struct lock_info *info, const char *op)
{
    int votes = 0;
    for (int i = 0; i < info->n_masters; i++)
        votes += !info->masters[i].answered || find_seen(&info->masters[i], op);
    return votes >= quorum_need(info->n_masters);
}

const struct lock_info_seen *lock_info_latest(const struct lock_info *info, const char *op)
{
    const struct lock_info_seen *latest = NULL;
    for (int i = 0; i < info->n_masters; i++) {
        const struct lock_info_seen *seen = find_seen(&info->masters[i], op);
        if (seen && (!latest || count_version_is_later(seen->version, latest->version)))
            latest = seen;
    }
    return latest;
}

int64_t lock_info_highest_token(const struct lock_info *info, const char *op)
{
    int64_t token = 0;
    for (int i = 0; i < info->n_masters; i++) {
        for (int j = 0; j < info->masters[i].n_seen; j++) {
            const struct lock_info_seen *seen = &info->masters[i].seen[j];
            if (strcmp(seen->op, op) == 0 && seen->token > token)
                token = seen->token;
        }
    }
    return token;
}

bool lock_info_is_first(const struct lock_info *info, int i, int j)
{
    for (int k = 0; k < i; k++) {
        if (find_seen(&info->masters[k], info->masters[i].seen[j].op))
            return false;
    }
    return true;
}

char *lock_info_describe(const struct lock_info_master *m)
{
    const struct lock_info_seen *first = m->seen;
    char text[LOCK_OWNER_MAX + 128], more[64] = "";
    if (m->plain_ms)
        return util_format("held by %s, %" PRId64 " ms left", LOCK_INFO_PLAIN, m->plain_ms);
    if (m->n_seen == 0)
        return util_strdup("free");
    if (m->n_holds > 1)
        snprintf(more, sizeof more, "; %" PRId64 " holds in all", m->n_holds);
    bool is_drop_in = owner_is_drop_in(first->owner->text, first->owner->len);
    snprintf(text, sizeof text, "held by %s under token %" PRId64 ", %" PRId64 " ms left%s",
             is_drop_in ? "commands of Redis" : first->owner->text, first->token, first->pttl_ms,
             more);
    return util_strdup(text);
}
