/*
 * One line a node, words with blanks between:
 *
 *     <id> <host>:<port>@<port of the bus>[,<name>...] <flag,flag> <master or -> <ping> <pong>
 *         <epoch> <state of the link> <slot, slot-slot or [slot that moves]>...
 */
#include "redis/nodes.h"

#include <string.h>

#include "base/util.h"

enum { ID, ADDRESS, FLAGS, WORDS = 8 }; /* of those before the slots */

struct word {
    const char *text;
    size_t len;
};

/* Takes the next word of a line off it; its length is 0 at the end. */
static struct word take_node_word(const char **at, const char *end)
{
    struct word w = {.text = *at};
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));

    w.len = (size_t)((blank ? blank : end) - *at);
    *at = blank ? blank + 1 : end;
    return w;
}

/* Tells whether one of the words between commas is this one. */
static bool has_flag(const struct word *w, const char *flag)
{
    size_t len = strlen(flag);
    const char *at = w->text, *end = w->text + w->len;

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *next = comma ? comma : end;
        if ((size_t)(next - at) == len && memcmp(at, flag, len) == 0)
            return true;
        at = next + 1;
    }
    return false;
}

/* An address without a host is where the node was asked that says so: it does not know another one.
 * Port 0: it is not known. */
static int read_node_address(const struct word *w, const struct naming_address *asked,
                             struct naming_address *out, bool *is_guess)
{
    const char *bus = memchr(w->text, '@', w->len), *colon = NULL;
    int64_t port;

    for (const char *p = w->text; bus && p < bus; p++)
        if (*p == ':')
            colon = p;
    if (!colon || colon - w->text > NAMING_HOST_MAX ||
        util_parse_int(colon + 1, (size_t)(bus - colon - 1), 0, 65535, &port) != 0)
        return -1;
    *out = (struct naming_address){.port = (int)port};
    memcpy(out->host, w->text, (size_t)(colon - w->text));
    *is_guess = !out->host[0];
    if (*is_guess)
        memcpy(out->host, asked->host, sizeof out->host);
    return 0;
}

/* Takes "5", "5-9", or "[5->-id]", which is no slot that it has. */
static int take_slots(struct node *node, const struct word *w)
{
    const char *dash = memchr(w->text, '-', w->len);
    int64_t first, last;

    if (w->len > 0 && w->text[0] == '[')
        return 0;
    size_t first_len = dash ? (size_t)(dash - w->text) : w->len;
    if (util_parse_int(w->text, first_len, 0, CLUSTER_SLOTS - 1, &first) != 0)
        return -1;
    last = first;
    if (dash && util_parse_int(dash + 1, w->len - first_len - 1, first, CLUSTER_SLOTS - 1, &last))
        return -1;
    node->has_slots = true;
    for (int p = 0; p < partitions(); p++)
        if (partition_slot(p) >= first && partition_slot(p) <= last)
            node->partitions |= UINT64_C(1) << p;
    return 0;
}

/* Reads one line. Returns 1 for the node that says so, 0 for another one, -1 for no line of this
 * kind. */
static int read_node(struct node *node, const char *line, const char *end,
                     const struct naming_address *asked)
{
    struct word words[WORDS];

    memset(node, 0, sizeof *node);
    for (int i = 0; i < WORDS; i++) {
        words[i] = take_node_word(&line, end);
        if (words[i].len == 0)
            return -1;
    }
    if (words[ID].len != NODES_ID_LEN ||
        read_node_address(&words[ADDRESS], asked, &node->address, &node->is_guess) != 0)
        return -1;
    memcpy(node->id, words[ID].text, NODES_ID_LEN);
    while (line < end) {
        struct word slots = take_node_word(&line, end);
        if (take_slots(node, &slots) != 0)
            return -1;
    }
    if (has_flag(&words[FLAGS], "noaddr"))
        node->address.port = 0;
    if (!has_flag(&words[FLAGS], "master")) {
        node->has_slots = false;
        node->partitions = 0;
    }
    return has_flag(&words[FLAGS], "myself");
}

int nodes_read(struct nodes *nodes, const char *text, size_t len,
               const struct naming_address *asked, const char **why)
{
    const char *end = text + len;

    nodes->n = 0;
    nodes->myself = -1;
    for (const char *line = text, *next; line < end; line = next + 1) {
        struct node node;
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        int is_myself = read_node(&node, line, next, asked);
        *why = "it does not answer as a node of a Redis Cluster does";
        if (is_myself < 0 || (is_myself && nodes->myself >= 0))
            return -1;
        if (!is_myself && !node.has_slots)
            continue;
        *why = "its Redis Cluster has more masters than a broker takes";
        if (nodes->n == NODES_MAX)
            return -1;
        if (is_myself)
            nodes->myself = nodes->n;
        nodes->v[nodes->n++] = node;
    }
    *why = "it does not say which node it is";
    return nodes->myself < 0 ? -1 : 0;
}
