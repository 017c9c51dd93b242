/* Any bytes as a request over HTTP, as the names that strangers give to locks, clients and masters,
 * and as figures. The first line of the input is the request: a digit for the method, then the URI;
 * the rest are texts, one a line, and eight bytes of each of them a number. Other bits of the digit
 * say how many seconds there have been and how many locks were lost: mostly few, as all that there
 * can be would be most of the time. evhttp itself is not here: its functions that would send are
 * our own. Besides not crashing:
 * - each request is answered once, with one of our statuses, a length, and nothing else to HEAD;
 * - whatever the texts are, status.json has the shape that it has with harmless ones;
 * - each line of the metrics is one: a comment, or a name, labels in whole quotes, and a number. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "http/http.h"
#include "lock/lock.h"
#include "stats/gauges.h"
#include "stats/lostlog.h"
#include "stats/stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXTS_MAX = 64, TEXT_MAX = 600 };

static void (*handler)(struct evhttp_request *, void *);
static void *handler_arg;
static int answers, status;
static struct buf body;

static const uint8_t *input;
static size_t input_len;
static bool harmless; /* the texts are letters, as many as there were bytes */
static char texts[TEXTS_MAX][TEXT_MAX + 1];
static size_t n_texts;
static int64_t last_number;
static size_t n_lost, n_seconds;
static bool is_json; /* by its type */

#define require(ok) ((ok) ? (void)0 : not_so(#ok, __LINE__))

static void not_so(const char *what, int line)
{
    fprintf(stderr, "line %d: %s does not hold\n", line, what);
    abort();
}

/* ---- in the place of evhttp's ---- */

void evhttp_set_gencb(struct evhttp *http, void (*cb)(struct evhttp_request *, void *), void *arg)
{
    (void)http;
    handler = cb;
    handler_arg = arg;
}

static void check_headers(struct evhttp_request *req, size_t len, bool with_body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    const char *length = evhttp_find_header(headers, "Content-Length");
    const char *type = evhttp_find_header(headers, "Content-Type");

    require(length && type && evhttp_find_header(headers, "Content-Security-Policy") &&
            strcmp(evhttp_find_header(headers, "Connection"), "close") == 0);
    require(with_body ? (size_t)atoll(length) == len : len == 0);
    is_json = strcmp(type, "application/json") == 0;
}

void evhttp_send_reply(struct evhttp_request *req, int code, const char *reason,
                       struct evbuffer *text)
{
    size_t len = text ? evbuffer_get_length(text) : 0;

    answers++;
    status = code;
    require(!reason && (code == 200 || code == 400 || code == 404 || code == 405 || code == 503));
    check_headers(req, len, req->type != EVHTTP_REQ_HEAD);
    buf_consume(&body, buf_len(&body));
    if (len > 0) {
        evbuffer_copyout(text, buf_reserve(&body, len), (ev_ssize_t)len);
        buf_commit(&body, len);
    }
}

/* ---- in the place of lostlog's, which never forgets ---- */

size_t __wrap_lostlog_count(void); /* the linker's --wrap */

size_t __wrap_lostlog_count(void)
{
    return n_lost;
}

/* ---- texts and numbers from the input ---- */

/* NUL is the end of a text everywhere but in the names of locks, which are given by length. */
static const char *next_text(size_t *len)
{
    const uint8_t *lf = input_len > 0 ? memchr(input, '\n', input_len) : NULL;
    size_t n = lf ? (size_t)(lf - input) : input_len, kept = n < TEXT_MAX ? n : TEXT_MAX;
    char *text = texts[n_texts++ % TEXTS_MAX];

    if (kept > 0)
        memcpy(text, input, kept);
    text[kept] = '\0';
    if (kept >= 8)
        memcpy(&last_number, text, 8);
    if (!len)
        kept = strlen(text);
    if (harmless)
        memset(text, 'x', kept);
    input += n + (lf != NULL);
    input_len -= n + (lf != NULL);
    if (len)
        *len = kept;
    return text;
}

static struct http_row next_row(void)
{
    struct http_row row = {0};

    row.name = next_text(&row.name_len);
    row.peer = next_text(NULL);
    row.client_name = next_text(NULL);
    row.client = (uint64_t)last_number;
    row.since_ms = row.left_ms = last_number;
    row.waiters = (uint32_t)last_number;
    return row;
}

static struct view_lock next_lock(void)
{
    struct view_lock l = {.n_waiter_groups = 2, .n_holder_groups = 1};

    l.name = next_text(&l.name_len);
    l.waiters[0].client = next_text(NULL);
    l.holders[0] = (struct view_group){.client = next_text(NULL), .kind = LOCK_SHARED};
    l.n_waiters = l.n_holders = (uint32_t)last_number;
    l.held_ms = l.left_ms = l.waited_ms = last_number;
    return l;
}

static struct stats_gauges gauges;

static void fill_gauges(void)
{
    gauges = (struct stats_gauges){.masters_len = 2};
    for (int i = 0; i < 2; i++) {
        gauges.masters[i] = (struct stats_master){.name = next_text(NULL),
                                                  .address = next_text(NULL),
                                                  .state = next_text(NULL),
                                                  .error = next_text(NULL),
                                                  .quarantine_remaining_ms = last_number & 0xffff,
                                                  .up = last_number & 1,
                                                  .clock_offset_ms = last_number,
                                                  .requests_ok = (uint64_t)last_number};
    }
    gauges.peers_len = 1;
    gauges.peers[0] = (struct stats_peer){.address = next_text(NULL), .state = "silent"};
    gauges.run_id = next_text(NULL);
    gauges.ready = last_number & 1;
    gauges.draining = last_number & 2;
    gauges.paused = last_number & 4;
    gauges.uptime_ms = gauges.memory_used = gauges.locks_held_exclusive = last_number;
    gauges.lease_min_remaining_ms = last_number;
}

/* ---- hooks ---- */

static void hook_metrics(void *arg, struct buf *out)
{
    (void)arg;
    fill_gauges();
    stats_metrics(out, &gauges);
}

static bool hook_ready(void *arg, struct buf *out, bool verbose)
{
    (void)arg;
    const char *text = next_text(NULL);
    buf_printf(out, verbose ? "[+]%s\n" : "%s\n", text);
    return last_number & 1;
}

static void hook_levels(void *arg, uint32_t *held, uint32_t *waiting)
{
    (void)arg;
    *held = *waiting = (uint32_t)last_number;
}

static void hook_view(void *arg, struct http_view *view)
{
    (void)arg;
    fill_gauges();
    view->gauges = &gauges;
    view->id = next_text(NULL);
    view->status = next_text(NULL);
    view->now_ms = last_number;
    view->n_holds = view->n_waits = (size_t)(last_number & 3);
    for (size_t i = 0; i < view->n_holds; i++) {
        view->holds[i] = next_row();
        view->waits[i] = next_row();
    }
    view->n_contended = view->n_in_jeopardy = 1;
    view->contended[0] = next_lock();
    view->in_jeopardy[0] = next_row();
}

static void hook_search(void *arg, struct http_search *search)
{
    (void)arg;
    require(search->text[0]);
    search->n_locks = search->n_drop_in = 1;
    search->locks[0] = next_lock();
    search->drop_in[0] = next_row();
    search->drop_in[0].library = search->drop_in[0].state =
        next_text(&search->drop_in[0].state_len);
}

static const char *hosts(void *arg)
{
    (void)arg;
    return "fuzz.example *";
}

static const struct http_hooks hooks = {.hosts = hosts,
                                        .metrics = hook_metrics,
                                        .ready = hook_ready,
                                        .levels = hook_levels,
                                        .view = hook_view,
                                        .search = hook_search};

/* ---- what comes out ---- */

/* Texts and numbers may differ. */
static void check_same_shape(json_t *a, json_t *b)
{
    const char *key;
    json_t *value;

    require(json_typeof(a) == json_typeof(b) || (json_is_boolean(a) && json_is_boolean(b)));
    require(json_object_size(a) == json_object_size(b) && json_array_size(a) == json_array_size(b));
    for (size_t i = 0; i < json_array_size(a); i++)
        check_same_shape(json_array_get(a, i), json_array_get(b, i));
    json_object_foreach(a, key, value)
    {
        require(json_object_get(b, key) != NULL);
        check_same_shape(value, json_object_get(b, key));
    }
}

static json_t *read_json(const struct buf *text)
{
    json_t *json = json_loadb(buf_head(text), buf_len(text), JSON_REJECT_DUPLICATES, NULL);

    require(json != NULL);
    return json;
}

static void check_quotes(const char *line, size_t len)
{
    bool inside = false;

    for (size_t i = 0; i < len; i++) {
        if (inside && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            inside = !inside;
    }
    require(!inside);
}

static void check_metrics(const char *p, size_t len)
{
    const char *end = p + len;

    require(len > 0 && end[-1] == '\n');
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        require(*p == '#' || strncmp(p, "holdfast_", 9) == 0 || strncmp(p, "process_", 8) == 0);
        if (*p != '#') {
            check_quotes(p, (size_t)(lf - p));
            require(memchr("0123456789", lf[-1], 10) != NULL);
        }
        p = lf + 1;
    }
}

/* ---- one request ---- */

static enum evhttp_cmd_type method_of(char digit)
{
    static const enum evhttp_cmd_type methods[] = {
        EVHTTP_REQ_GET,    EVHTTP_REQ_HEAD,    EVHTTP_REQ_POST,  EVHTTP_REQ_PUT,
        EVHTTP_REQ_DELETE, EVHTTP_REQ_OPTIONS, EVHTTP_REQ_TRACE, EVHTTP_REQ_PATCH};

    return methods[(unsigned char)digit % 8];
}

/* As evhttp makes it of a request line. False: it would have refused it itself. */
static bool ask(char digit, const char *uri)
{
    struct evhttp_uri *parsed = evhttp_uri_parse_with_flags(uri, EVHTTP_URI_NONCONFORMANT);

    if (!parsed)
        return false;
    struct evhttp_request *req = evhttp_request_new(NULL, NULL);
    require(req != NULL);
    req->kind = EVHTTP_REQUEST;
    req->type = method_of(digit);
    req->uri = strdup(uri);
    req->uri_elems = parsed;
    answers = 0;
    handler(req, handler_arg);
    require(answers == 1);
    evhttp_request_free(req);
    return true;
}

static void start(const uint8_t *data, size_t size, bool plain)
{
    input = data;
    input_len = size;
    harmless = plain;
    n_texts = 0;
    last_number = 0;
}

static void note_lost(void)
{
    static const struct lostlog_entry entry = {.reason = "gone", .client = 1};
    size_t len;

    for (size_t i = 0; i < n_lost; i++) {
        const char *name = next_text(&len);
        lostlog_add(&entry, name, len);
    }
}

static void set_amounts(char digit)
{
    static const size_t few[] = {0, 1, 3, LOSTLOG_LEN};
    unsigned bits = (unsigned char)digit >> 3;

    n_lost = few[bits & 3];
    n_seconds = bits == 31 ? HTTP_SAMPLES + 3 : bits & 3;
}

/* A new one for each input: what one finds must not depend on those before it. */
static struct http *begin(void)
{
    static struct event_base *base;
    int64_t number = last_number;

    if (!base)
        base = event_base_new();
    stats_reset();
    struct http *h = http_new(base, &hooks);
    require(h != NULL);
    for (size_t n = n_seconds; n > 0; n--) {
        stats.acquires_granted += (uint64_t)last_number;
        stats.total_commands_processed += n;
        http_second(h);
        last_number /= 2;
    }
    last_number = number;
    return h;
}

static void check_status(const uint8_t *data, size_t size, char digit, const char *uri)
{
    json_t *first = read_json(&body);

    start(data, size, true);
    note_lost();
    require(ask(digit, uri));
    json_t *second = read_json(&body);
    check_same_shape(first, second);
    json_decref(first);
    json_decref(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *lf = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t len = lf ? (size_t)(lf - data) : size;
    char uri[TEXT_MAX + 1] = "/", digit = len > 0 ? (char)*data : '0';

    if (len > 1)
        memcpy(uri, data + 1, len - 1 < TEXT_MAX ? len - 1 : TEXT_MAX);
    data += lf ? len + 1 : len;
    size -= lf ? len + 1 : len;
    set_amounts(digit);
    start(data, size, false);
    note_lost();
    struct http *h = begin();
    if (ask(digit, uri) && status == 200 && buf_len(&body) > 0) {
        if (is_json)
            check_status(data, size, digit, uri);
        else if (strncmp(buf_head(&body), "# HELP", 6) == 0)
            check_metrics(buf_head(&body), buf_len(&body));
    }
    http_free(h);
    return 0;
}
