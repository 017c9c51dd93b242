#include "base/credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *check_fit(int len, size_t size)
{
    return (size_t)len < size ? NULL : "the path is too long";
}

const char *credential_path(const char *name, char *out, size_t size)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");

    return dir ? check_fit(snprintf(out, size, "%s/%s", dir, name), size)
               : "there are no credentials: CREDENTIALS_DIRECTORY is not set (see LoadCredential= "
                 "in systemd.exec(5))";
}

const char *credential_expand(const char *path, char *out, size_t size)
{
    return strncmp(path, "%d/", 3) == 0 ? credential_path(path + 3, out, size)
                                        : check_fit(snprintf(out, size, "%s", path), size);
}
