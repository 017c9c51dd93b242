#pragma once
/*
 * ask: sends requests to the first broker of the list that answers, and waits for each reply; for
 * the sub-commands that look and leave.
 */
#include "cli/link.h"

enum { ASK_TIMEOUT_MS = 5000 };

/* Connects to the first of the brokers that answers PING. -1: `error` says why none does. */
int ask_try_open(struct link *link, const struct urls *urls, char *error,
                 size_t error_size) MUST_CHECK;
/* Does the same, but ends the program with STATUS_NO_BROKER or STATUS_DENIED if none answers. */
void ask_open(struct link *link, const struct urls *urls);

/* Returns the reply to the next of the requests of link_send(), for freeReplyObject(); NULL: there
 * is none, the link is closed and its error set. */
redisReply *ask_try_reply(struct link *link);
/* Has this called some five times a second while an answer is waited for; when it returns false
 * the link is closed, as nobody waits any more. */
void ask_while(bool (*goes_on)(void *arg), void *arg);
/* Sends the words up to a NULL and returns the reply; ends the program when there is none, or when
 * it is an error. */
redisReply *ask_call(struct link *link, ...) __attribute__((sentinel));

/* ---- what stands in a reply ---- */

/* Returns the value of a key in a map (a flat array); NULL: there is none. */
const redisReply *ask_get(const redisReply *map, const char *key);
/* Returns the integer at a key, also when it is written as text; 0: there is none. */
int64_t ask_int(const redisReply *map, const char *key);
/* Returns the text at a key; "": there is none. */
const char *ask_text(const redisReply *map, const char *key);
/* Returns how many elements an array has; 0 for everything else. */
size_t ask_count(const redisReply *r);

/* Returns the number behind "field:" in a text of INFO; 0: there is none. */
int64_t ask_info_int(const char *info, const char *field);
/* Copies the text behind "field:", cut to the buffer ("": none), and returns buf. */
const char *ask_info_text(const char *info, const char *field, char *buf, size_t size);
