/*
 * A lock cannot wait for EXEC: the masters decide who gets it, and others may wait for it. So
 * nothing runs between MULTI and EXEC, and each command there says so. EXEC, DISCARD, RESET and
 * HELLO end this.
 *
 * MULTI is answered OK, what follows it each by an error (cmd_dispatch), EXEC by EXECABORT: the
 * replies that every client knows from a transaction of Redis in which each command was wrong. With
 * an error to MULTI itself some clients leave the replies behind it unread, and others never send
 * EXEC.
 */
#include "command/handlers.h"

void cmd_multi_multi(struct cmd_call *c)
{
    if (c->session->multi) {
        cmd_reply_error(c, "ERR MULTI calls can not be nested");
        return;
    }
    c->session->multi = true;
    cmd_reply_ok(c);
}

void cmd_multi_exec(struct cmd_call *c)
{
    if (!c->session->multi) {
        cmd_reply_error(c, "ERR EXEC without MULTI");
        return;
    }
    c->session->multi = false;
    cmd_reply_error(
        c, "EXECABORT nothing of this transaction was run: there are none here; send commands "
           "without MULTI (a pipeline without a transaction), or MLOCK for several locks at once");
}

void cmd_multi_discard(struct cmd_call *c)
{
    if (!c->session->multi) {
        cmd_reply_error(c, "ERR DISCARD without MULTI");
        return;
    }
    c->session->multi = false;
    cmd_reply_ok(c);
}
