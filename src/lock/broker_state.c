/* Texts of ids, questions about the data of a broker, its own requests. Nothing here decides
 * anything. */
#include "lock/broker_state.h"

#include <stddef.h>
#include <string.h>

#include "base/pool.h"
#include "redis/args.h"

/* "<broker><separator><number in base 36>" */
static void numbered(const struct broker *b, char separator, uint64_t number, char *out)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char text[16];
    char *end = text + sizeof text, *p = end;
    do {
        *--p = digits[number % 36];
        number /= 36;
    } while (number);
    size_t id_len = strlen(b->id);
    memcpy(out, b->id, id_len);
    out[id_len] = separator;
    memcpy(out + id_len + 1, p, (size_t)(end - p));
    out[id_len + 1 + (size_t)(end - p)] = '\0';
}

struct broker *broker_of_round(const struct round *r)
{
    return (struct broker *)((char *)r->rounds - offsetof(struct broker, rounds));
}

void broker_op_text(const struct broker *b, uint64_t op, char out[BROKER_OP_MAX + 1])
{
    numbered(b, '.', op, out);
}

bool broker_has_op(const struct broker *b, const char *op)
{
    size_t len = strlen(b->id);
    return strncmp(op, b->id, len) == 0 && op[len] == '.';
}

void broker_ticket_text(const struct broker *b, uint64_t number, char out[BROKER_TICKET_MAX + 1])
{
    if (number)
        numbered(b, '/', number, out);
    else
        strcpy(out, b->id);
}

/* A creating request's deadline is two time-outs after it was sent, by the master's clock as we
 * know it, and that may be wrong by as much again. */
int64_t broker_tomb_ms(const struct broker *b)
{
    return 4 * b->conf.request_timeout_ms;
}

void broker_add_part(struct args *it, struct lock_part part, const struct owner *owner)
{
    char text[LOCK_PART_MAX + 1];
    args_text(it, text, lock_part_text(part, owner, text));
}

/* A majority of masters has to be asked to take a hold away: so one of any majority has told. */
bool broker_has_heard(const struct broker *b, const struct lock *l, int64_t since_ms,
                      int64_t now_ms)
{
    int hear = 0, first = rounds_first(&b->rounds, l->name, l->name_len);
    for (int i = first; i < first + b->rounds.n; i++)
        hear += b->ears[i].since_ms <= since_ms && b->ears[i].heard_ms >= now_ms - BROKER_MEMORY_MS;
    return hear >= quorum_need(b->rounds.n);
}

struct lock_request *broker_new_request(struct broker *b, struct lock *l,
                                        const struct lock_request *like, enum lock_verb verb)
{
    struct lock_request *r = pool_get(sizeof *r);
    r->broker = b;
    r->number = ++b->last_request;
    r->owner = owner_ref(like->owner);
    r->verb = (uint8_t)verb;
    r->by_session = like->by_session;
    r->lock = l;
    work_ref(l);
    return r;
}
