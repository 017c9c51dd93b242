/* private: what the files of conf share; nobody else includes it.
 *
 * conf.c        life, setting by name, get, diff
 * check.c  what only several options together can get wrong
 * load.c   the file, by inih
 * secret.c passwords from files
 * table.c  the rows, finding one by name
 * value.c  one value of a type: text to field and back
 * listen.c the addresses to listen on
 * peer.c   the addresses of brokers, as clients reach them
 * master.c the masters: addresses, secrets
 * address.c addresses of masters
 * found.c masters that Sentinels or the nodes of a Cluster tell of
 * user.c   the users: hashes of passwords, what they may do */
#pragma once

#include "conf/conf.h"

enum { CONF_VALUE_MAX = 2048 }; /* bytes of any value as text, with the NUL */

#define CONF_MASTERS_SECTION "masters"
#define CONF_USERS_SECTION "users"
#define CONF_HOST_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

/* ---- conf.c ---- */

/* Sets one option. line: of the file; 0: from elsewhere. */
int conf_set_at(struct conf *conf, const char *section, const char *key, const char *value,
                int line, struct conf_error *err) MUST_CHECK;

/* ---- load.c ---- */

/* Reads a whole file of at most max bytes, with a NUL behind it; the caller frees it. NULL: err
 * says why. */
char *conf_read_file(const char *path, size_t max, size_t *len, struct conf_error *err) MUST_CHECK;

/* ---- table.c ---- */

/* Finds a row; section NULL: the first one with that key. */
const struct conf_option *conf_option_find(const char *section, const char *key);

/* Says in err that there is no such option, and what may have been meant. */
void conf_option_unknown(const char *section, const char *key, struct conf_error *err);

bool conf_section_known(const char *section);

/* Returns the index of the row, as in conf.line. */
size_t conf_option_index(const struct conf_option *opt);

/* ---- value.c ---- */

/* Sets the field of the row; on -1 it is as it was and err says why, without the key. */
int conf_value_set(struct conf *conf, const struct conf_option *opt, const char *text,
                   struct conf_error *err) MUST_CHECK;

/* Writes the value so that conf_value_set reads back the same. */
void conf_value_format(const struct conf *conf, const struct conf_option *opt,
                       char out[CONF_VALUE_MAX]);

/* Returns 0 when the text is fit for a CONF_PATH; "none" is no path here. */
int conf_path_check(const char *text, struct conf_error *err) MUST_CHECK;

/* Copy, and free, what the fields of type CONF_PATH, CONF_NAMES, CONF_HOSTS and
 * CONF_ADDRESSES point to. */
void conf_texts_copy(struct conf *conf);
void conf_texts_fini(struct conf *conf);

/* Cuts text and replaces control bytes, for messages. */
const char *conf_printable(char *out, size_t size, const char *text);

/* Writes the message and returns -1. */
int conf_refuse(struct conf_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- listen.c ---- */

int conf_listens_set(struct conf_listens *listens, const char *text,
                     struct conf_error *err) MUST_CHECK;
void conf_listens_format(const struct conf_listens *listens, char out[CONF_VALUE_MAX]);
void conf_listens_copy(struct conf_listens *dst, const struct conf_listens *src);
void conf_listens_fini(struct conf_listens *listens);

/* ---- peer.c ---- */

/* Checks that these are 1 to max addresses with ports, none of them twice. */
int conf_addresses_check(const char *text, int64_t max, struct conf_error *err) MUST_CHECK;

/* ---- user.c ---- */

/* Sets one option of a user. key: the user's name, or name.allow and the like. */
int conf_user_set(struct conf *conf, const char *key, const char *value, int line,
                  struct conf_error *err) MUST_CHECK;
void conf_users_copy(struct conf *dst, const struct conf *src);
bool conf_users_same(const struct conf *a, const struct conf *b);

/* ---- master.c ---- */

/* Sets one option of a master. key: the master's name, or name.password_file and the like. */
int conf_master_set(struct conf *conf, const char *key, const char *value, int line,
                    struct conf_error *err) MUST_CHECK;

bool conf_master_same_address(const struct conf_master *a, const struct conf_master *b);
bool conf_master_same_id(const struct conf_master *a, const struct conf_master *b); /* or none */
/* Returns true when user, password and the files for TLS are the same. */
bool conf_master_same_login(const struct conf_master *a, const struct conf_master *b);
void conf_masters_copy(struct conf *dst, const struct conf *src);

/* ---- address.c ---- */

/* These read what stands at the head of *rest, [user[:password]@] or host or [v6], and move it
 * behind that; the parts point into it. */
int conf_parse_login(char **rest, struct conf_master *m, struct conf_error *err) MUST_CHECK;
int conf_parse_host(char **rest, struct conf_master *m, struct conf_error *err) MUST_CHECK;
int conf_parse_db(const char *text, struct conf_master *m, struct conf_error *err) MUST_CHECK;
void conf_free_login(char **user, char **password);

/* Writes the address as a URL, with its password as ***. */
void conf_master_format(const struct conf_master *m, char out[CONF_VALUE_MAX]);

/* ---- found.c ---- */

/* Returns true for sentinel:// and sentinels://. */
bool conf_is_sentinels_url(const char *text);
/* Reads such a URL into host and the login to Sentinels. -1: m is as it was. */
int conf_sentinels_set(struct conf_master *m, const char *text, struct conf_error *err) MUST_CHECK;
/* Reads redis://[user[:password]@][/db], or rediss://: the login to a master that Sentinels name.
 */
int conf_login_set(struct conf_master *m, const char *text, struct conf_error *err) MUST_CHECK;
/* Returns true for cluster:// and clusters://. */
bool conf_is_cluster_url(const char *text);
/* Reads such a URL into host and the login to the nodes. -1: m is as it was. */
int conf_cluster_set(struct conf_master *m, const char *text, struct conf_error *err) MUST_CHECK;
