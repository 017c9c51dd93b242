#ifndef HOLDFAST_FAKE_PRIVATE_H
#define HOLDFAST_FAKE_PRIVATE_H
/*
 * Between the files of fake_server: fake_server.c (the server and EVALSHA), fake_keys.c (what is
 * kept in it), fake_line.c (lines and turns), fake_acquire.c and fake_scripts.c (the scripts with
 * items).
 */
#include "fake_server.h"

static inline int64_t fake_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- fake_keys.c ---- */

void fake_keys_clear(struct fake_server *);
void fake_lock_free(struct fake_server *, struct fake_lock *);
/* As older.lua. */
enum fake_age { FAKE_UNRELATED, FAKE_OLDER, FAKE_NEWER };
enum fake_age fake_age(const char *op, const char *held);
/* The fields of a hold: all absent when there is no hold, or no hold of ours. */
bool fake_is_op(const struct fake_lock *, const char *op);
int64_t fake_pttl_ms(const struct fake_server *, const struct fake_lock *);
/* SET, and what enter_share does anew. */
void fake_put(struct fake_server *, const char *key, const char *part, const char *owner,
              const char *op, int64_t token, int64_t count, int64_t seq, const char *lease,
              const char *maxhold);
/* PEXPIRE, and enter_share. */
void fake_last_until(struct fake_server *, struct fake_lock *, int64_t expires_ms, bool anew);

struct fake_tomb *fake_find_tomb(struct fake_server *, const char *key, const char *op);
struct fake_tomb *fake_add_tomb(struct fake_server *, const char *key, const char *op, int64_t ms,
                                bool moved);

int fake_shares(struct fake_server *, const char *key);
/* The i-th of them by their ends; NULL: there is none. */
struct fake_lock *fake_share(struct fake_server *, const char *key, int i);
int fake_limit_of(struct fake_server *, const char *key); /* 0: not in use as permits */

struct fake_permit *fake_permit(struct fake_server *, const char *key, const char *owner);
void fake_forget_permit(struct fake_server *, const char *key, const char *part);

/* By its name: "base", or a number. */
int64_t *fake_counter(struct fake_server *, const char *name);
int64_t fake_next_token(struct fake_server *, const char *bucket, int64_t least);
void fake_raise_counter(struct fake_server *, const char *bucket, int64_t token);

/* ---- fake_line.c ---- */

void fake_lines_clear(struct fake_server *);
struct fake_line *fake_line(struct fake_server *, const char *key);
int fake_line_remove(struct fake_line *, const char *ticket, int at_most); /* LREM: how many */
void fake_line_up(struct fake_server *, const char *key, const char *ticket, const char *place);
void fake_call_up(struct fake_server *, const char *key);
bool fake_is_turn(struct fake_server *, const char *key, const char *ticket);
void fake_end_turn(struct fake_line *, const char *ticket);

/* ---- the scripts; args: the first argument of the first item ---- */

void fake_add(struct fake_reply *, int64_t integer, const char *text);
void fake_acquire(struct fake_server *, int n_keys, char *const *keys, int n_args,
                  char *const *args, struct fake_reply *);
void fake_commit(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_takeover(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_renew(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_plant(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_release(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_line_script(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_pass(struct fake_server *, const char *key, char *const *a, struct fake_reply *);
void fake_peek(struct fake_server *, int n_keys, char *const *keys, int n_args, char *const *args,
               struct fake_reply *);
#endif
