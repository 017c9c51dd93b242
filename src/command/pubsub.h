#ifndef HOLDFAST_CMD_PUBSUB_H
#define HOLDFAST_CMD_PUBSUB_H
/* cmd_pubsub: SUBSCRIBE and its family: argv to pubsub and back. Each is a cmd_fn. */
#include "command/command.h"

cmd_fn cmd_pubsub_subscribe, cmd_pubsub_unsubscribe, cmd_pubsub_channels, cmd_pubsub_numsub,
    cmd_pubsub_numpat;
#endif
