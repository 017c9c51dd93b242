/* All words of a job are copied at once, into one block. */
#include "dropin/job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "dropin/scripts.h"
#include "lock/lock.h"
#include "redis/partition.h"

/* ---- words ---- */

/* Where the next words go. */
struct filling {
    struct resp_arg *word;
    char *text;
};

/* Returns how many bytes these words take, with what stands between them: they are copied at once.
 */
static size_t bytes_of(const struct resp_arg *argv, int n)
{
    if (n == 0)
        return 0;
    const struct resp_arg *last = &argv[n - 1];
    assert(last->ptr + last->len >= argv[0].ptr);
    return (size_t)(last->ptr + last->len - argv[0].ptr);
}

/* Allocates the one block: words, commands, bytes. */
static struct filling make_room(struct job *job, int n_commands, size_t n_words, size_t bytes)
{
    size_t commands_at = n_words * sizeof(struct resp_arg);
    size_t text_at = commands_at + (size_t)n_commands * sizeof *job->commands;
    char *block = (char *)job->words;
    if (text_at + bytes > job->room) {
        job->room = text_at + bytes;
        block = util_realloc(block, job->room);
    }
    job->words = (struct resp_arg *)(void *)block;
    job->commands = (struct job_command *)(void *)(block + commands_at);
    job->n_commands = n_commands;
    return (struct filling){job->words, block + text_at};
}

/* Copies n words; returns where they are now. */
static struct resp_arg *fill(struct filling *f, const struct resp_arg *argv, int n)
{
    struct resp_arg *first = f->word;
    size_t bytes = bytes_of(argv, n);
    for (int i = 0; i < n; i++)
        *f->word++ = (struct resp_arg){f->text + (argv[i].ptr - argv[0].ptr), argv[i].len};
    if (bytes)
        memcpy(f->text, argv[0].ptr, bytes);
    f->text += bytes;
    return first;
}

static inline bool job_word_is(const struct resp_arg *word, const char *text)
{
    return word->len == strlen(text) && strncasecmp(word->ptr, text, word->len) == 0;
}

/* ---- keys ---- */

static int find_name(const struct job *job, const struct resp_arg *name)
{
    int i = 0;
    while (i < job->n_names &&
           (job->names[i].len != name->len || memcmp(job->names[i].ptr, name->ptr, name->len) != 0))
        i++;
    return i;
}

static bool has_byte(const struct resp_arg *name, char c)
{
    return name->len > 0 && memchr(name->ptr, c, name->len);
}

/* Refuses a name that command/lock would refuse. */
static void check_name(struct job *job, const struct resp_arg *lock)
{
    if (lock->len == 0 || lock->len > LOCK_NAME_MAX)
        snprintf(job->error, sizeof job->error,
                 "ERR the key has %zu bytes, the name of a lock must have 1 to %d", lock->len,
                 LOCK_NAME_MAX);
    else if (has_byte(lock, '\0') || has_byte(lock, '\r') || has_byte(lock, '\n'))
        snprintf(job->error, sizeof job->error,
                 "ERR the key has a NUL, CR or LF in it, which the name of a lock must not have");
}

void job_too_many(struct job *job)
{
    snprintf(job->error, sizeof job->error,
             "ERR more than %d keys at once: so many locks cannot be changed together", KEYS_MAX);
}

int job_add_name(struct job *job, const struct resp_arg *name, const struct resp_arg *lock)
{
    int i = find_name(job, name);
    if (i < job->n_names)
        return i;
    if (i == KEYS_MAX) {
        job_too_many(job);
        return -1;
    }
    check_name(job, lock);
    job->names[i] = *name;
    job->locks[i] = *lock;
    return job->n_names++;
}

size_t dropin_lock_name(int db, const struct resp_arg *key, char *out, size_t size)
{
    char prefix[16] = "";
    if (db > 0)
        snprintf(prefix, sizeof prefix, "db%d:", db);
    size_t prefix_len = strlen(prefix), len = prefix_len + key->len;
    if (len == 0 || size < len)
        return len;
    memcpy(out, prefix, prefix_len);
    if (key->len)
        memcpy(out + prefix_len, key->ptr, key->len);
    return len;
}

/* Gives the keys locks of their own, in other databases than 0. */
static void name_locks(struct job *job, int db)
{
    size_t size = 0;
    if (db == 0 || job->error[0])
        return;
    for (int i = 0; i < job->n_names; i++)
        size += dropin_lock_name(db, &job->names[i], NULL, 0);
    char *p = job->lock_text = util_alloc(size + 1);
    for (int i = 0; i < job->n_names; i++) {
        size_t len = dropin_lock_name(db, &job->names[i], p, size);
        job->locks[i] = (struct resp_arg){p, len};
        check_name(job, &job->locks[i]);
        p += len;
        size -= len;
    }
}

void job_check_slots(struct job *job)
{
    for (int i = 1; i < job->n_names && !job->error[0]; i++) {
        const struct resp_arg *first = &job->locks[0], *lock = &job->locks[i];
        if (partition_of(lock->ptr, lock->len) != partition_of(first->ptr, first->len))
            snprintf(job->error, sizeof job->error,
                     "CROSSSLOT Keys in request don't hash to the same slot");
    }
}

static void job_add_names(struct job *job, const struct resp_arg *names, int n, int step)
{
    for (int i = 0; i < n && job_add_name(job, names, names) >= 0; i++)
        names += step;
}

/* ---- jobs ---- */

void job_commands(struct job *job, int db, const struct dropin_command *commands, int n)
{
    size_t n_words = 0, bytes = 0;
    for (int i = 0; i < n; i++) {
        n_words += (size_t)commands[i].argc;
        bytes += bytes_of(commands[i].argv, commands[i].argc);
    }
    struct filling f = make_room(job, n, n_words, bytes);
    for (int i = 0; i < n; i++) {
        const struct dropin_command *c = &commands[i];
        struct resp_arg *argv = fill(&f, c->argv, c->argc);
        job->commands[i] = (struct job_command){argv, c->argc};
        job_add_names(job, argv + c->first_key, c->n_keys, c->key_step);
    }
    name_locks(job, db);
    job_check_slots(job);
}

void job_script(struct job *job, int db, struct script_body *script, const struct dropin_script *s)
{
    job->script = script;
    job->read_only = s->read_only;
    job->db = db;
    if (!script) {
        snprintf(job->error, sizeof job->error, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    struct filling f = make_room(job, 0, (size_t)s->n_keys + (size_t)s->n_args,
                                 bytes_of(s->keys, s->n_keys) + bytes_of(s->args, s->n_args));
    job->keys = fill(&f, s->keys, s->n_keys);
    job->args = fill(&f, s->args, s->n_args);
    job->n_keys = s->n_keys;
    job->n_args = s->n_args;
    job_add_names(job, job->keys, job->n_keys, 1);
    name_locks(job, db);
    job_check_slots(job);
}

void job_watch(struct job *job, int db, const struct resp_arg *names, int n)
{
    struct filling f = make_room(job, 0, (size_t)n, bytes_of(names, n));
    job->is_watch = true;
    job_add_names(job, fill(&f, names, n), n, 1);
    name_locks(job, db);
    job_check_slots(job);
}

void job_fini(struct job *job)
{
    script_body_unref(job->script);
    free(job->words);
    free(job->lock_text);
}

void job_clear(struct job *job, size_t room_max)
{
    struct resp_arg *words = job->words;
    size_t room = job->room;
    if (room <= room_max)
        job->words = NULL;
    job_fini(job);
    memset(job, 0, offsetof(struct job, error) + 1);
    if (room <= room_max) {
        job->words = words;
        job->room = room;
    }
}

bool job_wants_free(const struct job *job)
{
    const struct job_command *c = job->commands;
    bool wants = false;
    if (job->n_commands != 1 || job->is_multi)
        return false;
    if (job_word_is(&c->argv[0], "SETNX"))
        return true;
    if (!job_word_is(&c->argv[0], "SET"))
        return false;
    for (int i = 3; i < c->argc; i++) {
        if (job_word_is(&c->argv[i], "GET"))
            return false;
        wants = wants || job_word_is(&c->argv[i], "NX");
    }
    return wants;
}
