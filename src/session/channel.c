#include "session/channel.h"

#include <string.h>

#include "session/user.h"

static const char lost[] = "lost", of_lock[] = "lock:", of_tag[] = CHANNEL_ASYNC,
                  switches[] = CHANNEL_SWITCHES;

static bool is_switches(const char *name, size_t len)
{
    return len == sizeof(switches) - 1 && memcmp(name, switches, len) == 0;
}

/* Returns how long the beginning is that makes a channel one of a lock or of a tag; 0: it is none.
 */
static size_t begins_own(const char *name, size_t len)
{
    const size_t lock_len = sizeof(of_lock) - 1, tag_len = sizeof(of_tag) - 1;

    if (len >= lock_len && memcmp(name, of_lock, lock_len) == 0)
        return lock_len;
    return len >= tag_len && memcmp(name, of_tag, tag_len) == 0 ? tag_len : 0;
}

bool channel_is_own(const char *name, size_t len)
{
    return (len == sizeof(lost) - 1 && memcmp(name, lost, len) == 0) || is_switches(name, len) ||
           begins_own(name, len) > 0;
}

bool channel_permits(const struct user *u, const char *channel, size_t len)
{
    const size_t n = begins_own(channel, len);

    if (u == NULL || u->all_names || is_switches(channel, len))
        return true;
    if (!channel_is_own(channel, len))
        return user_may_use(u, channel, len);
    return n > 0 && len > n && user_may_use(u, channel + n, len - n);
}
