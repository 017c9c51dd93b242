#pragma once
/* Between client.c and client_list.c: which connections are meant. */
#include "command/handlers.h"

enum client_type { CLIENT_TYPE_ANY, CLIENT_TYPE_NORMAL, CLIENT_TYPE_PUBSUB, CLIENT_TYPE_NOBODY };

struct client_filter {
    const int64_t *ids; /* any of them */
    int n_ids;          /* 0: whatever its number */
    enum client_type type;
    const struct resp_arg *address, *local, *user; /* NULL: any */
    int64_t min_age_ms;
    const struct session *skip; /* NULL: nobody */
    int64_t now_ms;
};

bool cmd_client_fits(const struct client_filter *, struct session *);
/* Reads the name of a type; -1: an error was answered. */
int cmd_client_type(struct cmd_call *, const struct resp_arg *word, enum client_type *) MUST_CHECK;
const char *cmd_client_user(const struct session *);
