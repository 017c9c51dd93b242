/* What the files of http share. For nobody else. */
#ifndef HOLDFAST_HTTP_PRIVATE_H
#define HOLDFAST_HTTP_PRIVATE_H

#include "http.h"

/* ---- http_style.c: the fixed parts of the status page ---- */
extern const char http_style[], http_live_script[];

/* ---- http_table.c: its lists ---- */
void http_put_masters(struct buf *, const struct http_view *);
void http_put_waits(struct buf *, const struct http_view *);
void http_put_holds(struct buf *, const struct http_view *);
void http_put_lost(struct buf *, const struct http_view *);
void http_put_times(struct buf *);

/* ---- http_text.c: numbers and texts for people ---- */
/* "850 us", "1.2 ms", "340 ms", "2.4 s", "3 min 12 s", "2 h 5 min", "3 d 4 h". */
void http_put_us(struct buf *, int64_t us);
void http_put_ms(struct buf *, int64_t ms);
/* "1 234 567", by narrow spaces. */
void http_put_count(struct buf *, uint64_t n);
#endif
