/*
 * holdfast unlock --force: sends FORCEUNLOCK.
 */
#include <stdio.h>

#include "cli/ask.h"
#include "cli/cli.h"

int unlock_main(int argc, char **argv)
{
    static const struct option longs[] = {
        CLI_LONGS, {"force", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
    struct ask ask;
    bool force = false;
    int option;
    while ((option = getopt_long(argc, argv, ":" CLI_SHORT "f", longs, NULL)) != -1) {
        if (option == 'f')
            force = true;
        else
            cli_option(option, argv);
    }
    if (argc - optind != 1)
        cli_usage("which lock? One name");
    const char *name = argv[optind];
    cli_check_name(name);
    if (!force)
        cli_usage("only by force, as it is somebody else's: --force");
    ask_open(&ask, cli_urls());
    redisReply *reply = ask_call(&ask, "FORCEUNLOCK", name, NULL);
    bool freed = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
    freeReplyObject(reply);
    ask_close(&ask);
    if (!freed)
        cli_warn("nobody holds '%s'", name);
    return freed ? STATUS_OK : STATUS_NO;
}
