/*
 * MULTI, EXEC and WATCH: commands of Redis on locks, all in one step.
 *
 * They are kept as they are said, and run at EXEC over one state of their locks, which is then
 * changed by one exchange with the masters, unless a lock that was WATCHed is not as it was. What
 * is not a command of Redis on locks cannot be part of it: LOCK may wait, and is decided by the
 * masters one by one. It is refused in its place, so that the replies stay in step with what the
 * client has sent, and EXEC then runs nothing.
 *
 * Rights are judged when a command is said. When the users have changed before EXEC, nothing runs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/handlers.h"
#include "dropin/call.h"
#include "session/user.h"

/* A transaction looks at 16 locks at most; all of its words are kept until EXEC. */
enum { COMMANDS_MAX = 64, BYTES_MAX = 64 * 1024 };

struct transaction {
    struct dropin_watch *watch; /* NULL: no lock is watched */
    struct dropin_command commands[COMMANDS_MAX];
    int n;
    size_t bytes;
    bool spoiled; /* a command was refused, */
    bool refused; /* as none that can be part of a transaction */
    unsigned users;
};

static struct transaction *transaction_of(struct session *s)
{
    if (s->transaction == NULL)
        s->transaction = util_alloc(sizeof(*s->transaction));
    return s->transaction;
}

void cmd_multi_end(struct session *s)
{
    struct transaction *t = s->transaction;

    s->multi = false;
    s->transaction = NULL;
    if (t == NULL)
        return;
    for (int i = 0; i < t->n; i++)
        free((void *)(uintptr_t)t->commands[i].argv);
    dropin_watch_drop(t->watch);
    free(t);
}

void cmd_multi_spoil(struct session *s)
{
    if (s->multi)
        transaction_of(s)->spoiled = true;
}

void cmd_multi_refuse(struct cmd_call *c)
{
    transaction_of(c->session)->refused = true;
    cmd_reply_error(c,
                    "NOMULTI '%s' was not run: a transaction is made of commands of Redis on "
                    "locks, such as GET, PEXPIRE and DEL; send it without MULTI (a pipeline "
                    "without a transaction), or MLOCK for several locks at once",
                    c->full_name);
}

void cmd_multi_queue(struct cmd_call *c, const struct dropin_command *command)
{
    struct transaction *t = transaction_of(c->session);
    size_t bytes = 0;

    for (int i = 0; i < command->argc; i++)
        bytes += sizeof(struct resp_arg) + command->argv[i].len;
    if (t->n == COMMANDS_MAX || bytes > BYTES_MAX - t->bytes) {
        t->spoiled = true;
        cmd_reply_error(c, "LIMIT a transaction has at most %d commands, and %d kB", COMMANDS_MAX,
                        BYTES_MAX / 1024);
        return;
    }
    t->bytes += bytes;
    t->commands[t->n] = *command;
    t->commands[t->n++].argv = resp_copy_args(command->argv, command->argc);
    resp_simple(cmd_reply(c), "QUEUED");
}

void cmd_multi_multi(struct cmd_call *c)
{
    if (c->session->multi) {
        cmd_reply_error(c, "ERR MULTI calls can not be nested");
        return;
    }
    c->session->multi = true;
    transaction_of(c->session)->users = users_generation();
    cmd_reply_ok(c);
}

/* Nothing of the session is in flight (CMD_BARRIER): what was watched has been seen. */
void cmd_multi_exec(struct cmd_call *c)
{
    struct transaction *t = c->session->transaction;

    if (!c->session->multi) {
        cmd_reply_error(c, "ERR EXEC without MULTI");
        return;
    }
    c->session->multi = false; /* an error of its own does not spoil what has ended */
    if (t->refused)
        cmd_reply_error(c, "EXECABORT nothing of this transaction was run: a command in it cannot "
                           "be part of one; send it without MULTI (a pipeline without a "
                           "transaction), or MLOCK for several locks at once");
    else if (t->spoiled || t->users != users_generation())
        cmd_reply_error(c, "EXECABORT Transaction discarded because of previous errors.");
    else if (t->n == 0 && t->watch == NULL)
        resp_array(cmd_reply(c), 0);
    else
        cmd_dropin_ask(
            c, dropin_call_multi(cmd_hooks()->dropin, c->session->db, t->commands, t->n, t->watch));
    cmd_multi_end(c->session);
}

void cmd_multi_discard(struct cmd_call *c)
{
    if (!c->session->multi) {
        cmd_reply_error(c, "ERR DISCARD without MULTI");
        return;
    }
    cmd_multi_end(c->session);
    cmd_reply_ok(c);
}

void cmd_multi_watch(struct cmd_call *c)
{
    if (c->session->multi) {
        cmd_reply_error(c, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    struct transaction *t = transaction_of(c->session);
    if (t->watch == NULL)
        t->watch = dropin_watch_new();
    cmd_dropin_ask(c, dropin_call_watch(cmd_hooks()->dropin, c->session->db, t->watch, &c->said[1],
                                        c->argc - 1));
}

void cmd_multi_unwatch(struct cmd_call *c)
{
    cmd_multi_end(c->session);
    cmd_reply_ok(c);
}
