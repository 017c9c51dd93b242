/*
 * Whether the user by which a server is looked at may do all that brokers do.
 *
 *   MULTI -> each command that is needed, queued or refused -> DISCARD
 *
 * So none of them is run. tests/e2e/test_deployments.py holds this table to the scripts and to the
 * rule in holdfast.ini(5).
 */
#include <stdio.h>
#include <string.h>

#include "redis/master_private.h"

enum right_kind {
    RIGHT_NEEDED,
    RIGHT_MIRROR, /* needed with mirror = yes */
    RIGHT_USEFUL
};

struct right {
    const char *rule, *words; /* words: some that are complete, as they are judged only then */
    uint8_t kind;             /* enum right_kind */
};

#define KEY " holdfast:look"

static const struct right rights[] = {
    {"+ping", "PING", RIGHT_NEEDED},
    {"+select", "SELECT 0", RIGHT_NEEDED},
    {"+script|load", "SCRIPT LOAD x", RIGHT_NEEDED},
    {"+script|exists", "SCRIPT EXISTS x", RIGHT_NEEDED},
    {"+evalsha", "EVALSHA x 0", RIGHT_NEEDED},
    {"+publish", "PUBLISH holdfast:wake: x", RIGHT_NEEDED},
    {"+subscribe", "SUBSCRIBE holdfast:wake:", RIGHT_NEEDED},
    {"+unsubscribe", "UNSUBSCRIBE holdfast:wake:", RIGHT_NEEDED},
    {"+del", "DEL" KEY, RIGHT_NEEDED},
    {"+exists", "EXISTS" KEY, RIGHT_NEEDED},
    {"+get", "GET" KEY, RIGHT_NEEDED},
    {"+mget", "MGET" KEY, RIGHT_NEEDED},
    {"+set", "SET" KEY " x", RIGHT_NEEDED},
    {"+pexpire", "PEXPIRE" KEY " 1", RIGHT_NEEDED},
    {"+pexpiretime", "PEXPIRETIME" KEY, RIGHT_NEEDED},
    {"+pttl", "PTTL" KEY, RIGHT_NEEDED},
    {"+hdel", "HDEL" KEY " x", RIGHT_NEEDED},
    {"+hget", "HGET" KEY " x", RIGHT_NEEDED},
    {"+hgetall", "HGETALL" KEY, RIGHT_NEEDED},
    {"+hmget", "HMGET" KEY " x", RIGHT_NEEDED},
    {"+hset", "HSET" KEY " x x", RIGHT_NEEDED},
    {"+lindex", "LINDEX" KEY " 0", RIGHT_NEEDED},
    {"+llen", "LLEN" KEY, RIGHT_NEEDED},
    {"+lpop", "LPOP" KEY, RIGHT_NEEDED},
    {"+lpush", "LPUSH" KEY " x", RIGHT_NEEDED},
    {"+lrem", "LREM" KEY " 0 x", RIGHT_NEEDED},
    {"+rpush", "RPUSH" KEY " x", RIGHT_NEEDED},
    {"+zadd", "ZADD" KEY " 0 x", RIGHT_NEEDED},
    {"+zcard", "ZCARD" KEY, RIGHT_NEEDED},
    {"+zcount", "ZCOUNT" KEY " 0 0", RIGHT_NEEDED},
    {"+zrange", "ZRANGE" KEY " 0 0", RIGHT_NEEDED},
    {"+zrangebyscore", "ZRANGEBYSCORE" KEY " 0 0", RIGHT_NEEDED},
    {"+zrem", "ZREM" KEY " x", RIGHT_NEEDED},
    {"+zremrangebyscore", "ZREMRANGEBYSCORE" KEY " 0 0", RIGHT_NEEDED},
    {"+zrevrange", "ZREVRANGE" KEY " 0 0", RIGHT_NEEDED},
    {"+zscore", "ZSCORE" KEY " x", RIGHT_NEEDED},
    {"+type", "TYPE lock", RIGHT_MIRROR},
    {"+hlen", "HLEN lock", RIGHT_MIRROR},
    {"+pexpireat", "PEXPIREAT lock 1", RIGHT_MIRROR},
    {"+client|id", "CLIENT ID", RIGHT_USEFUL},
    {"+client|kill", "CLIENT KILL ID 0", RIGHT_USEFUL},
    {"+client|no-evict", "CLIENT NO-EVICT off", RIGHT_USEFUL},
    {"+client|setname", "CLIENT SETNAME x", RIGHT_USEFUL},
    {"+config|get", "CONFIG GET maxmemory-policy", RIGHT_USEFUL},
};

enum { N_RIGHTS = sizeof rights / sizeof rights[0] };

static bool is_due(const struct master *m, const struct right *r)
{
    return r->kind != RIGHT_MIRROR || m->setup.mirror;
}

static void add_word(char list[MASTER_RIGHTS_MAX], const char *word)
{
    size_t len = strlen(list);

    snprintf(list + len, MASTER_RIGHTS_MAX - len, "%s%s", len > 0 ? " " : "", word);
}

/* What is refused for its key or its channel is said in the server's words, a command by its rule.
 */
static void note_refused(struct master_looking *l, const struct right *r, const char *words)
{
    if (strstr(words, "channel"))
        snprintf(l->no_channels, sizeof l->no_channels, "%s", words);
    else if (strstr(words, "access"))
        snprintf(r->kind == RIGHT_MIRROR ? l->no_plain_keys : l->no_keys, REPLY_WORDS_MAX, "%s",
                 words);
    else if (strncmp(words, "NOPERM", strlen("NOPERM")) == 0)
        add_word(r->kind == RIGHT_USEFUL ? l->not_useful : l->missing, r->rule);
    else if (r->kind != RIGHT_USEFUL && strstr(words, "unknown command"))
        add_word(l->disabled, r->rule + 1);
}

static int on_right(struct master *m)
{
    struct master_looking *l = m->looking;
    const struct reply_value *v = m->reply->values;
    char words[REPLY_WORDS_MAX];

    while (!is_due(m, &rights[l->rights_told]))
        l->rights_told++;
    const struct right *r = &rights[l->rights_told++];
    if (v->type == REPLY_ERROR)
        note_refused(l, r, reply_words(words, sizeof words, reply_text(m->reply, v), v->len));
    return 0;
}

static int on_discard(struct master *m)
{
    if (master_said_error(m))
        return master_give_up(m, "DISCARD");
    return master_look_on(m);
}

static int on_multi(struct master *m)
{
    struct master_looking *l = m->looking;
    const struct reply_value *v = m->reply->values;

    if (master_said_error(m)) {
        reply_words(l->no_multi, sizeof l->no_multi, reply_text(m->reply, v), v->len);
        return master_look_on(m);
    }
    if (!reply_is_text(m->reply, v, "OK"))
        return -1;
    for (int i = 0; i < N_RIGHTS; i++)
        if (is_due(m, &rights[i]))
            master_ask_words(m, on_right, rights[i].words);
    master_ask_words(m, on_discard, "DISCARD");
    master_flush(m, m->heard_ms);
    return 0;
}

void master_lacks(struct master *m, const char *rule)
{
    add_word(m->looking->missing, rule);
}

void master_look_at_rights(struct master *m)
{
    master_ask_words(m, on_multi, "MULTI");
}
