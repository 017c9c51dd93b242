#ifndef HOLDFAST_CMD_LOCK_H
#define HOLDFAST_CMD_LOCK_H
/*
 * cmd_lock: the commands about locks: words to a lock request, its result to a reply. Decides
 * nothing.
 */
#include <stdint.h>

#include "net/resp.h"
#include "session/session.h"

extern const struct request_type cmd_lock_request_type; /* of every struct lock_request */

/* Each is a cmd_fn (cmd.h). */
void cmd_lock_acquire(struct session *, int argc, const struct resp_arg *argv,
                      int64_t now_ms); /* LOCK */
void cmd_lock_release(struct session *, int argc, const struct resp_arg *argv,
                      int64_t now_ms); /* UNLOCK */
void cmd_lock_acquire_many(struct session *, int argc, const struct resp_arg *argv,
                           int64_t now_ms); /* MLOCK */
void cmd_lock_release_many(struct session *, int argc, const struct resp_arg *argv,
                           int64_t now_ms); /* MUNLOCK */
void cmd_lock_renew(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_lock_holds(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_lock_owner(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_lock_info(struct session *, int argc, const struct resp_arg *argv,
                   int64_t now_ms); /* LOCKINFO */
void cmd_lock_list(struct session *, int argc, const struct resp_arg *argv,
                   int64_t now_ms); /* LOCKS */
void cmd_lock_scan(struct session *, int argc, const struct resp_arg *argv,
                   int64_t now_ms); /* SCAN */
void cmd_lock_count(struct session *, int argc, const struct resp_arg *argv,
                    int64_t now_ms); /* DBSIZE */
void cmd_lock_type(struct session *, int argc, const struct resp_arg *argv,
                   int64_t now_ms); /* TYPE */
void cmd_lock_force(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_lock_masters(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
#endif
