#pragma once
/* credential: where the service manager has put the credentials of this service (systemd.exec(5)).
 */
#include <stddef.h>

/* Write the path of a credential, and the one that a path in the configuration stands for, in which
 * %d/ is the directory of credentials. Return NULL, or why there is none. */
const char *credential_path(const char *name, char *out, size_t size);
const char *credential_expand(const char *path, char *out, size_t size);
