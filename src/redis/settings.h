#pragma once
/*
 * settings: writes and compares what all brokers of the same masters must share (safety R6), as one
 * text:
 *
 *     max_lease=60000 drift=5000 quarantine=auto masters=10.0.0.1:6379/0,10.0.0.2:6379/0
 *
 * A master has one such text in force. The scripts carry its digest, so that a broker with another
 * one is refused by each call.
 */

struct conf;

enum { SETTINGS_DIGEST_LEN = 16, SETTINGS_WORDS_MAX = 240 };

/* Returns the text of this configuration, which the caller frees. It does not depend on the order
 * of the masters. */
char *settings_text(const struct conf *);
/* Returns the names of all brokers, sorted, with commas between, which the caller frees; NULL: this
 * configuration has no list. */
char *settings_brokers(const struct conf *);
/* Writes a digest of the text: letters and digits. */
void settings_digest(const char *text, char out[SETTINGS_DIGEST_LEN + 1]);
/* Writes in words in which values `ours` differs from `theirs`: "max_lease 59000 here, 60000
 * there". `theirs` may be any text: what cannot be printed is left out. */
void settings_difference(const char *ours, const char *theirs, char out[SETTINGS_WORDS_MAX]);
