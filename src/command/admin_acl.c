/*
 * ACL: who may do what, as far as it may be shown: without passwords or their hashes, and without a
 * way to change it. While no users are configured there is one, "default", who may do everything.
 * Categories are the classes of commands (command.h).
 */
#include "command/handlers.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/util.h"
#include "conf/conf.h"
#include "session/user.h"

static const struct {
    unsigned flag;
    const char *name;
} categories[] = {{CMD_ADMIN, "admin"},
                  {CMD_CONNECTION, "connection"},
                  {CMD_DROP_IN, "drop-in"},
                  {CMD_INSPECT, "inspect"},
                  {CMD_LOCK, "lock"}};
enum { N_CATEGORIES = sizeof(categories) / sizeof(categories[0]) };

static void reply_category(struct cmd_call *c, unsigned flag)
{
    struct buf names = {0};
    struct resp_writer to_names = {&names, c->session->proto};
    int n_rows, n = 0;
    const struct cmd *table = cmd_table(&n_rows);

    for (int i = 0; i < n_rows; i++) {
        if ((table[i].flags & flag) == 0)
            continue;
        resp_str(&to_names, cmd_full_name(i));
        n++;
    }
    cmd_reply_elements(c, (size_t)n, &names);
    buf_fini(&names);
}

void cmd_admin_acl_cat(struct cmd_call *c)
{
    if (c->argc > 3) {
        cmd_reply_error(c, "ERR wrong number of arguments for 'acl|cat' command");
        return;
    }
    if (c->argc == 3) {
        for (int i = 0; i < N_CATEGORIES; i++)
            if (c->argv[2].len == strlen(categories[i].name) &&
                strncasecmp(c->argv[2].ptr, categories[i].name, c->argv[2].len) == 0) {
                reply_category(c, categories[i].flag);
                return;
            }
        cmd_reply_error(c, "ERR Unknown category '%.*s'", CMD_ARG(&c->argv[2]));
        return;
    }
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, N_CATEGORIES);
    for (int i = 0; i < N_CATEGORIES; i++)
        resp_str(w, categories[i].name);
}

/* As Redis writes it, without the hash of the password. */
static void write_user(struct resp_writer *w, const struct user *u)
{
    struct buf text = {0};

    buf_printf(&text, "user %s on %s", u->name, u->nopass ? "nopass" : u->hash ? "#***" : "-");
    for (const char *p = u->names + strspn(u->names, " \t"); *p != '\0'; p += strspn(p, " \t")) {
        size_t len = strcspn(p, " \t");
        buf_printf(&text, " ~%.*s", (int)len, p);
        p += len;
    }
    buf_printf(&text, " -@all +@connection%s%s%s%s", u->allow & CONF_ALLOW_LOCK ? " +@lock" : "",
               u->allow & CONF_ALLOW_DROP_IN ? " +@drop-in" : "",
               u->allow & CONF_ALLOW_INSPECT ? " +@inspect" : "",
               u->allow & CONF_ALLOW_ADMIN ? " +@admin" : "");
    resp_bulk(w, buf_head(&text), buf_len(&text));
    buf_fini(&text);
}

void cmd_admin_acl_list(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, users_active() ? users_count() : 1);
    if (!users_active())
        resp_str(w, "user default on nopass ~* &* +@all");
    for (size_t i = 0; i < users_count(); i++)
        write_user(w, users_at(i));
}

void cmd_admin_acl_users(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    resp_array(w, users_active() ? users_count() : 1);
    if (!users_active())
        resp_str(w, "default");
    for (size_t i = 0; i < users_count(); i++)
        resp_str(w, users_at(i)->name);
}

void cmd_admin_acl_whoami(struct cmd_call *c)
{
    cmd_reply_str(c, c->session->user ? c->session->user->name : "default");
}

static void write_refusal(struct resp_writer *w, const struct cmd_refusal *r)
{
    static const char *const reasons[] = {
        [CMD_REASON_AUTH] = "auth", [CMD_REASON_COMMAND] = "command", [CMD_REASON_NAME] = "key"};

    resp_map(w, 7);
    resp_pair_int(w, "count", (int64_t)r->count);
    resp_pair_str(w, "reason", reasons[r->reason]);
    resp_pair_str(w, "object", r->object);
    resp_pair_str(w, "username", r->user);
    resp_str(w, "age-seconds");
    resp_double(w, (double)(clock_wall_ms() - r->wall_ms) / 1000);
    resp_pair_str(w, "client-info", r->peer);
    resp_pair_int(w, "entry-id", (int64_t)r->id);
}

void cmd_admin_acl_log(struct cmd_call *c)
{
    int n;
    int64_t most = 10;
    const struct cmd_refusal *refusals = cmd_refusals(&n);

    if (c->argc == 3 && cmd_word_is(&c->argv[2], "RESET")) {
        cmd_refusals_reset();
        cmd_reply_ok(c);
        return;
    }
    if (c->argc > 3 || (c->argc == 3 &&
                        util_parse_int(c->argv[2].ptr, c->argv[2].len, 0, INT64_MAX, &most) != 0)) {
        cmd_reply_error(c, "ERR value is out of range, must be positive");
        return;
    }
    if (n > most)
        n = (int)most;
    struct resp_writer *w = cmd_reply(c);
    resp_array(w, (size_t)n);
    for (int i = 0; i < n; i++)
        write_refusal(w, &refusals[i]);
}
