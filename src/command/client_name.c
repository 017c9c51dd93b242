/*
 * CLIENT: what a connection is called. Names go into the lines of CLIENT LIST and into the log, so
 * nothing may stand in them that would break a line or its fields.
 */
#include "command/client.h"

#include <stdlib.h>

enum { LIB_INFO_MAX = 64 };

/* What may stand in CLIENT LIST without breaking its fields: no space, no control byte. */
static bool is_graphic(const struct resp_arg *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->ptr[i] < '!' || text->ptr[i] > '~')
            return false;
    return true;
}

static void set_text(char **field, const struct resp_arg *text)
{
    free(*field);
    *field = text->len > 0 ? util_memdup(text->ptr, text->len) : NULL;
}

int cmd_client_set_name(struct session *s, const struct resp_arg *name)
{
    if (!is_graphic(name)) {
        cmd_reply_error(s,
                        "ERR Client names cannot contain spaces, newlines or special characters.");
        return -1;
    }
    if (name->len > SESSION_NAME_MAX) {
        cmd_reply_error(s, "ERR Client names cannot be longer than %d bytes.", SESSION_NAME_MAX);
        return -1;
    }
    set_text(&s->name, name);
    return 0;
}

void cmd_client_setname(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)now_ms;
    if (cmd_client_set_name(s, &argv[2]) == 0)
        cmd_reply_ok(s);
}

void cmd_client_getname(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    struct resp_writer w = session_reply(s);

    if (s->name != NULL)
        resp_str(&w, s->name);
    else
        resp_null(&w);
    session_reply_end(s);
}

void cmd_client_setinfo(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    bool is_name = cmd_word_is(&argv[2], "LIB-NAME");

    (void)argc, (void)now_ms;
    if (!is_name && !cmd_word_is(&argv[2], "LIB-VER"))
        cmd_reply_error(s, "ERR Unrecognized option '%.*s'", CMD_ARG(&argv[2]));
    else if (!is_graphic(&argv[3]) || argv[3].len > LIB_INFO_MAX)
        cmd_reply_error(s, "ERR %s cannot contain spaces, newlines or special characters.",
                        is_name ? "lib-name" : "lib-ver");
    else {
        set_text(is_name ? &s->lib_name : &s->lib_ver, &argv[3]);
        cmd_reply_ok(s);
    }
}

void cmd_client_id(struct session *s, int argc, const struct resp_arg *argv, int64_t now_ms)
{
    (void)argc, (void)argv, (void)now_ms;
    cmd_reply_int(s, (int64_t)s->id);
}
