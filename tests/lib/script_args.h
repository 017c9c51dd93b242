#pragma once
/*
 * acquire.lua is given a hold as it is to stand on the master, and says how far its token is above
 * the floor; the counters stand behind all items. Tests are easier to read by the parts of the
 * hold, and by the token:
 *
 *   op owner lease floor counter more
 *
 * more: those fields of the wish that are not as usual, "mode=s,ticket=b1"; "-": the lease is all
 */
#include <stdbool.h>
#include <stdint.h>

enum { ACQUIRE_WORDS = 6, ACQUIRE_ARGS = 2 };

struct acquire_args {
    char hold[640], wish[512], counter[24];
    char *list[ACQUIRE_ARGS]; /* into the above */
    int64_t floor_value;
};

/* And what release.lua is told, by the words  op tomb more  (more: as above, "next=wait,part=r:A";
 * "-": nothing but op and tomb). Returns out. */
enum { RELEASE_WORDS = 3, RELEASE_ARG = 512 };
char *release_arg(char out[RELEASE_ARG], char *const words[RELEASE_WORDS]);

/* And what renew.lua is told, by the words  op lease count seq part  (count "-": there is nothing
 * to say of it). */
enum { RENEW_WORDS = 5, RENEW_ARGS = 2, RENEW_ARG = 512 };
void renew_args(char what[RENEW_ARG], char *list[RENEW_ARGS], char *const words[RENEW_WORDS]);

void acquire_args(struct acquire_args *, char *const words[ACQUIRE_WORDS]);

/* And what exchange.lua is told, by the words
 *
 *   expect op state lease floor counter more
 *
 * op: "look" and "end" write no hold, and need no state and floor; more: "t": the time is asked
 * for; "v=<seq>": the version of the hold, if it is not its floor; else as above. now_ms: time of
 * the server.
 */
enum { EXCHANGE_WORDS = 7, EXCHANGE_ARGS = 2 };

struct exchange_args {
    char hold[640], wish[512], counter[24];
    char *list[EXCHANGE_ARGS]; /* into the above, and the words */
    int64_t floor_value;
    bool takes_token;
};
void exchange_args(struct exchange_args *, char *const words[EXCHANGE_WORDS], int64_t now_ms);
