/*
 * What the status page shows of the server: a view of all of it, and the locks that somebody looks
 * for.
 *
 * The view looks at connections, not at the table of locks: there are at most max_clients of them,
 * and a request for the page must not hold up a million locks. A search goes through the table in
 * pieces, one with each request.
 */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/glob.h"
#include "dropin/call.h"
#include "http/http.h"
#include "lock/view.h"
#include "server/private.h"
#include "stats/gauges.h"

/* SEARCHED: names compared, and buckets of the table, for one request. */
enum { HOLDS_LOOKED_AT = 20000, SEARCHED = 10000 };

/* ---- the longest waits and holds, and those that may be lost ---- */

static bool is_longer(const struct http_row *a, const struct http_row *b)
{
    return a->since_ms > b->since_ms;
}

static bool ends_before(const struct http_row *a, const struct http_row *b)
{
    return a->left_ms < b->left_ms;
}

static bool is_same_lock(const struct http_row *a, const struct http_row *b)
{
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

/* Adds a row in its place, the first of each lock alone; the last one may fall out. */
static void insert(struct http_row *rows, size_t *n, const struct http_row *row,
                   bool (*is_before)(const struct http_row *, const struct http_row *))
{
    size_t i = 0;

    if (*n == HTTP_ROWS && !is_before(row, &rows[HTTP_ROWS - 1]))
        return;
    while (i < *n && !is_same_lock(row, &rows[i]))
        i++;
    if (i < *n && !is_before(row, &rows[i]))
        return;
    if (i == *n)
        i = *n < HTTP_ROWS ? (*n)++ : HTTP_ROWS - 1;
    for (; i > 0 && is_before(row, &rows[i - 1]); i--)
        rows[i] = rows[i - 1];
    rows[i] = *row;
}

struct looking {
    struct http_view *view;
    struct http_row row; /* of the client at hand */
    int64_t now_ms, n_holds;
};

static bool show_hold(void *arg, const struct view_hold *h)
{
    struct looking *l = arg;
    struct http_row row = l->row;

    if (++l->n_holds > HOLDS_LOOKED_AT)
        return false;
    row.name = h->name;
    row.name_len = h->name_len;
    row.since_ms = h->held_ms;
    row.left_ms = h->left_ms;
    row.waiters = h->n_waiters;
    row.holders = h->n_holders;
    insert(l->view->holds, &l->view->n_holds, &row, is_longer);
    if (h->in_jeopardy)
        insert(l->view->in_jeopardy, &l->view->n_in_jeopardy, &row, ends_before);
    return true;
}

static void show_wait(struct looking *l, const struct request *r)
{
    struct http_row row = l->row;

    row.name = r->subject;
    row.name_len = r->subject_len;
    row.since_ms = l->now_ms - r->arrived_us / 1000;
    insert(l->view->waits, &l->view->n_waits, &row, is_longer);
}

static void show_client(struct session *session, void *arg)
{
    struct looking *l = arg;
    const struct request *r = NULL;

    l->row = (struct http_row){
        .client = session->id, .client_name = session->name, .peer = client_peer(session)};
    view_holds(session, l->now_ms, show_hold, l);
    for (int n = 0; n <= HTTP_ROWS && (r = session_waiting(session, r)) != NULL; n++)
        show_wait(l, r);
}

static struct http_row row_of_drop_in(const struct dropin_hold *h)
{
    return (struct http_row){.name = h->name,
                             .name_len = h->name_len,
                             .client = h->session_id,
                             .since_ms = h->held_ms,
                             .left_ms = h->left_ms,
                             .holders = 1,
                             .state = h->state,
                             .state_len = h->state_len,
                             .library = h->library};
}

static void show_drop_in(void *arg, const struct dropin_hold *h)
{
    struct looking *l = arg;
    const struct http_row row = row_of_drop_in(h);

    l->n_holds++;
    insert(l->view->holds, &l->view->n_holds, &row, is_longer);
}

/* Adds what commands of Redis hold. */
static void show_all_drop_in(struct server *s, struct looking *l)
{
    uint64_t cursor = 0;

    l->n_holds = 0;
    do {
        cursor = dropin_scan(s->dropin, cursor, show_drop_in, l, l->now_ms);
        l->n_holds++; /* a bucket may have none */
    } while (cursor && l->n_holds < HOLDS_LOOKED_AT);
    for (struct http_row *row = l->view->holds; row < l->view->holds + l->view->n_holds; row++)
        if (row->state)
            row->waiters = view_n_waiters(&s->broker, row->name, row->name_len);
}

/* ---- the page ---- */

static const char *notice_of(const struct server *s)
{
    static char text[160];

    text[0] = 0;
    (void)server_tls_warns(&s->conf, s->tls_expiry_s, text, sizeof text);
    return text;
}

/* Its gauges are the server's own and live until the next one. */
void server_fill_page(void *arg, struct http_view *view)
{
    static struct stats_gauges gauges;
    struct server *s = arg;
    int64_t now_ms = clock_ms();
    struct looking l = {.view = view, .now_ms = now_ms};
    int steps;

    server_update_ready(s, now_ms);
    server_update_status(s, now_ms);
    server_gauges(s, &gauges, now_ms);
    view->gauges = &gauges;
    view->id = s->id;
    view->status = s->status;
    view->notice = notice_of(s);
    view->now_ms = now_ms;
    view->n_jeopardy = view_levels(&s->broker).n_jeopardy;
    view->n_contended =
        (size_t)view_contended(&s->broker, now_ms, view->contended, HTTP_ROWS, &steps);
    client_each(s->clients, show_client, &l);
    show_all_drop_in(s, &l);
}

/* ---- a search ---- */

struct searching {
    struct server *server;
    struct http_search *found;
    struct glob *match;
    int64_t now_ms;
    int looked_at;
};

/* Makes the pattern: what is none itself may stand anywhere in a name. */
static struct glob *pattern_of(const char *text)
{
    struct buf pattern = {0};
    bool is_pattern = strpbrk(text, "*?[\\") != NULL;

    buf_printf(&pattern, is_pattern ? "%s" : "*%s*", text);
    struct glob *glob = glob_new(buf_head(&pattern), buf_len(&pattern));
    buf_fini(&pattern);
    return glob;
}

static void look_at_lock(void *arg, const char *name, size_t len)
{
    struct searching *l = arg;
    struct http_search *found = l->found;

    l->looked_at++;
    if (found->n_locks < HTTP_FOUND && glob_match(l->match, name, len) &&
        view_lock(&l->server->broker, name, len, l->now_ms, &found->locks[found->n_locks]))
        found->n_locks++;
}

static void look_at_drop_in(void *arg, const struct dropin_hold *h)
{
    struct searching *l = arg;
    struct http_search *found = l->found;

    l->looked_at++;
    if (found->n_drop_in == HTTP_FOUND || !glob_match(l->match, h->name, h->name_len))
        return;
    struct http_row *row = &found->drop_in[found->n_drop_in++];
    *row = row_of_drop_in(h);
    row->waiters = view_n_waiters(&l->server->broker, h->name, h->name_len);
}

/* Goes through one more bucket; first come the locks of LOCK, at even cursors, then the others. */
static uint64_t search_on(struct searching *l, uint64_t cursor)
{
    bool is_drop_in = cursor % 2 == 1;
    uint64_t next = is_drop_in
                        ? dropin_scan(l->server->dropin, cursor / 2, look_at_drop_in, l, l->now_ms)
                        : view_scan(&l->server->broker, cursor / 2, look_at_lock, l);

    l->looked_at++;
    return next ? next * 2 + is_drop_in : !is_drop_in;
}

void server_search_page(void *arg, struct http_search *found)
{
    struct searching l = {
        .server = arg, .found = found, .match = pattern_of(found->text), .now_ms = clock_ms()};

    do {
        found->cursor = search_on(&l, found->cursor);
    } while (found->cursor && l.looked_at < SEARCHED && found->n_locks < HTTP_FOUND / 2 &&
             found->n_drop_in < HTTP_FOUND / 2);
    glob_free(l.match);
}
