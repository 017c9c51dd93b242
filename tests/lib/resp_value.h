#pragma once

/* What is behind the one whole value of RESP2 or RESP3 that begins at p, which is `end` when
 * nothing is. NULL: it is not whole, or not well-formed; a line with CR, LF or NUL in it is not,
 * nor is what is nested deeper than any reply of holdfastd. */
const char *resp_value_end(const char *p, const char *end);
