#ifndef HOLDFAST_ASK_H
#define HOLDFAST_ASK_H
/*
 * ask: questions with an answer each, for the sub-commands that look and leave: the first broker
 * of the list that answers is asked, and waited for.
 */
#include "cli/link.h"

enum { ASK_TIMEOUT_MS = 5000 };

struct ask {
    struct link link;
};

/* The first of the brokers that answers PING. 0, or -1: `error` says why none does. */
int ask_try_open(struct ask *a, const struct urls *urls, char *error, size_t error_size) MUST_CHECK;
/* Ends the program with STATUS_NO_BROKER or STATUS_DENIED instead. */
void ask_open(struct ask *a, const struct urls *urls);
void ask_close(struct ask *a);

/* Sends a request whose answer ask_reply() gives, in order. */
void ask_send(struct ask *a, int argc, const char *const *argv);
/* NULL: no answer, the link is closed and its error set. */
redisReply *ask_try_reply(struct ask *a);
/* Ends the program when there is no answer, or when it is an error. */
redisReply *ask_reply(struct ask *a);
/* Words up to a NULL, and the reply to them. */
redisReply *ask_call(struct ask *a, ...) __attribute__((sentinel));

/* ---- what stands in a reply ---- */

/* The value of a key in a map (a flat array); NULL: none. */
const redisReply *ask_get(const redisReply *map, const char *key);
/* 0 when it is no integer (text that is one counts). */
int64_t ask_int(const redisReply *map, const char *key);
/* "" when it is no text. */
const char *ask_text(const redisReply *map, const char *key);
/* Of an array; 0 for everything else. */
size_t ask_count(const redisReply *r);

/* The number behind "field:" in a text of INFO; 0: none. */
int64_t ask_info_int(const char *info, const char *field);
/* The text behind "field:", cut to the buffer; "": none. */
const char *ask_info_text(const char *info, const char *field, char *buf, size_t size);
#endif
