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

/* A password and where it is to come from. */
struct secret {
    const char *prefix; /* of its options */
    const char *file, *credential;
    char **password;
};

static int secret_read(const struct secret *s, const char *path, struct conf_error *err)
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
        *s->password = util_strdup(data);
    explicit_bzero(data, len);
    free(data);
    return rc;
}

/* Reads one password of a master. -1: `line` says what is wrong, with the name of the master. */
static int master_read_secret(const struct conf_master *m, const struct secret *s,
                              struct conf_error *line, bool *warn)
{
    const char *key = s->credential != NULL ? "password_credential" : "password_file";
    struct conf_error err;
    char path[PATH_ROOM], shown[160];
    struct stat st;

    if (*s->password != NULL || (s->file != NULL && s->credential != NULL))
        return conf_refuse(line,
                           "%s: has more than one password (address, %spassword_file, "
                           "%spassword_credential: only one)",
                           m->name, s->prefix, s->prefix);
    const char *why = s->credential ? credential_path(s->credential, path, sizeof(path))
                                    : credential_expand(s->file, path, sizeof(path));
    if (why)
        return conf_refuse(line, "%s.%s%s: %.300s", m->name, s->prefix, key, why);
    conf_printable(shown, sizeof(shown), path);
    if (secret_read(s, path, &err) != 0)
        return conf_refuse(line, "%s.%s%s: %s %.200s", m->name, s->prefix, key, shown, err.text);
    *warn = stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0;
    if (*warn)
        conf_refuse(line, "%s.%s%s: %s is readable by everybody on this machine", m->name,
                    s->prefix, key, shown);
    return 0;
}

static int read_reported(const struct conf_master *m, const struct secret *s, conf_report_fn report,
                         void *arg)
{
    struct conf_error line;
    bool warn = false;

    if (s->file == NULL && s->credential == NULL)
        return 0;
    int rc = master_read_secret(m, s, &line, &warn);
    if (rc != 0 || warn)
        report(arg, warn, line.text);
    return rc;
}

int conf_read_secrets(struct conf *conf, conf_report_fn report, void *arg)
{
    int failed = 0;

    for (size_t i = 0; i < conf->master_count; i++) {
        struct conf_master *m = &conf->masters[i];
        const struct secret of_master = {"", m->password_file, m->password_credential,
                                         &m->password},
                            of_sentinels = {"sentinel_", m->sentinel_password_file,
                                            m->sentinel_password_credential, &m->sentinel_password};
        failed += read_reported(m, &of_master, report, arg) != 0;
        failed += read_reported(m, &of_sentinels, report, arg) != 0;
    }
    return failed > 0 ? -1 : 0;
}
