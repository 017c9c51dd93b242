/* What a character is, by table 3-7 of the Unicode standard, and which may be shown. */
#include "base/utf8.h"

#include <string.h>

size_t utf8_read(const char *text, size_t len, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t number = n <= 1 ? p[0] : p[0] & (0xffu >> (n + 1));

    if (n == 0 || n > len || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        number = number << 6 | (p[i] & 0x3f);
    }
    *c = number;
    return number < least[n] || (number >= 0xd800 && number < 0xe000) || number > 0x10ffff ? 0 : n;
}

/* The first and last of each range that may not be shown: without a shape or a width of their own,
 * or turning the direction, or breaking the line. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},      {0x61c, 0x61c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},    {0x2028, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},    {0xffa0, 0xffa0}, {0xfff0, 0xffff},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff},
};

bool utf8_is_plain(uint32_t c)
{
    if (c < 0x7f)
        return c >= 0x20;
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0] && c >= hidden[i].first; i++)
        if (c <= hidden[i].last)
            return false;
    return true;
}

size_t utf8_show(const char *text, size_t len, char shown[UTF8_SHOWN_MAX], size_t *n)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t c;
    size_t taken = utf8_read(text, len, &c);

    *n = 0;
    if (taken > 0 && utf8_is_plain(c)) {
        memcpy(shown, text, taken);
        *n = taken;
        return taken;
    }
    taken = taken > 0 ? taken : 1;
    for (size_t i = 0; i < taken; i++) {
        unsigned char byte = (unsigned char)text[i];
        shown[(*n)++] = '\\';
        shown[(*n)++] = 'x';
        shown[(*n)++] = digits[byte >> 4];
        shown[(*n)++] = digits[byte & 15];
    }
    return taken;
}
