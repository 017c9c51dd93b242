/* Calls are made and freed here, and what all of them share; call_run.c runs them. Owns all of
 * drop-in at one broker. */
#include "dropin/call.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dropin/cage.h"
#include "dropin/call_private.h"
#include "dropin/messages.h"
#include "dropin/probe.h"
#include "lock/broker.h"
#include "lock/locktab.h"
#include "redis/args.h"
#include "session/user.h"

enum { CAGE_BODIES = 500, SPARES_MAX = 256, SPARE_BYTES = 512 };

/* ---- all of it ---- */

struct dropin *dropin_new(struct broker *b, const struct dropin_conf *conf)
{
    struct dropin *d = util_alloc(sizeof *d);
    d->broker = b;
    d->tools.cage = cage_new(CAGE_BODIES);
    d->messages = messages_new(&(struct messages_setup){.rounds = &b->rounds, .broker = b->id});
    memory_init(&d->memory, b);
    turns_init(&d->turns);
    TAILQ_INIT(&d->calls);
    TAILQ_INIT(&d->finished);
    TAILQ_INIT(&d->spares);
    TAILQ_INIT(&d->checks);
    d->what_if.names = &d->what_if_name;
    dropin_configure(d, conf);
    return d;
}

void dropin_configure(struct dropin *d, const struct dropin_conf *conf)
{
    d->tools.max_hold_ms = conf->max_hold_ms;
    d->patience_ms = conf->patience_ms;
}

void dropin_close(struct dropin *d, int64_t now_ms)
{
    struct dropin_call *c, *next;
    d->closed = true;
    broker_begin(d->broker, now_ms);
    for (c = TAILQ_FIRST(&d->calls); c; c = next) {
        next = TAILQ_NEXT(c, listed);
        if (c->state == CALL_WAITS || c->state == CALL_PAUSES || c->state == CALL_QUEUES)
            call_fail(c, call_closed);
    }
    exchange_close(d->broker);
    memory_close(&d->memory);
    broker_end(d->broker, now_ms);
    call_end_checks(d);
    call_tell_finished(d);
}

static void free_all(struct dropin_call *c)
{
    truth_fini(&c->one_slot.truth);
    truth_fini(&c->one_item.truth);
    buf_fini(&c->one_name.text);
    run_fini(&c->run);
    job_fini(&c->job);
    free(c);
}

void dropin_free(struct dropin *d)
{
    if (!d)
        return;
    struct dropin_call *c;
    exchange_close(d->broker);
    assert(TAILQ_EMPTY(&d->calls) && TAILQ_EMPTY(&d->finished));
    while ((c = TAILQ_FIRST(&d->spares))) {
        TAILQ_REMOVE(&d->spares, c, listed);
        free_all(c);
    }
    scripts_flush(&d->scripts);
    keys_fini(&d->tools.keys);
    cage_free(d->tools.cage);
    run_fini(&d->what_if);
    buf_fini(&d->what_if_name.text);
    messages_free(d->messages);
    free(d);
}

struct dropin_figures dropin_figures(const struct dropin *d)
{
    return (struct dropin_figures){.n_scripts = HASH_COUNT(d->scripts.by_sha1),
                                   .n_names = d->broker->n_remembered,
                                   .script_bytes = d->scripts.bytes};
}

struct messages *dropin_messages(struct dropin *d)
{
    return d->messages;
}

/* ---- what the masters tell ---- */

static void doubt_call(void *call)
{
    ((struct dropin_call *)call)->doubted = true;
}

void dropin_called(struct dropin *d, const char *text, size_t len)
{
    const char *space = memchr(text, ' ', len), *bytes;
    size_t name_len;
    if (!space || !args_name_of_key(space + 1, len - (size_t)(space + 1 - text), &bytes, &name_len))
        return;
    const struct locktab_name name = locktab_name(bytes, name_len);
    struct spot *s = spot_find(d->broker, &name);
    if (s) {
        turns_each(s, doubt_call);
        memory_ended(s, text, (size_t)(space - text));
    }
    exchange_doubt(d->broker, text, (size_t)(space - text));
}

/* ---- calls ---- */

struct dropin_call *call_new(struct dropin *d)
{
    struct dropin_call *c = TAILQ_FIRST(&d->spares);
    if (c) {
        TAILQ_REMOVE(&d->spares, c, listed);
        d->n_spares--;
    } else {
        c = util_alloc(sizeof *c);
    }
    c->dropin = d;
    return c;
}

void call_make_slots(struct dropin_call *c)
{
    size_t n = (size_t)c->job.n_names;
    c->slots = n > 1 ? util_alloc(n * sizeof *c->slots) : &c->one_slot;
    c->items = n > 1 ? util_alloc(n * sizeof *c->items) : &c->one_item;
    c->run.names = n > 1 ? util_alloc(n * sizeof *c->run.names) : &c->one_name;
    for (size_t i = 0; i < n; i++)
        c->slots[i].name = locktab_name(c->job.locks[i].ptr, c->job.locks[i].len);
}

struct dropin_call *dropin_call_command(struct dropin *d, int db,
                                        const struct dropin_command *command)
{
    struct dropin_call *c = call_new(d);
    job_commands(&c->job, db, command, 1);
    return c;
}

struct dropin_call *dropin_call_multi(struct dropin *d, int db,
                                      const struct dropin_command *commands, int n,
                                      struct dropin_watch *watch)
{
    struct dropin_call *c = call_new(d);
    job_commands(&c->job, db, commands, n);
    c->job.is_multi = true;
    c->watch = watch;
    if (watch) {
        watch->refs++;
        c->writes = true; /* it goes behind a WATCH that is under way */
        call_watch_join(c);
    }
    return c;
}

struct dropin_call *dropin_call_eval(struct dropin *d, int db, const struct resp_arg *body,
                                     const struct dropin_script *script)
{
    struct dropin_call *c = call_new(d);
    job_script(&c->job, db, scripts_add(&d->scripts, body), script);
    return c;
}

struct dropin_call *dropin_call_evalsha(struct dropin *d, int db, const struct resp_arg *sha1,
                                        const struct dropin_script *script)
{
    struct dropin_call *c = call_new(d);
    job_script(&c->job, db, scripts_find(&d->scripts, sha1), script);
    return c;
}

struct request *dropin_request(struct dropin_call *c)
{
    return &c->base;
}

struct dropin_call *dropin_call_of(struct request *r)
{
    return (struct dropin_call *)r; /* its first member */
}

void dropin_hurry(struct session *s, int64_t now_ms)
{
    s->patient = false;
    call_hurry(dropin_call_of(TAILQ_FIRST(&s->requests)), now_ms);
}

void dropin_call_hide_owners(struct dropin_call *c)
{
    c->job.hides_owners = true;
}

void dropin_submit(struct dropin_call *c, int64_t now_ms)
{
    struct dropin *d = c->dropin;
    bool is_new = !d->closed && !c->job.error[0] && c->job.script && !c->job.script->is_checked;
    broker_begin(d->broker, now_ms);
    TAILQ_INSERT_TAIL(&d->calls, c, listed);
    if (c->base.session && c->base.session->user)
        c->user = user_ref(c->base.session->user);
    if (c->job.error[0])
        call_fail(c, c->job.error);
    else if (d->closed)
        call_fail(c, call_closed);
    else
        call_begin(c, now_ms);
    if (is_new)
        call_check_script(d, &c->job, now_ms);
    call_next(d, now_ms);
    broker_end(d->broker, now_ms);
    call_tell_finished(d);
}

void dropin_call_write(const struct dropin_call *c, struct resp_writer *w)
{
    if (c->is_aborted)
        resp_null_array(w);
    else
        store_reply_write(&c->run.reply, w);
}

void dropin_call_abandon(struct dropin_call *c)
{
    assert(c->state != CALL_FINISHED); /* it goes its way, and is freed when it ends */
    if (c->place)
        call_hurry(c, c->dropin->broker->now_ms);
}

const struct store_reply *dropin_reply(const struct dropin_call *c)
{
    return c->is_aborted ? NULL : &c->run.reply;
}

/* Frees the slots of a call about several names. */
static void free_slots(struct dropin_call *c)
{
    if (!c->slots || c->slots == &c->one_slot)
        return;
    for (int i = 0; i < c->job.n_names; i++) {
        truth_fini(&c->slots[i].truth);
        truth_fini(&c->items[i].truth);
        buf_fini(&c->run.names[i].text);
    }
    free(c->slots);
    free(c->items);
    free(c->run.names);
}

/* Clears a call for the next use; keeps the memory that the next one needs too. */
static void recycle(struct dropin_call *c)
{
    struct store_reply reply = c->run.reply;
    if (c->run.published.cap > 0)
        store_reply_fini(&c->run.published);
    job_clear(&c->job, SPARE_BYTES);
    memset(c, 0, offsetof(struct dropin_call, one_slot));
    store_reply_clear(&reply);
    c->run.reply = reply;
    truth_set(&c->one_slot.truth, TRUTH_UNKNOWN);
    truth_set(&c->one_item.truth, TRUTH_UNKNOWN);
    c->one_slot.watched = NULL;
    c->one_slot.is_told = false;
}

/* Returns whether the call has more memory than most calls need. */
static bool is_large(const struct dropin_call *c)
{
    return c->run.reply.cap > 64 || c->run.reply.texts.cap > SPARE_BYTES ||
           c->one_name.text.cap > SPARE_BYTES;
}

void dropin_call_free(struct dropin_call *c)
{
    struct dropin *d = c->dropin;
    free_slots(c);
    dropin_watch_drop(c->watch);
    user_unref(c->user);
    if (d->n_spares == SPARES_MAX || is_large(c)) {
        free_all(c);
        return;
    }
    recycle(c);
    TAILQ_INSERT_HEAD(&d->spares, c, listed);
    d->n_spares++;
}

/* ---- scripts ---- */

void dropin_script_load(struct dropin *d, const struct resp_arg *body, struct store_reply *out)
{
    if (cage_check(d->tools.cage, body->ptr, body->len, out) < 0)
        return;
    struct script_body *s = scripts_add(&d->scripts, body);
    store_add_text(out, STORE_BULK, s->sha1, CAGE_SHA1);
    script_body_unref(s);
}

bool dropin_script_exists(struct dropin *d, const struct resp_arg *sha1)
{
    struct script_body *s = scripts_find(&d->scripts, sha1);
    script_body_unref(s);
    return s != NULL;
}

void dropin_script_check(struct dropin *d, const struct resp_arg *sha1,
                         const struct dropin_script *script,
                         void (*row)(void *arg, const struct probe_row *), void *arg,
                         struct store_reply *error)
{
    struct script_body *s = scripts_find(&d->scripts, sha1);
    if (!s) {
        store_add_error(error, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    const struct probe_script probe = {.body = s->text,
                                       .len = s->len,
                                       .keys = script->keys,
                                       .args = script->args,
                                       .n_keys = script->n_keys,
                                       .n_args = script->n_args};
    (void)probe_run(d->tools.cage, &probe, CAGE_STEPS, row, arg, error);
    script_body_unref(s);
}

void dropin_script_flush(struct dropin *d)
{
    scripts_flush(&d->scripts);
}

long dropin_steps(const struct dropin *d)
{
    return cage_steps(d->tools.cage);
}

int dropin_call_names(const struct dropin_call *c)
{
    return c->job.n_names;
}
