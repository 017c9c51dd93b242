#pragma once
/*
 * words: requests of order.h as commands and scripts that an application says to its broker, and
 * what the replies mean.
 */
#include "order.h"

/* The world has the scripts, behind world_begin(). */
void words_begin(void);
/* `number` is what an END publishes when it has ended something; `name`: of the verbs that have
 * one, the others are of the names "s" and "t". */
void words_say(int app, const struct order_op *, int number, const char *name);
/* Sets outcome, result and text. */
void words_read(struct order_op *, const char *text);
