/*
 * A lock cannot wait for EXEC: the masters decide who gets it, and others may wait for it. So
 * nothing runs between MULTI and EXEC, and each command there says so. EXEC, DISCARD, RESET and
 * HELLO end this.
 */
#include "command/multi.h"

void cmd_multi_multi(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    if (s->multi) {
        cmd_reply_error(s, "ERR MULTI calls can not be nested");
        return;
    }
    s->multi = true;
    cmd_reply_ok(s);
}

void cmd_multi_exec(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    if (!s->multi) {
        cmd_reply_error(s, "ERR EXEC without MULTI");
        return;
    }
    s->multi = false;
    cmd_reply_error(s, "EXECABORT nothing of this transaction was run: there are none here; send "
                       "commands without MULTI (a pipeline without a transaction), or MLOCK for "
                       "several locks at once");
}

void cmd_multi_discard(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    if (!s->multi) {
        cmd_reply_error(s, "ERR DISCARD without MULTI");
        return;
    }
    s->multi = false;
    cmd_reply_ok(s);
}
