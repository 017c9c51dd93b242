/*
 * holdfast top: shows one screen of a broker, each second anew. A broker that goes away or stands
 * still is shown as such, above what was seen last, and tried again; keys are heard meanwhile.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/glob.h"
#include "cli/cli.h"
#include "cli/top_private.h"

enum { LOCKS_MAX = 200, ERROR_MAX = 1024, SILENT_MS = 1500, KEYS_MAX = 64 };

struct top {
    struct link link;
    struct top_wish wish;
    int64_t counts[TOP_RATES], counted_us; /* of the screen before; counted_us 0: none */
    double rates[TOP_RATES];
    struct buf frame; /* the last screen that was whole */
    int64_t heard_s;  /* when it came: wall clock, and ours; 0: never */
    int64_t asked_ms; /* the question that is under way */
    char error[ERROR_MAX];
};

/* ---- keys ---- */

/* Takes away the last character. */
static void shorten(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && ((unsigned char)text[--len] & 0xc0) == 0x80)
        ;
    text[len] = '\0';
}

static void hear_letter(struct top_wish *wish, unsigned char key)
{
    size_t len = strlen(wish->filter);
    if (key == '\n' || key == '\r')
        wish->types = false;
    else if (key == 127 || key == '\b')
        shorten(wish->filter);
    else if (key >= ' ' && len < TOP_FILTER_MAX)
        snprintf(wish->filter + len, 2, "%c", key);
}

static void hear_command(struct top_wish *wish, char key)
{
    static const char sort_keys[] = {
        [TOP_BY_WAITING] = 'w', [TOP_BY_HELD] = 'h', [TOP_BY_LEFT] = 'l', [TOP_BY_NAME] = 'n'};
    const char *sort = memchr(sort_keys, key, sizeof sort_keys);
    if (sort)
        wish->sort = (enum top_sort)(sort - sort_keys);
    else if (key == '?')
        wish->help = !wish->help;
    else if (key == '/')
        wish->types = true;
    else if (key == 'q' || key == 'Q')
        wish->quit = true;
}

void top_hear(struct top_wish *wish, const char *keys, size_t n)
{
    if (keys[0] == '\033') {
        if (n == 1) /* not an arrow or alike */
            wish->filter[0] = '\0', wish->types = wish->help = false;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (wish->types)
            hear_letter(wish, (unsigned char)keys[i]);
        else
            hear_command(wish, keys[i]);
    }
}

/* Waits for keys and does what they say. False: it is time for the next screen. */
static bool hear(struct top *t, int64_t ms)
{
    char keys[KEYS_MAX];
    int n = top_read_keys(keys, sizeof keys, ms);
    if (n < 0 || top_stop_signal())
        t->wish.quit = true;
    if (n > 0)
        top_hear(&t->wish, keys, (size_t)n);
    return n > 0;
}

/* ---- questions ---- */

static void show_silence(const struct top *t, const char *what)
{
    struct screen s = text_screen();
    struct buf out = {0};
    top_draw_silence(&out, &t->frame, what, t->heard_s, &s);
    top_show(&out, &s);
    buf_fini(&out);
}

/* While an answer is waited for. */
static bool while_waiting(void *arg)
{
    struct top *t = arg;
    char what[400];
    (void)hear(t, 0);
    if (clock_ms() - t->asked_ms > SILENT_MS) {
        snprintf(what, sizeof what, "%s stands still or is overloaded", t->link.url->shown);
        show_silence(t, what);
    }
    return !t->wish.quit;
}

/* Asks, and returns the reply; NULL: the link is closed and its error set. A refusal is such an
 * error unless it is `spared`: then it is a reply without elements. */
static redisReply *ask(struct top *t, int argc, const char *const *words, bool spared)
{
    t->asked_ms = clock_ms();
    link_send(&t->link, argc, words);
    redisReply *reply = ask_try_reply(&t->link);
    if (!reply || reply->type != REDIS_REPLY_ERROR || spared)
        return reply;
    snprintf(t->link.error, sizeof t->link.error, "%s: %.200s", words[0], reply->str);
    freeReplyObject(reply);
    link_close(&t->link);
    return NULL;
}

static void free_answers(struct top_answers *a)
{
    freeReplyObject(a->info); /* NULL is allowed */
    freeReplyObject(a->masters);
    freeReplyObject(a->contended);
    freeReplyObject(a->jeopardy);
    locks_fini(&a->locks);
}

/* -1: the link is closed and its error set. */
static int ask_locks(struct top *t, struct top_answers *a)
{
    const char *text = t->wish.filter;
    char glob[TOP_FILTER_MAX + 3];
    redisReply *error = NULL;
    snprintf(glob, sizeof glob, strpbrk(text, "*?[\\") ? "%s" : "*%s*", text);
    const struct locks_wish wish = {.glob = text[0] ? glob : NULL,
                                    .max = LOCKS_MAX,
                                    .details = true,
                                    .contended = a->contended};
    t->asked_ms = clock_ms();
    if (locks_get(&a->locks, &t->link, &wish, &error) == 0)
        return 0;
    if (error) {
        snprintf(t->link.error, sizeof t->link.error, "LOCKS: %.200s", error->str);
        freeReplyObject(error);
        link_close(&t->link);
    }
    return -1;
}

/* Likewise. */
static int ask_all(struct top *t, struct top_answers *a)
{
    *a = (struct top_answers){.info = ask(t, 1, (const char *[]){"INFO"}, false)};
    if (!a->info)
        return -1;
    a->masters = ask(t, 1, (const char *[]){"MASTERS"}, false);
    if (!a->masters)
        return -1;
    a->contended = ask(t, 3, (const char *[]){"CONTENDED", "COUNT", "100"}, true);
    if (!a->contended)
        return -1;
    a->jeopardy = ask(t, 3, (const char *[]){"JEOPARDY", "COUNT", "5"}, true);
    if (!a->jeopardy)
        return -1;
    return ask_locks(t, a);
}

static void count_rates(struct top *t, const char *info)
{
    int64_t now_us = clock_us();
    double seconds = (double)(now_us - t->counted_us) / 1e6;
    for (int i = 0; i < TOP_RATES; i++) {
        int64_t count = top_count(info, (enum top_rate)i);
        bool known = t->counted_us && count >= t->counts[i];
        t->rates[i] = known ? (double)(count - t->counts[i]) / seconds : 0;
        t->counts[i] = count;
    }
    t->counted_us = now_us;
}

/* Asks all and draws the frame. -1: the link is closed and its error set. */
static int take_screen(struct top *t, const struct screen *s)
{
    struct top_answers a;
    int result = ask_all(t, &a);
    if (result == 0) {
        count_rates(t, a.info->str);
        buf_fini(&t->frame);
        top_draw(&t->frame, &a, t->rates, t->link.url->shown, &t->wish, s);
        t->heard_s = time(NULL);
    }
    free_answers(&a);
    return result;
}

static int open_link(struct top *t)
{
    t->asked_ms = clock_ms();
    t->counted_us = 0;
    return ask_try_open(&t->link, cli_urls(), t->error, sizeof t->error);
}

static void run_live(struct top *t, int64_t delay_ms)
{
    top_take_terminal();
    ask_while(while_waiting, t);
    while (!t->wish.quit) {
        struct screen s = text_screen();
        bool is_open = link_is_open(&t->link) || open_link(t) == 0;
        if (is_open && take_screen(t, &s) == 0)
            top_show(&t->frame, &s);
        else if (!t->wish.quit)
            show_silence(t, is_open ? t->link.error : t->error);
        if (!t->wish.quit)
            (void)hear(t, delay_ms);
    }
}

int top_main(int argc, char **argv)
{
    struct screen screen = text_screen();
    struct top t = {0};
    int64_t delay_ms = 1000;
    const struct cli_option own[] = {{"delay", 'd', CLI_MS, &delay_ms, 0, 0}, {0}};
    cli_options(argc, argv, own, false);
    cli_no_words(argc, argv);
    if (delay_ms < 100)
        delay_ms = 100;
    ask_open(&t.link, cli_urls());
    if (screen.is_terminal)
        run_live(&t, delay_ms);
    else if (take_screen(&t, &screen) == 0)
        text_flush(&t.frame);
    else
        cli_die(STATUS_NO_BROKER, "%s", t.link.error);
    buf_fini(&t.frame);
    link_close(&t.link);
    return top_stop_signal() ? 128 + top_stop_signal() : STATUS_OK;
}
