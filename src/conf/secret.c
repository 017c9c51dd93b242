/* secret: the passwords that masters read from a file or from a systemd credential.
 *
 * The only part of conf that looks outside, at files. Passwords are wiped before their memory is
 * given back and never stand in a message. */
#include "conf/private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/credential.h"

enum { SECRET_MAX = 4096, PATH_ROOM = 1024 };

/* Takes a password from a file. One newline at the end is the editor's; anything else is taken as
 * it is, or refused. */
static int secret_accept(char *data, size_t len, struct conf_error *err)
{
    if (len > 0 && data[len - 1] == '\n')
        data[--len] = '\0';
    if (len > 0 && data[len - 1] == '\r')
        data[--len] = '\0';
    if (len == 0)
        return conf_refuse(err, "is empty");
    if (memchr(data, '\0', len) != NULL || memchr(data, '\n', len) != NULL)
        return conf_refuse(err, "holds more than one line of text");
    return 0;
}

static int secret_read(struct conf_master *m, const char *path, struct conf_error *err)
{
    struct stat st;
    size_t len;
    char *data;
    int rc;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return conf_refuse(err, "is not a file");
    data = conf_read_file(path, SECRET_MAX, &len, err);
    if (data == NULL)
        return -1;
    rc = secret_accept(data, len, err);
    if (rc == 0)
        m->password = util_strdup(data);
    explicit_bzero(data, len);
    free(data);
    return rc;
}

/* Reads the password of one master. -1: `line` says what is wrong, with the name of the master. */
static int master_read_secret(struct conf_master *m, struct conf_error *line, bool *warn)
{
    const char *key = m->password_credential != NULL ? "password_credential" : "password_file";
    struct conf_error err;
    char path[PATH_ROOM], shown[160];
    struct stat st;

    if (m->password != NULL || (m->password_file != NULL && m->password_credential != NULL))
        return conf_refuse(line,
                           "%s: has more than one password (address, password_file, "
                           "password_credential: only one)",
                           m->name);
    const char *why = m->password_credential
                          ? credential_path(m->password_credential, path, sizeof(path))
                          : credential_expand(m->password_file, path, sizeof(path));
    if (why)
        return conf_refuse(line, "%s.%s: %.300s", m->name, key, why);
    conf_printable(shown, sizeof(shown), path);
    if (secret_read(m, path, &err) != 0)
        return conf_refuse(line, "%s.%s: %s %.200s", m->name, key, shown, err.text);
    *warn = stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0;
    if (*warn)
        conf_refuse(line, "%s.%s: %s is readable by everybody on this machine", m->name, key,
                    shown);
    return 0;
}

int conf_read_secrets(struct conf *conf, conf_report_fn report, void *arg)
{
    int rc = 0;

    for (size_t i = 0; i < conf->master_count; i++) {
        struct conf_master *m = &conf->masters[i];
        struct conf_error line;
        bool warn = false;
        if (m->password_file == NULL && m->password_credential == NULL)
            continue;
        if (master_read_secret(m, &line, &warn) != 0) {
            rc = -1;
            report(arg, false, line.text);
        } else if (warn) {
            report(arg, true, line.text);
        }
    }
    return rc;
}
