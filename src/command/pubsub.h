#ifndef HOLDFAST_CMD_PUBSUB_H
#define HOLDFAST_CMD_PUBSUB_H
/* cmd_pubsub: SUBSCRIBE and its family: argv to pubsub and back. Each is a cmd_fn. */
#include "command/command.h"

void cmd_pubsub_subscribe(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_pubsub_unsubscribe(struct session *, int argc, const struct resp_arg *argv,
                            int64_t now_ms);
void cmd_pubsub_psubscribe(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_pubsub_punsubscribe(struct session *, int argc, const struct resp_arg *argv,
                             int64_t now_ms);
void cmd_pubsub_channels(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_pubsub_numsub(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
void cmd_pubsub_numpat(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms);
#endif
