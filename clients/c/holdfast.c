/*
 * The calls of holdfast.h, the lists of locks, and the callbacks: each event is noted where it
 * happens and told by tell(), which the loop runs when nothing else of this library is at work.
 */
#include "holdfast.h"

#include <errno.h>
#include <event2/dns.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum { SILENCE_MS = 3000, SILENCE_MIN_MS = 100, DEFAULT_PORT = 5625 };

int64_t hf_now_ms(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void hf_set_timer(struct event *timer, int64_t left_ms)
{
    int64_t ms = left_ms > 0 ? left_ms : 0;
    struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    if (event_add(timer, &tv) != 0)
        event_active(timer, EV_TIMEOUT, 0);
}

/* ---- lists ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = ((const struct holdfast_lock *)a)->id, y = ((const struct holdfast_lock *)b)->id;
    return (x > y) - (x < y);
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int by_token = (x->token > y->token) - (x->token < y->token);
    return by_token ? by_token : strcmp(x->name, y->name);
}

struct holdfast_lock *hf_by_tag(struct holdfast *h, const char *tag)
{
    struct holdfast_lock key = {.id = strtoull(tag, NULL, 10)};
    struct holdfast_lock **found = tfind(&key, &h->by_id, compare_ids);
    return found ? *found : NULL;
}

struct part *hf_by_token(struct holdfast *h, const char *name, int64_t token)
{
    struct part key = {.name = name, .token = token};
    struct part **found = tfind(&key, &h->by_token, compare_parts);
    return found ? *found : NULL;
}

/* Without memory it is not found by its token, so it counts as not renewed and is lost in time. */
void hf_set_token(struct part *p, int64_t token)
{
    struct holdfast *h = p->lock->h;
    if (p->in_tree)
        (void)tdelete(p, &h->by_token, compare_parts);
    p->in_tree = false;
    p->token = token;
    if (token != 0) {
        struct part **found = tsearch(p, &h->by_token, compare_parts);
        p->in_tree = found && *found == p;
    }
}

int hf_list(struct holdfast_lock *l)
{
    if (!tsearch(l, &l->h->by_id, compare_ids))
        return -1;
    TAILQ_INSERT_TAIL(&l->h->locks, l, next);
    l->h->n_open++;
    return 0;
}

void hf_unlist(struct holdfast_lock *l)
{
    (void)tdelete(l, &l->h->by_id, compare_ids);
    for (size_t i = 0; i < l->n; i++) {
        struct part *p = &l->parts[i];
        if (p->in_tree)
            (void)tdelete(p, &l->h->by_token, compare_parts);
        p->in_tree = false;
    }
    l->h->n_open--;
}

/* ---- the callbacks ---- */

void hf_look_at(struct holdfast_lock *l)
{
    if (!l->is_told)
        TAILQ_INSERT_TAIL(&l->h->told, l, next_told);
    l->is_told = true;
    event_active(l->h->teller, EV_TIMEOUT, 0);
}

static unsigned bit(enum holdfast_event event)
{
    return 1u << event;
}

void hf_tell(struct holdfast_lock *l, enum holdfast_event event)
{
    if (event == HOLDFAST_SAFE && !l->told_jeopardy && !l->wants_safe) {
        l->pending &= ~bit(HOLDFAST_JEOPARDY);
        return;
    }
    if (event == HOLDFAST_JEOPARDY)
        l->pending &= ~bit(HOLDFAST_SAFE);
    if (event == HOLDFAST_SAFE)
        l->pending &= ~bit(HOLDFAST_JEOPARDY);
    if (event == HOLDFAST_CANCELLED)
        l->pending = 0;
    if (event != HOLDFAST_JEOPARDY || !l->told_jeopardy)
        l->pending |= bit(event);
    hf_look_at(l);
}

/* Returns what is to be told next, in the order of their numbers; 0: nothing. */
static enum holdfast_event next_event(struct holdfast_lock *l)
{
    for (unsigned event = HOLDFAST_GRANTED; event <= HOLDFAST_FAILED; event++) {
        if (!(l->pending & bit(event)))
            continue;
        l->pending &= ~bit(event);
        l->told_granted |= event == HOLDFAST_GRANTED;
        if (event == HOLDFAST_JEOPARDY || event == HOLDFAST_SAFE)
            l->told_jeopardy = event == HOLDFAST_JEOPARDY;
        return event;
    }
    return 0;
}

static void free_lock(struct holdfast_lock *l)
{
    TAILQ_REMOVE(&l->h->locks, l, next);
    event_free(l->timer);
    for (size_t i = 0; i < l->n; i++)
        free(l->parts[i].own_name);
    free(l);
}

static void free_all(struct holdfast *h)
{
    struct holdfast_lock *l = NULL;
    link_close(h, true);
    while ((l = TAILQ_FIRST(&h->locks))) {
        if (l->state != HOLDFAST_ENDED && l->state != HOLDFAST_IS_LOST)
            hf_unlist(l);
        free_lock(l);
    }
    for (size_t i = 0; i < h->n_brokers; i++)
        free(h->brokers[i].host);
    if (h->dns)
        evdns_base_free(h->dns, 0);
    if (h->tick)
        event_free(h->tick);
    if (h->teller)
        event_free(h->teller);
    free(h->brokers);
    free(h->other.host);
    free(h->user);
    free(h->password);
    free(h);
}

static void tell(evutil_socket_t fd, short what, void *holdfast)
{
    struct holdfast *h = holdfast;
    struct holdfast_lock *l = NULL;
    (void)fd;
    (void)what;
    h->telling = true;
    while (!h->freed && (l = TAILQ_FIRST(&h->told))) {
        bool is_over = l->state == HOLDFAST_ENDED || l->state == HOLDFAST_IS_LOST;
        enum holdfast_event event = l->freed ? 0 : next_event(l);
        if (event) {
            l->callback(l, event, l->arg);
            continue;
        }
        TAILQ_REMOVE(&h->told, l, next_told);
        l->is_told = false;
        if (l->freed && is_over && l->n_asked == 0)
            free_lock(l);
    }
    h->telling = false;
    if (h->freed)
        free_all(h);
}

/* ---- the connection ---- */

/* Takes one broker apart: host, host:port, [address], [address]:port, unix:/path. It may
 * begin as an URL. */
static int read_address(char *text, struct address *to)
{
    char *host = text, *port = NULL, *end = NULL;
    if (strncmp(text, "redis://", 8) == 0)
        host = text += 8;
    to->is_unix = strncmp(text, "unix:", 5) == 0;
    if (to->is_unix) {
        host = strncmp(text, "unix://", 7) == 0 ? text + 7 : text + 5;
    } else if (text[0] == '[') {
        host = text + 1;
        end = strchr(host, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return -1;
        *end = '\0';
        port = end[1] == ':' ? end + 2 : NULL;
    } else if ((port = strchr(text, ':'))) {
        *port++ = '\0';
    }
    long number = port ? strtol(port, &end, 10) : DEFAULT_PORT;
    if (host[0] == '\0' || number < 1 || number > 65535 || (port && *end != '\0'))
        return -1;
    to->port = (int)number;
    to->host = strdup(host);
    return to->host ? 0 : -1;
}

static int read_brokers(struct holdfast *h, const char *list)
{
    char *text = strdup(list), *rest = NULL;
    int bad = text ? 0 : -1;
    for (char *one = text ? strtok_r(text, ", \t", &rest) : NULL; one && !bad;
         one = strtok_r(NULL, ", \t", &rest)) {
        struct address *more = realloc(h->brokers, (h->n_brokers + 1) * sizeof *more);
        if (!more) {
            bad = -1;
            break;
        }
        h->brokers = more;
        bad = read_address(one, &more[h->n_brokers]);
        h->n_brokers += bad ? 0 : 1;
    }
    free(text);
    return h->n_brokers == 0 ? -1 : bad;
}

/* host/pid/80 random bits: owners are the only proof that a lock is one's own. */
static int make_owner(struct holdfast *h, const char *name)
{
    unsigned char bits[10];
    char host[64] = "", text[2 * sizeof bits + 1];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return -1;
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(text + 2 * i, 3, "%02x", bits[i]);
    if (!name)
        (void)gethostname(host, sizeof host - 1);
    snprintf(h->owner, sizeof h->owner, "%.150s/%ld/%s", name ? name : host, (long)getpid(), text);
    return 0;
}

static struct holdfast *make(struct event_base *base, const struct holdfast_options *o)
{
    struct holdfast *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    TAILQ_INIT(&h->asks);
    TAILQ_INIT(&h->locks);
    TAILQ_INIT(&h->told);
    h->base = base;
    h->silence_ms = o->silence_ms ? o->silence_ms : SILENCE_MS;
    h->open = o->open;
    h->open_arg = o->open_arg;
    h->tick = event_new(base, -1, 0, link_on_tick, h);
    h->teller = event_new(base, -1, 0, tell, h);
    h->user = o->user ? strdup(o->user) : NULL;
    h->password = o->password ? strdup(o->password) : NULL;
    bool is_whole = h->tick && h->teller && !h->user == !o->user && !h->password == !o->password;
    errno = is_whole ? EINVAL : ENOMEM;
    if (is_whole && make_owner(h, o->name) == 0 &&
        read_brokers(h, o->brokers ? o->brokers : "127.0.0.1") == 0)
        return h;
    int why = errno;
    free_all(h);
    errno = why;
    return NULL;
}

struct holdfast *holdfast_new(struct event_base *base, const struct holdfast_options *options)
{
    struct holdfast_options o = HOLDFAST_OPTIONS;
    if (options)
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (!base || (o.silence_ms != 0 && o.silence_ms < SILENCE_MIN_MS)) {
        errno = EINVAL;
        return NULL;
    }
    return make(base, &o);
}

void holdfast_free(struct holdfast *h)
{
    if (!h)
        return;
    h->freed = true;
    if (!h->telling)
        free_all(h);
}

const char *holdfast_trouble(const struct holdfast *h)
{
    return h->trouble;
}
