#pragma once
/* get_options: conf_get() by one pattern, as text. */
#include <string.h>

#include "base/glob.h"
#include "conf/conf.h"

static inline size_t get_options(const struct conf *conf, const char *pattern, conf_get_fn fn,
                                 void *arg)
{
    struct glob *glob = glob_new(pattern, strlen(pattern));
    size_t n = conf_get(conf, (const struct glob *const *)&glob, 1, fn, arg);

    glob_free(glob);
    return n;
}
