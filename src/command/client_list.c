/*
 * CLIENT LIST and CLIENT INFO.
 *
 * A list of many connections is made over several turns of the loop, some connections in each, and
 * answered when it is complete; one list at a time, the others wait in `listings`. So it shows each
 * connection as it was at a moment of its own. Who came after its begin does not stand in it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/util.h"
#include "command/client_private.h"
#include "session/pubsub.h"

/* Connections that are written in one turn, and what a line takes. */
enum { LIST_TURN = 300, LINE_INSTRUCTIONS = 12000, LOOK_INSTRUCTIONS = 30, ID_INSTRUCTIONS = 6 };

struct listing {
    struct request base; /* first */
    TAILQ_ENTRY(listing) link;
    struct buf text;
    struct client_filter filter;
    int64_t *ids;    /* of the filter */
    uint64_t number; /* 0: not begun; session->listed of those that have been looked at */
    uint64_t last_id;
    int left;      /* in this turn */
    int64_t looks; /* at connections */
    bool more;
};

static TAILQ_HEAD(, listing) listings = TAILQ_HEAD_INITIALIZER(listings);
static uint64_t last_number;

/* ---- one line ---- */

static void append_flags(struct buf *text, const struct session *s)
{
    char flags[8];
    size_t n = 0;

    if (s->monitor)
        flags[n++] = 'O';
    if (s->n_subscriptions > 0)
        flags[n++] = 'P';
    if (session_is_blocked(s))
        flags[n++] = 'b';
    if (s->closing)
        flags[n++] = 'c';
    if (s->multi)
        flags[n++] = 'x';
    if (s->no_evict)
        flags[n++] = 'e';
    if (s->no_touch)
        flags[n++] = 'T';
    if (n == 0)
        flags[n++] = 'N';
    buf_append(text, flags, n);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* Redis's fields, with what there is none of at 0, and ours behind them. */
static void append_line(struct buf *text, struct session *s, int64_t now_ms)
{
    const struct cmd_hooks *hooks = cmd_hooks();
    size_t out_len = hooks->output_len(s);

    buf_printf(text, "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s", s->id, hooks->peer(s),
               hooks->local(s), hooks->fd(s), or_empty(s->name));
    buf_printf(text, " age=%" PRId64 " idle=%" PRId64 " flags=", (now_ms - s->created_ms) / 1000,
               (now_ms - s->last_ms) / 1000);
    append_flags(text, s);
    buf_printf(text, " db=%d sub=%" PRIu32 " psub=%" PRIu32 " ssub=0 multi=%d", s->db,
               pubsub_count_session(s, false), pubsub_count_session(s, true), s->multi ? 0 : -1);
    buf_printf(text,
               " qbuf=%zu qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=%zu oll=0 omem=%zu "
               "tot-mem=%zu",
               hooks->input_len(s), out_len, out_len,
               sizeof(*s) + hooks->input_len(s) + out_len + s->held_len);
    buf_printf(text, " events=%s cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s",
               out_len > 0 ? "rw" : "r", s->n_commands > 0 ? cmd_full_name(s->last_cmd) : "NULL",
               cmd_client_user(s), s->proto, or_empty(s->lib_name), or_empty(s->lib_ver));
    buf_printf(text,
               " tot-cmds=%" PRId64 " locks=%" PRIu32 " in-flight=%" PRIu32 " waiting=%" PRIu32
               " async=%" PRIu32 "\n",
               s->n_commands, s->n_holds, s->n_requests, s->n_parked + s->n_async_waits,
               s->n_async);
}

/* ---- a list ---- */

static void find_last(struct session *s, void *arg)
{
    struct listing *l = arg;

    if (s->id > l->last_id)
        l->last_id = s->id;
}

static void on_client(struct session *s, void *arg)
{
    struct listing *l = arg;

    l->looks++;
    if (s->listed == l->number || s->id > l->last_id)
        return;
    if (l->left == 0) {
        l->more = true;
        return;
    }
    s->listed = l->number;
    if (!cmd_client_fits(&l->filter, s))
        return;
    append_line(&l->text, s, l->filter.now_ms);
    l->left--;
}

/* Writes some more of a list; l->more tells whether that is not all. */
static void go_on(struct listing *l)
{
    const struct cmd_hooks *hooks = cmd_hooks();

    if (l->number == 0) {
        l->number = ++last_number;
        hooks->each_client(hooks->clients, find_last, l);
    }
    l->left = LIST_TURN;
    l->more = false;
    hooks->each_client(hooks->clients, on_client, l);
}

static void listing_free(struct request *r)
{
    struct listing *l = (struct listing *)r;

    buf_fini(&l->text);
    free(l->ids);
    free(l);
}

static void listing_write(struct request *r, struct resp_writer *w, int64_t now_ms)
{
    const struct listing *l = (const struct listing *)r;

    (void)now_ms;
    resp_verbatim(w, "txt", buf_head(&l->text), buf_len(&l->text));
}

static void listing_abandon(struct request *r, int64_t now_ms)
{
    struct listing *l = (struct listing *)r;

    (void)now_ms;
    TAILQ_REMOVE(&listings, l, link);
    listing_free(r);
}

static const struct request_type listing_type = {
    .write = listing_write, .abandon = listing_abandon, .free = listing_free};

void cmd_client_turn(void)
{
    struct listing *l = TAILQ_FIRST(&listings);

    if (l == NULL)
        return;
    go_on(l);
    if (l->more)
        return;
    TAILQ_REMOVE(&listings, l, link);
    request_finish(&l->base);
}

bool cmd_client_waits(void)
{
    return !TAILQ_EMPTY(&listings);
}

/* ---- LIST, INFO ---- */

static int read_ids(struct cmd_call *c, int n, const struct resp_arg *words, struct listing *l)
{
    l->ids = util_alloc((size_t)n * sizeof l->ids[0]);
    l->filter.ids = l->ids;
    l->filter.n_ids = n;
    for (int i = 0; i < n; i++)
        if (!cmd_number(c, &words[i], INT64_MIN, INT64_MAX, &l->ids[i], "ERR Invalid client ID"))
            return -1;
    return 0;
}

static int read_filter(struct cmd_call *c, struct listing *l)
{
    if (c->argc == 4 && cmd_word_is(&c->argv[2], "TYPE"))
        return cmd_client_type(c, &c->argv[3], &l->filter.type);
    if (c->argc > 3 && cmd_word_is(&c->argv[2], "ID"))
        return read_ids(c, c->argc - 3, c->argv + 3, l);
    if (c->argc == 2)
        return 0;
    cmd_reply_syntax(c);
    return -1;
}

/* What it takes of memory is bounded by one list a connection. */
static bool has_listing(const struct session *s)
{
    const struct listing *l;

    TAILQ_FOREACH(l, &listings, link)
        if (l->base.session == s)
            return true;
    return false;
}

void cmd_client_list(struct cmd_call *c)
{
    struct listing *l = util_alloc(sizeof *l);

    l->base.type = &listing_type;
    l->filter.now_ms = c->now_ms;
    if (read_filter(c, l) != 0) {
        listing_free(&l->base);
        return;
    }
    if (has_listing(c->session)) {
        cmd_reply_error(c, "LIMIT a CLIENT LIST of this connection is still being made");
        listing_free(&l->base);
        return;
    }
    if (TAILQ_EMPTY(&listings)) {
        go_on(l);
        cmd_charge((LIST_TURN - l->left) * (int64_t)LINE_INSTRUCTIONS +
                   l->looks * (LOOK_INSTRUCTIONS + l->filter.n_ids * ID_INSTRUCTIONS));
    }
    if (TAILQ_EMPTY(&listings) && !l->more) {
        resp_verbatim(cmd_reply(c), "txt", buf_head(&l->text), buf_len(&l->text));
        listing_free(&l->base);
        return;
    }
    TAILQ_INSERT_TAIL(&listings, l, link);
    session_ask(c->session, &l->base);
}

void cmd_client_info(struct cmd_call *c)
{
    struct buf text = {0};

    append_line(&text, c->session, c->now_ms);
    resp_verbatim(cmd_reply(c), "txt", buf_head(&text), buf_len(&text));
    buf_fini(&text);
}
