#pragma once
/*
 * channel: what the name of a channel says. Channels of holdfast itself: "lost", "lock:<name>",
 * "async:<tag>", and
 * "+switch-master", which tells clients to go to another broker. To all others clients publish
 * (dropin/messages.h).
 */
#include <stdbool.h>
#include <stddef.h>

struct user;

#define CHANNEL_SWITCHES "+switch-master"
#define CHANNEL_ASYNC "async:"

/* Returns true for a channel of holdfast itself, where nobody else publishes; of a pattern, when it
 * can fit no other. */
bool channel_is_own(const char *name, size_t len);
/* Returns true when this user may listen to the channel, and publish there if it is not holdfast's
 * own: who is limited to some names may so to lock:<name>, to async:<tag> with such a name as its
 * tag, to channels that are such names, and to +switch-master. */
bool channel_permits(const struct user *, const char *channel, size_t len);
