#pragma once
/*
 * A relay between a client and a server, both on Unix sockets, in the loop of the test: it can lie
 * to the client, keep the server's answers back, and break the client's side alone.
 */
#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct relay;

struct relay *relay_new(struct event_base *, const char *path, const char *upstream);
void relay_free(struct relay *);
/* Says something to each client, out of turn. */
void relay_say(struct relay *, const char *bytes, size_t len);
/* From now on each lot of the server's bytes is thrown away and this said in its place, with the
 * number of the call that was answered for each @; NULL: relays again. */
void relay_replace(struct relay *, const char *bytes, size_t len);
/* Keeps what the server says, until it is let go. */
void relay_hold(struct relay *, bool hold);
/* Closes the clients' side; to the server nothing has happened. */
void relay_cut(struct relay *);
/* How many connections to the server stand. */
int relay_servers(const struct relay *);
