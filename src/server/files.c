/*
 * The files of a configuration as the user of the service sees them: `holdfastd -t` is mostly said
 * by root, who may read what the service may not.
 *
 * The kernel judges: a child becomes that user and tries each path. Credentials are left out, as
 * systemd reads them for the service.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "server/private.h"

struct trying {
    const char *user;
    conf_report_fn report;
    void *arg;
    int refused;
};

/* `what` is the option that names it; "": none does. */
static void try_path(struct trying *t, const char *what, const char *path, int mode)
{
    struct conf_error line;
    const char *deed = mode == R_OK ? "read" : "connect to";
    const char *cure = mode != R_OK ? "make that user a member of its group"
                       : *what      ? "give it the group of that user (chgrp, chmod 640), or pass "
                                      "it as a credential"
                                    : "give it the group of that user (chgrp, chmod 640)";

    if (!path || strncmp(path, "%d/", 3) == 0 || access(path, mode) == 0)
        return;
    if (mode == W_OK && errno == ENOENT)
        return; /* its server does not run */
    snprintf(line.text, sizeof line.text,
             "%s%s%.200s: the user %.40s cannot %s it (%s): %s, see holdfastd(8)", what,
             *what ? ": " : "", path, t->user, deed, strerror(errno), cure);
    t->report(t->arg, false, line.text);
    t->refused++;
}

static void try_master(struct trying *t, const struct conf_master *m)
{
    const struct {
        const char *key, *path;
    } files[] = {{"password_file", m->password_file},
                 {"ca", m->ca},
                 {"certificate", m->certificate},
                 {"key", m->key},
                 {"sentinel_password_file", m->sentinel_password_file},
                 {"sentinel_ca", m->sentinel_ca},
                 {"sentinel_certificate", m->sentinel_certificate},
                 {"sentinel_key", m->sentinel_key}};
    char what[300];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(what, sizeof what, "%.200s.%s", m->name, files[i].key);
        try_path(t, what, files[i].path, R_OK);
    }
    if (m->is_unix)
        try_path(t, m->name, m->host, W_OK);
}

static void try_files(struct trying *t, const struct conf *conf)
{
    try_path(t, "", conf->path, R_OK);
    try_path(t, "tls.certificate", conf->tls_certificate, R_OK);
    try_path(t, "tls.key", conf->tls_key, R_OK);
    try_path(t, "tls.ca", conf->tls_ca, R_OK);
    for (size_t i = 0; i < conf->master_count; i++)
        try_master(t, &conf->masters[i]);
}

int server_check_files(const struct conf *conf, const char *user, conf_report_fn report, void *arg)
{
    struct trying t = {.user = user, .report = report, .arg = arg};
    struct passwd *entry = getpwnam(user);
    struct conf_error line;
    int status = 0;
    pid_t child;

    if (!entry) {
        snprintf(line.text, sizeof line.text, "--user %.100s: there is no such user", user);
        report(arg, false, line.text);
        return -1;
    }
    child = fork();
    if (child < 0)
        util_die("cannot fork: %s", strerror(errno));
    if (child == 0) {
        if (initgroups(user, entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 ||
            setuid(entry->pw_uid) != 0)
            util_die("cannot become %s: %s", user, strerror(errno));
        try_files(&t, conf);
        _exit(t.refused > 0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}
