/*
 * CLIENT: what a connection is called. Names go into the lines of CLIENT LIST and into the log, so
 * nothing may stand in them that would break a line or its fields.
 */
#include "command/handlers.h"

#include <stdlib.h>

#include "stats/libraries.h"

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

int cmd_client_set_name(struct cmd_call *c, const struct resp_arg *name)
{
    if (!is_graphic(name)) {
        cmd_reply_error(c,
                        "ERR Client names cannot contain spaces, newlines or special characters.");
        return -1;
    }
    if (name->len > SESSION_NAME_MAX) {
        cmd_reply_error(c, "ERR Client names cannot be longer than %d bytes.", SESSION_NAME_MAX);
        return -1;
    }
    set_text(&c->session->name, name);
    return 0;
}

void cmd_client_setname(struct cmd_call *c)
{
    if (cmd_client_set_name(c, &c->argv[2]) == 0)
        cmd_reply_ok(c);
}

void cmd_client_getname(struct cmd_call *c)
{
    struct resp_writer *w = cmd_reply(c);

    if (c->session->name != NULL)
        resp_str(w, c->session->name);
    else
        resp_null(w);
}

static void count_by_library(struct session *s, const struct resp_arg *name)
{
    uint8_t library = library_find(name->ptr, name->len);

    library_move(s->library, library);
    s->library = library;
}

void cmd_client_setinfo(struct cmd_call *c)
{
    bool is_name = cmd_word_is(&c->argv[2], "LIB-NAME");

    if (!is_name && !cmd_word_is(&c->argv[2], "LIB-VER"))
        cmd_reply_error(c, "ERR Unrecognized option '%.*s'", CMD_ARG(&c->argv[2]));
    else if (!is_graphic(&c->argv[3]) || c->argv[3].len > LIB_INFO_MAX)
        cmd_reply_error(c, "ERR %s cannot contain spaces, newlines or special characters.",
                        is_name ? "lib-name" : "lib-ver");
    else {
        set_text(is_name ? &c->session->lib_name : &c->session->lib_ver, &c->argv[3]);
        if (is_name)
            count_by_library(c->session, &c->argv[3]);
        cmd_reply_ok(c);
    }
}

void cmd_client_id(struct cmd_call *c)
{
    cmd_reply_int(c, (int64_t)c->session->id);
}
