/*
 * What an administrator asks of the broker as a whole: INFO, MASTER, PAUSE and RESUME, SHUTDOWN. It
 * only reads the words: whatever happens goes through the hooks, and what the server makes of it
 * is not known here.
 */
#include "command/admin.h"

#include <string.h>

#include "conf/conf.h"

enum { SECTIONS_MAX = 512 }; /* bytes of all section names of one INFO */

/* Sections that no word can mean do no harm: stats gives nothing for them. */
void cmd_admin_info(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    char sections[SECTIONS_MAX + 1];
    struct buf text = {0};
    size_t len = 0;

    (void)now_ms;
    for (int i = 1; i < argc; i++) {
        if (argv[i].len + 1 > SECTIONS_MAX - len || memchr(argv[i].ptr, '\0', argv[i].len) != NULL)
            continue;
        memcpy(sections + len, argv[i].ptr, argv[i].len);
        len += argv[i].len;
        sections[len++] = ' ';
    }
    sections[len] = '\0';
    cmd_hooks()->info(cmd_hooks()->server, &text, sections);

    struct resp_writer w = session_reply(s);
    resp_verbatim(&w, "txt", buf_len(&text) > 0 ? buf_head(&text) : "", buf_len(&text));
    session_reply_end(s);
    buf_fini(&text);
}

void cmd_admin_shutdown(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    bool now = false;

    (void)now_ms;
    for (int i = 1; i < argc; i++) {
        if (cmd_word_is(&argv[i], "NOW") || cmd_word_is(&argv[i], "FORCE")) {
            now = true;
        } else if (cmd_word_is(&argv[i], "ABORT") && argc == 2) {
            cmd_reply_error(s, "ERR No shutdown in progress.");
            return;
        } else if (!cmd_word_is(&argv[i], "SAVE") && !cmd_word_is(&argv[i], "NOSAVE")) {
            cmd_reply_syntax(s);
            return;
        }
    }
    cmd_hooks()->shutdown(cmd_hooks()->server, now);
}

void cmd_admin_pause(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv;
    cmd_hooks()->pause_acquires(cmd_hooks()->server, true, now_ms);
    cmd_reply_ok(s);
}

void cmd_admin_resume(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv;
    cmd_hooks()->pause_acquires(cmd_hooks()->server, false, now_ms);
    cmd_reply_ok(s);
}

void cmd_admin_master(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    char name[CONF_MASTER_NAME_MAX + 1] = "";
    const char *why_not;

    (void)argc;
    if (argv[1].len < sizeof(name))
        memcpy(name, argv[1].ptr, argv[1].len);
    if (cmd_word_is(&argv[2], "TRUST")) {
        why_not = hooks->trust(hooks->server, name, now_ms);
    } else if (cmd_word_is(&argv[2], "ADOPT")) {
        why_not = hooks->adopt(hooks->server, name);
    } else {
        cmd_reply_syntax(s);
        return;
    }
    if (why_not != NULL)
        cmd_reply_error(s, "ERR master '%.*s': %s", CMD_ARG(&argv[1]), why_not);
    else
        cmd_reply_ok(s);
}

void cmd_admin_cluster(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_error(s, "ERR This instance has cluster support disabled");
}
