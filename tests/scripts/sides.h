#pragma once
/*
 * The scripts of src/redis/lua on a redis-server of the test's own, and on the server of the
 * simulation (fake_server.h): asked by the same lines of text, so that what they answer can be
 * compared.
 *
 *   script names deadline args... -> answer, without its time
 *
 *     names      joined by commas
 *     deadline   "-", "late" or "soon"
 *     args       those of acquire and exchange as in script_args.h; "-" for an empty one of peek
 *     answer     an error by its first word; [..]: an item of peek; op/seq/state: a hold that
 *                exchange shows, "-": none
 *
 *     state      "drop-in_s_t_v": with "_" for its blanks
 *
 *   STATE name [share] -> owner op token count seq; or "free", "foreign"
 *
 *   LINE name -> tickets, and "turn:" with each one whose turn it is
 *
 *   GONE name op -> 1 or 0: is there a tombstone
 *
 *   LAPSE name share: the time of this hold is over ("-": of the exclusive one)
 *
 *   CALL n: the number of the calls that follow, at first 77; all are of broker "b"
 *
 *   SETTINGS text: of the broker whose scripts follow, at first "s"; the text is its own digest
 *
 *   SET name, FLUSHALL, SLEEP ms, LISTEN broker
 *
 *   REDIS words -> any command to the real one, and its answer; "-": nothing
 *
 * "RUN" in a line is the run id.
 */
#include <stdbool.h>

enum { SIDE_WORDS = 96, SIDE_TEXT = 1024 };

struct side;
enum { SIDE_REDIS, SIDE_MODEL, SIDES };
extern const struct side *const sides[SIDES];

const char *side_name(const struct side *);
void side_begin(const struct side *); /* an empty server: no broker has joined */
void side_end(const struct side *);
/* Runs one line; what is answered as words in `out`. A line may end at " ->". */
void side_step(const struct side *, const char *line, char out[SIDE_TEXT]);
/* Any command to the real one: for states that only a real server can get into. */
void side_by_hand(const char *command);
/* Makes the scripts of the real one those of brokers that mirror. */
void side_mirror(bool on);
/* Makes the scripts of the real one those of brokers in front of a Cluster. */
void side_partition(bool on);
/* Cuts text at its blanks; the words point into it. How many. */
int side_split(char *text, char *words[SIDE_WORDS]);
