/* holdfast unlock --force: sends FORCEUNLOCK. */

#include "cli/ask.h"
#include "cli/cli.h"

int unlock_main(int argc, char **argv)
{
    struct link link;
    bool force = false;
    const struct cli_option own[] = {{"force", 'f', CLI_FLAG, &force, 0, 0}, {0}};
    cli_options(argc, argv, own, false);
    const char *name = cli_lock_name(argc, argv);
    if (!force)
        cli_usage("only by force, as it is somebody else's: --force");
    ask_open(&link, cli_urls());
    redisReply *reply = ask_call(&link, "FORCEUNLOCK", name, NULL);
    bool freed = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
    freeReplyObject(reply);
    link_close(&link);
    if (!freed)
        cli_warn("nobody holds '%s'", name);
    return freed ? STATUS_OK : STATUS_NO;
}
