#pragma once
/*
 * cmd: the way from the words of a request to the function that answers it.
 *
 * One row a command (CMD_ROW in table.c): name, handler, arity as in Redis (negative: at
 * least), flags, summary, arguments for COMMAND DOCS. Commands with sub-commands have a
 * table of rows of their own. Look-up, arity and permission are decided here and nowhere else.
 */
#include <stdbool.h>
#include <stdint.h>

#include "command/monitor.h"
#include "net/resp.h"
#include "session/session.h"

struct broker;
struct clients;
struct conf;
struct dropin;
struct peers;
struct server;
struct stats_command;

/* Flags of a row. The class decides who may run it (ACL categories: @lock, @drop-in, @inspect,
 * @admin, @connection). */
enum {
    CMD_LOCK = 1u << 0,       /* takes or gives back locks */
    CMD_INSPECT = 1u << 1,    /* reads state */
    CMD_ADMIN = 1u << 2,      /* acts on the broker or on other clients; never fed to MONITOR */
    CMD_CONNECTION = 1u << 3, /* about this connection itself; always allowed */
    CMD_BARRIER =
        1u << 4, /* runs only when nothing of this session is in flight (QUIT, RESET, ...) */
    CMD_PUBSUB_OK = 1u << 5, /* allowed in a RESP2 connection that has subscribed */
    CMD_SECRET = 1u << 6,    /* arguments are never shown (AUTH, HELLO) */
    CMD_ANYBODY = 1u << 7,   /* allowed before the client has said who it is */
    CMD_CHANNELS = 1u << 8,  /* its arguments are channels: for names that the user may use */
    CMD_ALL_NAMES = 1u << 9, /* shows names whoever they belong to: for users without patterns */
    CMD_MULTI_OK = 1u << 10, /* its handler runs also after MULTI */
    CMD_RELEASE = 1u << 11,  /* gives back: always allowed for what the connection itself holds */
    CMD_DROP_IN = 1u << 12,  /* a command of Redis that is served on locks */
    CMD_EITHER = 1u << 13,   /* one of its classes is enough */
};
#define CMD_CLASSES (CMD_LOCK | CMD_DROP_IN | CMD_INSPECT | CMD_ADMIN | CMD_CONNECTION)

/* One request that is run. argv[0] is the command's name; arguments may hold any bytes and are not
 * terminated. */
struct cmd_call {
    struct session *session;
    int argc;
    const struct resp_arg *argv; /* with the names of locks */
    const struct resp_arg *said; /* as it came: with the names of the client's database */
    int64_t now_ms;
    const struct cmd *cmd; /* what is run: the row of the command, or of its sub-command */
    const char *full_name; /* of the row: "client|list" */
    struct resp_writer w;  /* see cmd_reply() */
    bool replied, failed;  /* by an error */
    struct request
        *asked;           /* with a tag, by session_ask_async(): it is counted when it is told of */
    bool waits_for_login; /* set in place of a reply: cmd_dispatch() then returns false */
};

/* Answers exactly one reply: at once by cmd_reply(), or later by a request given to
 * session_ask(). */
typedef void cmd_fn(struct cmd_call *);
/* QUIT sets session->closing: the edge ends the connection once its replies are written. */

struct cmd {
    const char *name; /* upper case */
    cmd_fn *fn;       /* NULL: has to be called with a sub-command */
    int arity;        /* words, the command and the sub-command count; -n: at least n */
    unsigned flags;
    const char *summary;
    const char *syntax;     /* the arguments in words, as in the manual: "name [OWNER id] ..." */
    const struct cmd *subs; /* table of sub-commands ended by a NULL name, or NULL */
    uint8_t verb;           /* enum lock_verb, of cmd_lock_request() */
};

/* The rows in the order of their names, ended by a NULL name (table.c). */
const struct cmd *cmd_table(int *count);

struct cmd_setting {
    char *key, *value;
};

/* What commands ask of the server, by pointers so that nothing here includes a higher room. */
struct cmd_hooks {
    struct broker *broker;
    struct dropin *dropin; /* NULL: commands of Redis are not served */
    struct conf *conf;
    struct server *server;
    struct clients *clients;
    const struct peers *peers;
    /* Appends the text of INFO; `sections` as stats_info() takes it. */
    void (*info)(struct server *, struct buf *out, const char *sections);
    /* Begins to stop; `now`: without waiting for the drain. The connection that asked gets no
     * reply, as in Redis: that it is closed at the end tells that the broker is down. */
    void (*shutdown)(struct server *, bool now);
    /* Clients: calls `each` for every one, which may kill it. `kill` ends one after its replies
     * have been sent, and never inside the call. */
    void (*each_client)(struct clients *, void (*each)(struct session *, void *arg), void *arg);
    void (*kill_client)(struct session *, const char *reason);
    /* RESET: the session becomes as a new connection is. Its holds end as by an orderly close, its
     * default owner is a new one. Nothing of it is in flight. */
    void (*reset_client)(struct server *, struct session *, int64_t now_ms);
    /* Addresses of the peer and of our side, "127.0.0.1:4711"; they live as long as the client. */
    const char *(*peer)(struct session *);
    const char *(*local)(struct session *);
    int (*fd)(struct session *);
    /* Bytes that wait to be run, and to be sent. */
    size_t (*input_len)(struct session *);
    size_t (*output_len)(struct session *);
    /* Holds back the commands of these classes, CMD_LOCK or CMD_INSPECT too, of all clients until
     * `until_ms` (CLIENT PAUSE); 0 ends it. The others are never held back, so that somebody can
     * end it. */
    void (*pause)(struct clients *, int64_t until_ms, unsigned classes);
    /* PAUSE and RESUME: whether new locks are given. */
    void (*pause_acquires)(struct server *, bool paused, int64_t now_ms);
    /* Ends the quarantine of a master (MASTER name TRUST); NULL, or why not, in words. */
    const char *(*trust)(struct server *, const char *name, int64_t now_ms);
    /* Puts the settings of this broker in force on a master (MASTER ADOPT); likewise. */
    const char *(*adopt)(struct server *, const char *name);
    /* Applies changed options, all or none (CONFIG SET); NULL, or the one that is refused, with why
     * in `error`. */
    const char *(*config_set)(struct server *, const struct cmd_setting *, int n, char *error,
                              size_t error_size);
};

/* Hooks are copied and all must be set. Tables of counts are made, all at 0, and lent to stats. */
void cmd_init(const struct cmd_hooks *);
void cmd_fini(void);
const struct cmd_hooks *cmd_hooks(void);

/* Instructions that a usual command takes, roughly. */
enum { CMD_INSTRUCTIONS = 4000 };

/* Runs one request; argc is at least 1. Answers unknown commands with Redis's very text, wrong
 * arity likewise. now_us is when it came. False: it waits for the verdict on a password (login.h)
 * and has no answer yet; nothing else of the session is to be run until then, and the same request
 * again after it. */
bool cmd_dispatch(struct session *, int argc, const struct resp_arg *argv, int64_t now_ms,
                  int64_t now_us);
/* Answers a request that was too large to be read: `why` is the end of the error. */
void cmd_refuse_request(struct session *, const char *why);
/* Returns how many usual commands the last one counts for: 1, or more if it charged for more
 * (cmd_charge). */
int cmd_cost(void);

/* Returns true when this command has to wait until nothing of the session is in flight
 * (CMD_BARRIER). */
bool cmd_must_wait(const struct session *, const struct resp_arg *word);

/* Counts a request whose reply has been written, and adds it to the slow log if it took long. For
 * session_events.on_written. */
void cmd_written(struct request *);

/* Ends the wait of the only request of a session that is `patient`: it is about to run another. */
void cmd_hurry(struct session *, int64_t now_ms);
/* Returns whether commands of Redis are served on locks (dropin.c). */
bool cmd_dropin_is_on(void);
/* Ends MULTI and WATCH of a session (multi.c). */
void cmd_multi_end(struct session *);
/* Answers the error for a command that cannot be part of a transaction. */
void cmd_multi_refuse(struct cmd_call *);
/* After MULTI: lets EXEC run nothing, as a command was refused. */
void cmd_multi_spoil(struct session *);

/* Ends the subscriptions, the MONITOR and the transaction of a session. Before session_fini(). */
void cmd_session_end(struct session *);

/* Finds a command by its name in any case; NULL: there is none. */
const struct cmd *cmd_find(const struct resp_arg *word);
const struct cmd *cmd_find_sub(const struct cmd *, const struct resp_arg *word);

/* Returns the number of a row: first those of the table, then their sub-commands. */
int cmd_index(const struct cmd *);
/* "lock", "client|list"; "" for a number that is none. */
const char *cmd_full_name(int index);
/* Returns the counts of a row; NULL after the last. */
struct stats_command *cmd_stats(size_t index);

/* Checks that this session may run it; false: an error has been answered. */
bool cmd_permits(struct cmd_call *);

/* Returns whether a request may have so many words. */
bool cmd_arity_fits(const struct cmd *, int argc);
/* Where the names of locks stand in a request (names.c). */
enum cmd_names {
    CMD_NAMES_NONE,
    CMD_NAMES_FIRST,   /* the first argument is one */
    CMD_NAMES_REST,    /* all arguments are */
    CMD_NAMES_COUNTED, /* the first argument is the number of names that follow */
    CMD_NAMES_SCRIPT   /* the second one is; none may be */
};
enum cmd_names cmd_names(const struct cmd *);
/* Finds the names of locks in a request: from argv[*first] to before the returned word; both are
 * the same when there are none. All words behind a number of names that does not fit count as
 * names. */
int cmd_find_names(const struct cmd *, int argc, const struct resp_arg *argv, int *first);
/* Returns the first name that stands there a second time; NULL: none does. */
const struct resp_arg *cmd_name_twice(const struct resp_arg *names, int n);
/* Puts the names that a connection with a database other than 0 means in place of those that it
 * said. c->argv then holds until the next call. */
void cmd_name_database(struct cmd_call *);
void cmd_names_fini(void);

/* Answers the error for what is no command, or no sub-command of this one (unknown.c). */
void cmd_reject_unknown(struct cmd_call *);
void cmd_reject_unknown_sub(struct cmd_call *, const char *command, const struct resp_arg *word);

/* Returns what a user may see of a request in MONITOR (monitor_request.view; of_view is the row):
 * with patterns it sees requests whose names it may use, and of requests without names that there
 * was one. */
enum monitor_view cmd_view(const struct user *, const struct monitor_request *);

/* The last refusals, the newest first; the same one again only counts. */
enum { CMD_REFUSALS_MAX = 64, CMD_PEER_MAX = 128 };
enum cmd_reason { CMD_REASON_AUTH, CMD_REASON_COMMAND, CMD_REASON_NAME };
struct cmd_refusal {
    enum cmd_reason reason;
    char object[64], user[64], peer[CMD_PEER_MAX];
    uint64_t id, count;
    int64_t wall_ms;
};
const struct cmd_refusal *cmd_refusals(int *n);
void cmd_refusals_reset(void);
void cmd_refused(struct session *, enum cmd_reason, const char *object, size_t object_len,
                 const char *user, size_t user_len);

/* Helpers for handlers. */
bool cmd_word_equals(const struct resp_arg *, const char *upper);
/* Compares in any case; `upper` is in capitals and not empty. Nearly all words differ from the
 * first letter on. */
static inline bool cmd_word_is(const struct resp_arg *word, const char *upper)
{
    return word->len > 0 && ((word->ptr[0] ^ upper[0]) & ~('a' ^ 'A')) == 0 &&
           cmd_word_equals(word, upper);
}
/* Reads a number from min to max; false: `error` has been answered. */
bool cmd_number(struct cmd_call *, const struct resp_arg *word, int64_t min, int64_t max,
                int64_t *out, const char *error);
/* Returns the writer for the one immediate reply of a call: write it whole before anything else is
 * asked of the session. */
struct resp_writer *cmd_reply(struct cmd_call *);
void cmd_reply_error(struct cmd_call *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cmd_reply_ok(struct cmd_call *);
void cmd_reply_int(struct cmd_call *, int64_t value);
void cmd_reply_str(struct cmd_call *, const char *text);
void cmd_reply_syntax(struct cmd_call *); /* ERR syntax error */
/* Answers an array of n elements that were written to a buffer, as their number comes first. */
void cmd_reply_elements(struct cmd_call *, size_t n, const struct buf *elements);
/* Charges this command for so many instructions, roughly, as it does more than most: its client,
 * and all of them, run fewer commands in this turn of the loop. */
void cmd_charge(int64_t instructions);
/* Makes a pattern of a word; NULL: it is too long, and an error has been answered. */
struct glob *cmd_glob(struct cmd_call *, const struct resp_arg *word);
/* Writes the error of a request that is answered later, and counts it as failed. For
 * request_type.write. */
void cmd_write_error(struct request *, struct resp_writer *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* For error texts: "%.*s" of an argument, at most 128 bytes of it. */
#define CMD_ARG(arg) (int)((arg)->len < 128 ? (arg)->len : 128), (arg)->ptr
