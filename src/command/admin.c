/*
 * What an administrator asks of the broker as a whole: INFO, MASTER, PAUSE and RESUME, SHUTDOWN. It
 * only reads the words: whatever happens goes through the hooks, and what the server makes of it
 * is not known here.
 */
#include "command/handlers.h"

#include <string.h>

#include "conf/conf.h"

enum { SECTIONS_MAX = 512 }; /* bytes of all section names of one INFO */

/* Sections that no word can mean do no harm: stats gives nothing for them. */
void cmd_admin_info(struct cmd_call *c)
{
    char sections[SECTIONS_MAX + 1];
    struct buf text = {0};
    size_t len = 0;

    for (int i = 1; i < c->argc; i++) {
        if (c->argv[i].len + 1 > SECTIONS_MAX - len ||
            memchr(c->argv[i].ptr, '\0', c->argv[i].len) != NULL)
            continue;
        memcpy(sections + len, c->argv[i].ptr, c->argv[i].len);
        len += c->argv[i].len;
        sections[len++] = ' ';
    }
    sections[len] = '\0';
    cmd_hooks()->info(cmd_hooks()->server, &text, sections);

    resp_verbatim(cmd_reply(c), "txt", buf_len(&text) > 0 ? buf_head(&text) : "", buf_len(&text));
    buf_fini(&text);
}

void cmd_admin_shutdown(struct cmd_call *c)
{
    bool now = false;

    for (int i = 1; i < c->argc; i++) {
        if (cmd_word_is(&c->argv[i], "NOW") || cmd_word_is(&c->argv[i], "FORCE")) {
            now = true;
        } else if (cmd_word_is(&c->argv[i], "ABORT") && c->argc == 2) {
            cmd_reply_error(c, "ERR No shutdown in progress.");
            return;
        } else if (!cmd_word_is(&c->argv[i], "SAVE") && !cmd_word_is(&c->argv[i], "NOSAVE")) {
            cmd_reply_syntax(c);
            return;
        }
    }
    cmd_hooks()->shutdown(cmd_hooks()->server, now);
}

/* PAUSE and RESUME. */
void cmd_admin_pause(struct cmd_call *c)
{
    cmd_hooks()->pause_acquires(cmd_hooks()->server, c->cmd->name[0] == 'P', c->now_ms);
    cmd_reply_ok(c);
}

void cmd_admin_master(struct cmd_call *c)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    char name[CONF_MASTER_NAME_MAX + 1] = "";
    const char *why_not;

    if (c->argv[1].len < sizeof(name))
        memcpy(name, c->argv[1].ptr, c->argv[1].len);
    if (cmd_word_is(&c->argv[2], "TRUST")) {
        why_not = hooks->trust(hooks->server, name, c->now_ms);
    } else if (cmd_word_is(&c->argv[2], "ADOPT")) {
        why_not = hooks->adopt(hooks->server, name);
    } else {
        cmd_reply_syntax(c);
        return;
    }
    if (why_not != NULL)
        cmd_reply_error(c, "ERR master '%.*s': %s", CMD_ARG(&c->argv[1]), why_not);
    else
        cmd_reply_ok(c);
}

void cmd_admin_cluster(struct cmd_call *c)
{
    cmd_reply_error(c, "ERR This instance has cluster support disabled");
}
