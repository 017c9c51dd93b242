#ifndef HOLDFAST_LISTENER_PRIVATE_H
#define HOLDFAST_LISTENER_PRIVATE_H
/* Between listener.c (accepting) and listener_open.c (opening). */
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "listener.h"

enum { LISTENERS_MAX = 64 };

/* The file of a Unix socket that we made; path is empty when there is none. */
struct listener_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    dev_t dev;
    ino_t ino;
};

/* Takes over a listening socket, and the file to remove at its end (NULL: none). */
void listener_add(struct listeners *, int fd, bool tls, const struct listener_file *file);
bool listener_is_full(const struct listeners *);

/* Adds the sockets that systemd has passed: how many, or -1 with text in `error`. */
int listener_take_passed(struct listeners *, char *error, size_t error_size);

/* Opens and adds each address of the list. -1: one cannot be opened; some may be added. */
int listener_open_list(struct listeners *, const struct conf_listens *, unsigned unix_mode,
                       char *error, size_t error_size);

/* Removes it, unless somebody else has put another in its place. */
void listener_remove_file(const struct listener_file *);
#endif
