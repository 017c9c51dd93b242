/* Fuzz: a configuration file. Whatever the bytes are, loading ends, what was accepted can be
 * checked, copied, compared and shown, and what is shown is accepted again and means the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "get_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void on_report(void *arg, bool is_warning, const char *text)
{
    (void)arg;
    (void)is_warning;
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20)
            abort();
    }
}

static void on_change(void *arg, const struct conf_change *change)
{
    (void)arg;
    (void)change;
    abort();
}

static void on_get(void *arg, const char *name, const char *value)
{
    struct conf_error err;

    if (strncmp(name, "masters.", 8) != 0 && conf_set(arg, name, value, &err) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct conf conf, copy;
    int rc;

    conf_init(&conf);
    rc = conf_load_bytes(&conf, (const char *)data, len, "fuzz.ini", on_report, NULL);
    if (rc == 0) {
        conf_copy(&copy, &conf);
        (void)get_options(&conf, "*", on_get, &copy);
        (void)conf_diff(&conf, &copy, on_change, NULL);
        rc = conf_check(&copy, false, on_report, NULL);
        conf_fini(&copy);
    }
    conf_fini(&conf);
    return 0;
}
