/*
 * What the masters have said, master by master and as a majority says it. Nothing is sent here.
 */
#include <string.h>

#include "base/pool.h"
#include "base/util.h"
#include "dropin/exchange_private.h"

/* ---- holds as text (lua/hold.lua) ---- */

/* Takes "<name>=<word> " off the head of a text. Returns the word; NULL: it is not there. */
static const char *take_truth_word(const char **text, const char *end, const char *name,
                                   size_t *len)
{
    size_t name_len = strlen(name);
    const char *word = *text + name_len + 1, *blank;
    if ((size_t)(end - *text) <= name_len || memcmp(*text, name, name_len) != 0 ||
        (*text)[name_len] != '=' || !(blank = memchr(word, ' ', (size_t)(end - word))))
        return NULL;
    *len = (size_t)(blank - word);
    *text = blank + 1;
    return word;
}

static bool take_truth_number(const char **text, const char *end, const char *name, int64_t *out)
{
    size_t len;
    const char *word = take_truth_word(text, end, name, &len);
    return word && util_parse_int(word, len, 0, INT64_MAX, out) == 0;
}

/* Copies an operation. False: it is none. */
static bool copy_op(char out[DROPIN_OP_MAX + 1], const char *op, size_t len)
{
    if (!op || len == 0 || len > DROPIN_OP_MAX)
        return false;
    memcpy(out, op, len);
    out[len] = 0;
    return true;
}

/* Reads "<token>", "<token>.<number>" or "<token>.<number>/<birth>"; without a birth the hold has
 * not been changed since it was taken. */
static bool take_version(const char **text, const char *end, struct truth *out)
{
    size_t len = 0;
    const char *word = take_truth_word(text, end, "seq", &len);
    const char *slash = word ? memchr(word, '/', len) : NULL;
    strcpy(out->birth, out->op);
    if (slash && !copy_op(out->birth, slash + 1, (size_t)(word + len - slash - 1)))
        return false;
    len = slash ? (size_t)(slash - word) : len;
    const char *dot = word ? memchr(word, '.', len) : NULL;
    out->number = 0;
    if (dot &&
        util_parse_int(dot + 1, (size_t)(word + len - dot - 1), 0, INT64_MAX, &out->number) != 0)
        return false;
    return word &&
           util_parse_int(word, dot ? (size_t)(dot - word) : len, 0, INT64_MAX, &out->token) == 0;
}

/* Reads what stands under a key. FOREIGN: it is no hold. */
static void read_hold(const char *text, size_t text_len, struct truth *out)
{
    static const char prefix[] = "drop-in ", owner[] = "owner=";
    const char *end = text + text_len, *op;
    int64_t any;
    size_t len;
    truth_set(out, TRUTH_FOREIGN);
    op = take_truth_word(&text, end, "op", &len);
    if (!copy_op(out->op, op, op ? len : 0) ||
        !take_truth_number(&text, end, "token", &out->fence) ||
        !take_truth_number(&text, end, "count", &any) || !take_version(&text, end, out) ||
        !take_truth_number(&text, end, "lease", &any) ||
        !take_truth_number(&text, end, "end", &any) ||
        !take_truth_number(&text, end, "taken", &any) || (size_t)(end - text) < sizeof owner - 1 ||
        memcmp(text, owner, sizeof owner - 1) != 0) {
        truth_set(out, TRUTH_FOREIGN);
        return;
    }
    text += sizeof owner - 1;
    len = (size_t)(end - text);
    bool is_state = len >= sizeof prefix - 1 && memcmp(text, prefix, sizeof prefix - 1) == 0;
    out->kind = is_state ? TRUTH_DROPIN : TRUTH_NATIVE;
    truth_set_text(out, text, len);
}

/* ---- one master ---- */

void exchange_forget(struct exchange_said *said)
{
    if (!said->truth)
        return;
    truth_fini(said->truth);
    pool_put(said->truth, sizeof *said->truth);
    said->truth = NULL;
}

/* Writes what a master says that stands there. */
static void read_other(enum exchange_code code, const struct master_value *text, struct truth *out)
{
    switch (code) {
    case EXCHANGE_OTHER:
        if (text->len > 0)
            read_hold(text->text, text->len, out);
        else
            truth_set(out, TRUTH_FREE);
        break;
    case EXCHANGE_GONE: /* taken from us: nothing of it is there, and never will be */
        truth_set(out, TRUTH_FREE);
        break;
    case EXCHANGE_SHARED:
        truth_set(out, TRUTH_NATIVE);
        break;
    case EXCHANGE_PLAIN:
        truth_set(out, TRUTH_PLAIN);
        truth_set_text(out, text->text, text->len);
        break;
    default:
        truth_set(out, TRUTH_FOREIGN);
        break;
    }
}

void exchange_note(struct exchange_part *p, int i, const struct master_answer *answer)
{
    enum exchange_code code = (enum exchange_code)answer->values[0];
    struct exchange_said *said = &p->said[i];
    said->left_ms = answer->values[2];
    if (code == EXCHANGE_DONE) {
        said->kind = SAID_DONE;
        said->line = p->what == EXCHANGE_END ? said->left_ms : 0;
        return;
    }
    if (code == EXCHANGE_ALL_NEEDED) {
        said->kind = SAID_AS_GUESS;
        return;
    }
    said->kind = SAID_OTHER;
    if (!said->truth)
        said->truth = pool_get(sizeof *said->truth);
    read_other(code, answer->item_text, said->truth);
    said->truth->expires_ms = p->exchange->sent_ms + said->left_ms;
}

/* Returns what stood under the name at master i when it answered; NULL: it has not. */
static const struct truth *told_by(const struct exchange_part *p, int i)
{
    if (p->said[i].kind == SAID_NOTHING)
        return NULL;
    return p->said[i].kind == SAID_OTHER ? p->said[i].truth : &p->guess;
}

int exchange_count_done(const struct exchange_part *p)
{
    int n = 0;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++)
        n += p->said[i].kind == SAID_DONE;
    return n;
}

int exchange_count_held(const struct exchange_part *p)
{
    int n = 0;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++)
        n += p->said[i].kind == SAID_OTHER && p->said[i].truth->kind != TRUTH_FREE;
    return n;
}

bool exchange_may_have_done(const struct exchange_part *p, int i)
{
    const struct exchange_said *said = &p->said[i];
    return said->kind == SAID_DONE || (said->kind == SAID_NOTHING && !said->is_unasked);
}

int exchange_count_may_have_done(const struct exchange_part *p)
{
    int n = 0;
    for (int i = 0; i < p->exchange->broker->rounds.n; i++)
        n += exchange_may_have_done(p, i);
    return n;
}

/* ---- a majority ---- */

static bool is_same_truth(const struct truth *a, const struct truth *b)
{
    return a->kind == b->kind && strcmp(a->op, b->op) == 0;
}

static int64_t expires_ms(const struct exchange_part *p, int i)
{
    const struct exchange_said *said = &p->said[i];
    bool is_told = said->kind == SAID_OTHER || said->kind == SAID_AS_GUESS || p->wants_time;
    return is_told ? p->exchange->sent_ms + said->left_ms : p->guess.expires_ms;
}

/* Returns how much later than by the time that was told, and counted from when it was asked for, it
 * may end: what a master has said it had when the question came, which was before now. */
static int64_t slack_ms(const struct exchange_part *p)
{
    return p->exchange->broker->now_ms - p->exchange->sent_ms;
}

/* Returns until when a majority has `t`, which so many have. */
static int64_t majority_expires_ms(const struct exchange_part *p, const struct truth *t)
{
    int64_t longest[QUORUM_MASTERS_MAX] = {0};
    int n = 0, n_masters = p->exchange->broker->rounds.n;
    for (int i = 0; i < n_masters; i++) {
        const struct truth *told = told_by(p, i);
        if (!told || !is_same_truth(told, t))
            continue;
        int at = n++;
        for (; at > 0 && longest[at - 1] < expires_ms(p, i); at--)
            longest[at] = longest[at - 1];
        longest[at] = expires_ms(p, i);
    }
    return longest[quorum_need(n_masters) - 1];
}

/* Returns a master that says what a majority says; -1: none does. */
static int find_majority(const struct exchange_part *p)
{
    int n = p->exchange->broker->rounds.n;
    for (int i = 0; i < n; i++) {
        const struct truth *t = told_by(p, i), *other;
        int same = 0;
        for (int j = 0; t && j < n; j++)
            same += (other = told_by(p, j)) && is_same_truth(t, other);
        if (same >= quorum_need(n))
            return i;
    }
    return -1;
}

bool exchange_is_known(const struct exchange_part *p)
{
    return find_majority(p) >= 0;
}

void exchange_judge(const struct exchange_part *p, struct truth *out)
{
    int i = find_majority(p);
    if (i < 0) {
        truth_set(out, TRUTH_SPLIT);
        return;
    }
    const struct truth *t = told_by(p, i), *other;
    truth_copy(out, t);
    out->expires_ms = majority_expires_ms(p, t);
    if (out->slack_ms < slack_ms(p))
        out->slack_ms = slack_ms(p);
    for (int j = 0; j < p->exchange->broker->rounds.n; j++) {
        other = told_by(p, j);
        if (other && is_same_truth(t, other) && other->fence > out->fence)
            out->fence = other->fence;
    }
}

void exchange_result(const struct exchange_part *p, struct truth *out)
{
    if (p->what == EXCHANGE_END) {
        truth_set(out, TRUTH_FREE);
        return;
    }
    if (p->what == EXCHANGE_LOOK) {
        truth_copy(out, &p->guess);
        out->expires_ms = majority_expires_ms(p, &p->guess);
        if (p->wants_time && out->slack_ms < slack_ms(p))
            out->slack_ms = slack_ms(p);
        return;
    }
    bool is_new = p->what == EXCHANGE_NEW;
    out->kind = TRUTH_DROPIN;
    strcpy(out->op, p->op);
    strcpy(out->birth, is_new ? p->op : p->guess.birth);
    out->token = is_new ? p->floor : p->guess.token;
    out->number = is_new ? 0 : p->guess.number + 1;
    out->fence = p->fence;
    out->expires_ms = p->exchange->sent_ms + p->lease_ms;
    out->slack_ms = p->keeps_time ? p->guess.slack_ms : 0;
    if (out->slack_ms < slack_ms(p))
        out->slack_ms = slack_ms(p);
    truth_text_unref(out->text);
    out->text = truth_text_ref(p->text);
}
