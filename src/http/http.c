/*
 * Answers requests. Sockets and connections are those of conn.c; the hooks give what the answers
 * say.
 */
#include "http/http.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/page_files.h"
#include "http/private.h"
#include "stats/stats.h"

enum {
    SILENCE_S = 5, /* evhttp ends a connection after this time without a byte */
    FIND_MAX = 256 /* bytes of what is looked for */
};

static const char policy[] =
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* What the curves are made from, as it was a second ago. */
struct counted {
    uint64_t granted, commands, refused, timed_out, errors;
};

struct http {
    struct evhttp *evhttp;
    struct http_conns conns;
    struct http_hooks hooks;
    struct http_sample samples[HTTP_SAMPLES]; /* a ring; number n stands in [n % HTTP_SAMPLES] */
    uint64_t n_samples;                       /* the number of the next */
    struct counted last;
};

/* ---- answers ---- */

struct answer {
    struct http *http;
    const char *query; /* NULL: none */
    const char *host;  /* the header; NULL: none */
    const char *type;
    struct buf body;
    int status;
};

static bool is_verbose(const char *query)
{
    while (query) {
        if (strncmp(query, "verbose", 7) == 0 && strchr("&=", query[7]))
            return true;
        query = strchr(query, '&');
        query += query != NULL;
    }
    return false;
}

static void answer_metrics(struct answer *a)
{
    a->http->hooks.metrics(a->http->hooks.arg, &a->body);
}

/* Says nothing more than that there is an answer, which proves that the loop turns. */
static void answer_livez(struct answer *a)
{
    buf_printf(&a->body, is_verbose(a->query) ? "[+]loop: turns\nlivez check passed\n" : "ok\n");
}

static void answer_readyz(struct answer *a)
{
    if (!a->http->hooks.ready(a->http->hooks.arg, &a->body, is_verbose(a->query)))
        a->status = 503;
}

static void refuse_host(struct answer *a)
{
    size_t len = a->host[0] == '[' ? strlen(a->host) : strcspn(a->host, ":");

    a->status = 421;
    buf_printf(&a->body, "This broker is not known as '");
    http_show(&a->body, a->host, len < 256 ? len : 256);
    buf_printf(&a->body, "'. If it should be, add that name to hosts in section [http] of its "
                         "configuration (holdfast.ini(5)); else use its address.\n");
}

static void answer_status(struct answer *a)
{
    struct http_view *view = util_alloc(sizeof *view);
    const struct http *h = a->http;
    uint64_t n = h->n_samples < HTTP_SAMPLES ? h->n_samples : HTTP_SAMPLES;

    h->hooks.view(h->hooks.arg, view);
    for (uint64_t i = 0; i < n; i++)
        view->samples[i] = h->samples[(h->n_samples - n + i) % HTTP_SAMPLES];
    view->n_samples = (size_t)n;
    http_status(&a->body, view);
    free(view);
}

/* Takes cursor=N and find=TEXT from the query; false: there is no text, or it is too long. */
static bool read_search(const char *query, struct evkeyvalq *words, struct http_search *search)
{
    const char *cursor;
    int64_t n = 0;

    if (!query || evhttp_parse_query_str(query, words) != 0)
        return false;
    search->text = evhttp_find_header(words, "find");
    cursor = evhttp_find_header(words, "cursor");
    if (cursor && util_parse_int(cursor, strlen(cursor), 0, INT64_MAX, &n) != 0)
        return false;
    search->cursor = (uint64_t)n;
    return search->text && search->text[0] && strlen(search->text) <= FIND_MAX;
}

static void answer_locks(struct answer *a)
{
    struct http_search *search = util_alloc(sizeof *search);
    struct evkeyvalq words;

    TAILQ_INIT(&words);
    if (read_search(a->query, &words, search)) {
        a->type = "application/json";
        a->http->hooks.search(a->http->hooks.arg, search);
        http_found(&a->body, search);
    } else {
        a->status = 400;
        buf_printf(&a->body, "say what to look for: locks.json?find=TEXT, of %d bytes at most\n",
                   FIND_MAX);
    }
    evhttp_clear_headers(&words);
    free(search);
}

static const struct route {
    const char *path;
    void (*make)(struct answer *);
    const char *type; /* NULL: plain text */
    const char *text; /* without make() */
    bool is_guarded;  /* for hosts of ours only */
} routes[] = {
    {"/", NULL, "text/html; charset=utf-8", http_page_html, true},
    {"/style.css", NULL, "text/css; charset=utf-8", http_style_css, false},
    {"/page.js", NULL, "text/javascript; charset=utf-8", http_page_js, false},
    {"/status.json", answer_status, "application/json", NULL, true},
    {"/locks.json", answer_locks, NULL, NULL, true},
    {"/metrics", answer_metrics, "text/plain; version=0.0.4; charset=utf-8", NULL, false},
    {"/livez", answer_livez, NULL, NULL, false},
    {"/readyz", answer_readyz, NULL, NULL, false},
    {"/-/healthy", answer_livez, NULL, NULL, false},
    {"/-/ready", answer_readyz, NULL, NULL, false},
};

static void follow_route(struct answer *a, const struct route *route)
{
    if (route->is_guarded && !http_host_fits(a->host, a->http->hooks.hosts(a->http->hooks.arg))) {
        refuse_host(a);
        return;
    }
    if (route->type)
        a->type = route->type;
    if (route->make)
        route->make(a);
    else
        buf_append(&a->body, route->text, strlen(route->text));
}

static void make_answer(struct answer *a, const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(path, routes[i].path) == 0) {
            follow_route(a, &routes[i]);
            return;
        }
    }
    a->status = 404;
    buf_printf(&a->body, "not found; there are");
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        buf_printf(&a->body, " %s", routes[i].path);
    buf_printf(&a->body, "\n");
}

/* Sends the answer, without its body to HEAD: evhttp would send it. */
static void send_answer(struct evhttp_request *req, const struct answer *a, bool with_body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct evbuffer *body = evbuffer_new();
    char length[24];

    if (!body)
        util_die("cannot make a buffer");
    if (with_body)
        evbuffer_add(body, buf_head(&a->body), buf_len(&a->body));
    snprintf(length, sizeof length, "%zu", buf_len(&a->body));
    evhttp_add_header(headers, "Content-Type", a->type);
    evhttp_add_header(headers, "Content-Length", length);
    evhttp_add_header(headers, "Content-Security-Policy", policy);
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "Connection", "close");
    if (a->status == 405)
        evhttp_add_header(headers, "Allow", "GET, HEAD");
    /* NULL: libevent's words for the status; it has none of its own for 421 */
    evhttp_send_reply(req, a->status, a->status == 421 ? "Misdirected Request" : NULL, body);
    evbuffer_free(body);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct answer a = {.http = arg, .type = "text/plain; charset=utf-8", .status = 200};
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    bool odd = strncmp(evhttp_request_get_uri(req), "//", 2) == 0; /* the path is a host then */
    enum evhttp_cmd_type method = evhttp_request_get_command(req);

    stats.http_requests++;
    if (http_has_hosts(evhttp_request_get_input_headers(req))) {
        a.status = 400;
        buf_printf(&a.body, "more than one Host: which is meant?\n");
    } else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
        a.status = 405;
        buf_printf(&a.body, "only GET and HEAD: nothing can be changed here\n");
    } else {
        a.host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");
        a.query = uri ? evhttp_uri_get_query(uri) : NULL;
        make_answer(&a, odd ? "//" : path && *path ? path : "/");
    }
    send_answer(req, &a, method != EVHTTP_REQ_HEAD);
    buf_fini(&a.body);
}

/* ---- the curves ---- */

/* Returns how much a counter has grown; CONFIG RESETSTAT begins at 0 again. */
static uint32_t grown(uint64_t last, uint64_t now)
{
    uint64_t more = now >= last ? now - last : now;

    return more < UINT32_MAX ? (uint32_t)more : UINT32_MAX;
}

static struct counted count_all(void)
{
    return (struct counted){.granted = stats.acquires_granted,
                            .commands = stats.total_commands_processed,
                            .refused = stats.acquires_busy,
                            .timed_out = stats.acquires_timeout,
                            .errors = stats_error_count()};
}

void http_second(struct http *h)
{
    if (!h)
        return;
    struct http_sample *s = &h->samples[h->n_samples++ % HTTP_SAMPLES];
    struct counted now = count_all(), *last = &h->last;
    s->granted = grown(last->granted, now.granted);
    s->commands = grown(last->commands, now.commands);
    s->refused = grown(last->refused, now.refused);
    s->timed_out = grown(last->timed_out, now.timed_out);
    s->errors = grown(last->errors, now.errors);
    *last = now;
    h->hooks.levels(h->hooks.arg, &s->held, &s->waiting);
}

/* ---- life ---- */

struct http *http_new(struct event_base *base, const struct http_hooks *hooks)
{
    struct http *h = util_alloc(sizeof *h);

    h->hooks = *hooks;
    h->last = count_all();
    h->evhttp = evhttp_new(base);
    if (!h->evhttp)
        util_die("cannot make an HTTP server");
    http_conns_init(&h->conns, base, h->evhttp);
    evhttp_set_gencb(h->evhttp, on_request, h);
    evhttp_set_max_headers_size(h->evhttp, HTTP_HEADERS_MAX);
    evhttp_set_max_body_size(h->evhttp, HTTP_BODY_MAX);
    evhttp_set_timeout(h->evhttp, SILENCE_S);
    /* Those that are not allowed get an answer too. */
    evhttp_set_allowed_methods(h->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                              EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                              EVHTTP_REQ_PATCH);
    return h;
}

void http_listen(struct http *h, int fd)
{
    http_conns_listen(&h->conns, fd);
}

void http_free(struct http *h)
{
    if (!h)
        return;
    evhttp_free(h->evhttp); /* with its sockets, and done with all connections */
    http_conns_fini(&h->conns);
    free(h);
}
