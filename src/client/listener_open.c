/* Opening sockets to listen on: TCP of both families, Unix sockets, and those that systemd passed
 * (sd_listen_fds(3)).
 *
 * A Unix socket leaves its file behind when its server is killed. So when the path is taken, this
 * connects to it first: only a socket that nobody listens on any more is removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/listener_private.h"
#include "conf/conf.h"
#include "config.h"
#include "net/stream.h"

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

enum { BACKLOG = 1024 }; /* the kernel cuts it to net.core.somaxconn */

struct opening {
    struct listeners *set;
    struct listener_speech speech;
    unsigned unix_mode;
    char *error;
    size_t error_size;
};

static int fail_to_listen(const struct opening *o, const char *where, int err)
{
    snprintf(o->error, o->error_size, "cannot listen on %s: %s", where, strerror(err));
    return -1;
}

/* ---- TCP ---- */

static int open_tcp(const struct opening *o, const char *host, int port)
{
    char where[STREAM_ADDRESS_MAX];
    int fds[2];

    if (stream_listen(host, port, fds, where) != 0)
        return fail_to_listen(o, where, errno);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            listener_add(o->set, fds[i], o->speech, NULL);
    return 0;
}

/* ---- Unix ---- */

/* Removes the path when it is a socket that nobody listens on; returns whether it did. */
static bool remove_stale_socket(const struct sockaddr_un *un)
{
    struct stat st;

    if (lstat(un->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool stale = connect(fd, (const struct sockaddr *)un, sizeof *un) != 0 && errno == ECONNREFUSED;
    close(fd);
    return stale && unlink(un->sun_path) == 0;
}

static int bind_unix(int fd, const struct sockaddr_un *un)
{
    const struct sockaddr *addr = (const struct sockaddr *)un;

    if (bind(fd, addr, sizeof *un) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -1;
    if (!remove_stale_socket(un)) {
        errno = EADDRINUSE;
        return -1;
    }
    return bind(fd, addr, sizeof *un);
}

static int open_unix(const struct opening *o, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct listener_file file = {.path = ""};
    struct stat st;

    if (strlen(path) >= sizeof un.sun_path)
        return fail_to_listen(o, path, ENAMETOOLONG);
    strcpy(un.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_to_listen(o, path, errno);
    if (bind_unix(fd, &un) != 0) {
        fail_to_listen(o, path, errno);
        close(fd);
        return -1;
    }
    /* Nobody can connect before listen(2), so the mode is right from the start. */
    if (chmod(path, o->unix_mode) != 0 || stat(path, &st) != 0 || listen(fd, BACKLOG) != 0) {
        fail_to_listen(o, path, errno);
        unlink(path);
        close(fd);
        return -1;
    }
    strcpy(file.path, path);
    file.dev = st.st_dev;
    file.ino = st.st_ino;
    listener_add(o->set, fd, (struct listener_speech){0}, &file);
    return 0;
}

void listener_remove_file(const struct listener_file *file)
{
    struct stat st;

    if (file->path[0] && stat(file->path, &st) == 0 && st.st_dev == file->dev &&
        st.st_ino == file->ino)
        unlink(file->path);
}

/* ---- all ---- */

int listener_open_list(struct listeners *set, const struct conf_listens *listens,
                       unsigned unix_mode, char *error, size_t error_size)
{
    struct opening o = {set, {0}, unix_mode, error, error_size};

    _Static_assert(2 * CONF_LISTEN_MAX <= LISTENERS_MAX, "each may be two: * is IPv4 and IPv6");
    for (size_t i = 0; i < listens->count; i++) {
        const struct conf_listen *l = &listens->v[i];
        o.speech = (struct listener_speech){l->tls, l->proxy};
        if ((l->is_unix ? open_unix(&o, l->host) : open_tcp(&o, l->host, l->port)) != 0)
            return -1;
    }
    if (listens->count > 0 && listener_count(set) == 0) {
        snprintf(error, error_size, "no address to listen on: this machine has no IPv6");
        return -1;
    }
    return 0;
}

#ifdef HAVE_LIBSYSTEMD
int listener_take_passed(struct listeners *set, char *error, size_t error_size)
{
    char **names = NULL;
    int count = sd_listen_fds_with_names(1, &names);

    if (count < 0) {
        snprintf(error, error_size, "cannot take the sockets passed by systemd: %s",
                 strerror(-count));
        return -1;
    }
    for (int i = 0; i < count; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        int flags = fcntl(fd, F_GETFL);
        if (listener_is_full(set) || flags < 0 ||
            sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
            snprintf(error, error_size,
                     "descriptor %d passed by systemd is no listening stream socket", fd);
            count = -1;
            break;
        }
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        const char *name = names ? names[i] : "";
        bool both = strcmp(name, "proxy-tls") == 0;
        listener_add(set, fd,
                     (struct listener_speech){.tls = both || strcmp(name, "tls") == 0,
                                              .proxy = both || strcmp(name, "proxy") == 0},
                     NULL);
    }
    for (int i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
    return count;
}
#else
int listener_take_passed(struct listeners *set, char *error, size_t error_size)
{
    (void)set, (void)error;
    (void)error_size;
    return 0;
}
#endif
