/*
 * Who may run what: the class of a command and the names in it against the user of the session, and
 * the last refusals for ACL LOG.
 *
 * Invariant: while no users are configured everything is permitted. What is refused here has run no
 * handler, and the error says which user, what, and why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "command/command.h"
#include "conf/conf.h"
#include "lock/view.h"
#include "session/channel.h"
#include "session/user.h"
#include "stats/stats.h"

static struct cmd_refusal refusals[CMD_REFUSALS_MAX]; /* the newest first */
static int n_refusals;
static uint64_t last_id;

/* ---- the last refusals ---- */

static void copy_text(char *out, size_t size, const char *text, size_t len)
{
    size_t n = len < size - 1 ? len : size - 1;

    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    out[n] = '\0';
}

static bool is_same(const struct cmd_refusal *a, const struct cmd_refusal *b)
{
    return a->reason == b->reason && strcmp(a->object, b->object) == 0 &&
           strcmp(a->user, b->user) == 0;
}

/* Whoever tries passwords, or has forgotten to give one, does not fill the log. */
static void log_refusal(const struct cmd_refusal *r)
{
    enum { EVERY_MS = 60000, KINDS = 4 };
    static struct log_limit limits[KINDS];
    static const char *const texts[KINDS] = {"no password was given",
                                             "a user may not run a command",
                                             "a user may not use a name", "wrong password"};
    int kind = r->reason == CMD_REASON_COMMAND ? 1
               : r->reason == CMD_REASON_NAME  ? 2
               : r->user[0] != '\0'            ? 3
                                               : 0;

    if (log_limited_to(&limits[kind], clock_ms(), EVERY_MS))
        log_warn("users", "%s peer=%s swallowed=%" PRIu64 " user=%s object=%s", texts[kind],
                 r->peer, limits[kind].swallowed, r->user, r->object);
}

void cmd_refused(struct session *s, enum cmd_reason reason, const char *object, size_t object_len,
                 const char *user, size_t user_len)
{
    struct cmd_refusal r = {.reason = reason, .count = 1, .wall_ms = clock_wall_ms()};
    const char *peer = cmd_hooks()->peer(s);
    int at = 0;

    copy_text(r.object, sizeof r.object, object, object_len);
    copy_text(r.user, sizeof r.user, user, user_len);
    copy_text(r.peer, sizeof r.peer, peer, strlen(peer));
    log_refusal(&r);
    while (at < n_refusals && !is_same(&refusals[at], &r))
        at++;
    if (at < n_refusals) {
        r.count = refusals[at].count + 1;
        r.id = refusals[at].id;
    } else {
        r.id = ++last_id;
        if (n_refusals < CMD_REFUSALS_MAX)
            n_refusals++;
        at = n_refusals - 1;
    }
    memmove(&refusals[1], &refusals[0], (size_t)at * sizeof refusals[0]);
    refusals[0] = r;
}

const struct cmd_refusal *cmd_refusals(int *n)
{
    *n = n_refusals;
    return refusals;
}

void cmd_refusals_reset(void)
{
    n_refusals = 0;
}

/* ---- classes ---- */

static const struct {
    unsigned flag, allow;
    const char *name;
} classes[] = {{CMD_LOCK, CONF_ALLOW_LOCK, "lock"},
               {CMD_DROP_IN, CONF_ALLOW_DROP_IN, "drop-in"},
               {CMD_INSPECT, CONF_ALLOW_INSPECT, "inspect"},
               {CMD_ADMIN, CONF_ALLOW_ADMIN, "admin"}};

/* Returns the name of a class that the user lacks; NULL: none. */
static const char *missing_class(const struct user *u, unsigned flags)
{
    const char *missing = NULL;

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        bool has = (u->allow & classes[i].allow) != 0;
        if (!(flags & classes[i].flag))
            continue;
        if (has && (flags & CMD_EITHER))
            return NULL;
        if (!has && !missing)
            missing = classes[i].name;
    }
    return missing;
}

/* ---- names ---- */

static bool refuse_name(struct cmd_call *c, const struct resp_arg *name, const char *what)
{
    const struct user *u = c->session->user;

    stats.auth_failures_permission++;
    cmd_refused(c->session, CMD_REASON_NAME, name->ptr, name->len, u->name, strlen(u->name));
    cmd_reply_error(c, "NOPERM user '%s' may not use the %s '%.*s' (users: %s.names)", u->name,
                    what, CMD_ARG(name), u->name);
    return false;
}

/* Returns whether the command gives back what this very connection holds, which harms nobody. Not
 * what its owner holds elsewhere: whoever can look sees the names of owners. The names end at word
 * `end`. */
static bool gives_back(const struct cmd_call *c, const struct resp_arg *name, int end)
{
    const struct resp_arg *options = &c->argv[end];
    int n_options = c->argc - end;
    bool has_owner = n_options == 2 && cmd_word_is(&options[0], "OWNER");

    if (!(c->cmd->flags & CMD_RELEASE) || (n_options > 0 && !has_owner))
        return false;
    return view_is_held_by(cmd_hooks()->broker, name->ptr, name->len, c->session,
                           has_owner ? options[1].ptr : NULL, has_owner ? options[1].len : 0);
}

static bool may_use_names(struct cmd_call *c)
{
    int first, end = cmd_find_names(c->cmd, c->argc, c->argv, &first);

    for (int i = first; i < end; i++)
        if (!user_may_use(c->session->user, c->argv[i].ptr, c->argv[i].len) &&
            !gives_back(c, &c->argv[i], end))
            return refuse_name(c, &c->argv[i], "name");
    return true;
}

static bool gives_all_back(const struct cmd_call *c)
{
    int first, end = cmd_find_names(c->cmd, c->argc, c->argv, &first);

    for (int i = first; i < end; i++)
        if (!gives_back(c, &c->argv[i], end))
            return false;
    return first > 0 && end > first;
}

/* Patterns are for users without patterns of their own. */
static bool may_use_channel(const struct user *u, const struct cmd *cmd, const struct resp_arg *c)
{
    return u->all_names ||
           (strcmp(cmd->name, "PSUBSCRIBE") != 0 && channel_permits(u, c->ptr, c->len));
}

/* Where channels begin in the request: behind the name of the command, or of the sub-command. */
static int first_channel(const struct cmd *cmd)
{
    return strchr(cmd_full_name(cmd_index(cmd)), '|') ? 2 : 1;
}

/* Where they end: the word behind the channel of PUBLISH is the message. */
static int end_of_channels(const struct cmd *cmd, int argc)
{
    return argc > 2 && strcmp(cmd->name, "PUBLISH") == 0 ? 2 : argc;
}

static bool may_hear(struct cmd_call *c)
{
    int end = end_of_channels(c->cmd, c->argc);

    for (int i = first_channel(c->cmd); i < end; i++)
        if (!may_use_channel(c->session->user, c->cmd, &c->argv[i]))
            return refuse_name(c, &c->argv[i], "channel");
    return true;
}

enum monitor_view cmd_view(const struct user *u, const struct monitor_request *r)
{
    const struct cmd *cmd = r->of_view;
    bool channels = (cmd->flags & CMD_CHANNELS) != 0;
    int first, end;

    if (u->all_names)
        return MONITOR_SHOWN;
    if (channels) {
        first = first_channel(cmd);
        end = end_of_channels(cmd, r->argc);
    } else {
        end = cmd_find_names(cmd, r->argc, r->argv, &first);
    }
    if (first == 0 || end <= first)
        return MONITOR_REDACTED;
    for (int i = first; i < end; i++)
        if (channels ? !may_use_channel(u, cmd, &r->argv[i])
                     : !user_may_use(u, r->argv[i].ptr, r->argv[i].len))
            return MONITOR_HIDDEN;
    return MONITOR_SHOWN;
}

/* ---- together ---- */

static bool refuse_command(struct cmd_call *c, const char *why)
{
    const struct user *u = c->session->user;

    stats.auth_failures_permission++;
    cmd_refused(c->session, CMD_REASON_COMMAND, c->full_name, strlen(c->full_name), u->name,
                strlen(u->name));
    cmd_reply_error(c, "NOPERM user '%s' may not run '%s': %s", u->name, c->full_name, why);
    return false;
}

bool cmd_permits(struct cmd_call *c)
{
    char why[64];

    if (!users_active() || (c->cmd->flags & CMD_ANYBODY))
        return true;
    if (!c->session->user || c->session->user->gone) {
        stats.auth_failures_missing++;
        cmd_refused(c->session, CMD_REASON_AUTH, c->full_name, strlen(c->full_name), "", 0);
        cmd_reply_error(c, "NOAUTH Authentication required.");
        return false;
    }
    const char *class = missing_class(c->session->user, c->cmd->flags);
    if (class && gives_all_back(c))
        return true;
    if (class) {
        snprintf(why, sizeof why, "it lacks the class %s", class);
        return refuse_command(c, why);
    }
    if (c->session->user->all_names)
        return true;
    if (c->cmd->flags & CMD_ALL_NAMES)
        return refuse_command(c, "it shows names of others");
    if (c->cmd->flags & CMD_CHANNELS)
        return may_hear(c);
    return may_use_names(c);
}
