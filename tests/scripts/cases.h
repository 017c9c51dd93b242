#ifndef HOLDFAST_CASES_H
#define HOLDFAST_CASES_H
/*
 * What the scripts answer, as one table for the real ones and for their model. A step is one line:
 *
 *   script names deadline args... -> reply     names joined by commas; deadline: "-", "late" or
 * "soon"; a reply without its time; ~n: n or up to 250 less; an error by its first word; [..]: an
 * item of peek STATE name -> owner op token count seq     what a person sees there; "free",
 * "foreign" LINE name -> tickets                       and "turn:" with the one whose turn it is
 *   GONE name op -> 1 or 0                     is there a tombstone
 *   SET name, FLUSHALL, SLEEP ms, LISTEN broker
 *
 * Each case begins with an empty server that is active: joined without quarantine, unless it begins
 * with NOJOIN. "RUN" in a line is the run id.
 */
struct script_case {
    const char *name;
    const char *steps[24];
};

/* clang-format off */
static const struct script_case script_cases[] = {
    {"acquire a free lock", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "STATE n -> X x.1 50 1 0",
        "acquire n - x.1 - 0 X 1000 90 7 - keep -> 1 50 0",
        "acquire n - y.1 - 0 Y 1000 90 7 - keep -> 0 ~1000 0",
        "acquire n - x.2 - 0 X 1000 90 7 - keep -> 2 ~1000 0",
        "STATE n -> X x.1 50 1 0"}},
    {"tokens grow, by bucket", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "release n - x.1 0 - -> 1",
        "acquire n - x.2 - 0 X 1000 10 7 - keep -> 1 51 0",
        "acquire m - x.3 - 0 X 1000 10 7 - keep -> 1 52 0",
        "acquire k - x.4 - 0 X 1000 10 8 - keep -> 1 10 0",
        "acquire j - x.5 - 0 X 1000 900 8 - keep -> 1 900 0"}},
    {"several items, one bucket", {
        "acquire a,b,c - x.1 - 0 X 1000 5 7 - keep x.2 - 0 X 1000 5 7 - keep x.3 - 0 X 1000 5 8 - keep -> 1 5 0 1 6 0 1 5 0",
        "acquire b,d - y.1 - 0 Y 1000 5 7 - keep y.2 - 0 Y 1000 5 7 - keep -> 0 ~1000 0 1 7 0",
        "release a,b,d - x.1 0 - x.9 0 - y.2 0 - -> 1 -1 1"}},
    {"it expires", {
        "acquire n - x.1 - 0 X 60 50 7 - keep -> 1 50 0",
        "SLEEP 120",
        "STATE n -> free",
        "renew n - x.1 1000 1 0 -> 0",
        "commit n - x.1 99 7 -> 0 0",
        "acquire n - y.1 - 0 Y 1000 5 7 - keep -> 1 51 0"}},
    {"late", {
        "acquire n late x.1 - 0 X 1000 50 7 - keep -> LATE",
        "acquire n soon x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "commit n late x.1 60 7 -> LATE",
        "renew n late x.1 1000 1 0 -> LATE",
        "takeover n late x.2 100 X 1000 5 7 -> LATE",
        "plant m late x.1 X 50 1 0 1000 7 -> LATE",
        "release n late x.1 0 - -> 1"}},
    {"hand-over by prev", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "acquire n - y.1 z.9 500 Y 1000 5 7 - keep -> 0 ~1000 0",
        "acquire n - y.1 x.1 500 Y 1000 5 7 - keep -> 1 51 0",
        "GONE n x.1 -> 1",
        "STATE n -> Y y.1 51 1 0",
        "acquire n - x.1 - 0 X 1000 5 7 - keep -> 0 ~1000 0",
        "release n - y.1 0 - -> 1",
        "acquire n - x.1 - 0 X 1000 5 7 - keep -> -1 0 0",
        "acquire n - z.1 gone.1 500 Z 1000 5 7 - keep -> 1 52 0",
        "GONE n gone.1 -> 0",
        "acquire n - w.1 z.1 0 W 1000 5 7 - keep -> 1 53 0",
        "GONE n z.1 -> 0"}},
    {"release remembers", {
        "release n - x.1 300 - -> 0",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> -1 0 0",
        "plant n - x.1 X 50 1 0 1000 7 -> 0",
        "STATE n -> free",
        "SLEEP 400",
        "GONE n x.1 -> 0",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "release n - y.1 300 - -> -1",
        "STATE n -> X x.1 50 1 0",
        "release n - x.1 300 - -> 1",
        "release n - x.1 300 - -> 1",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> -1 0 0"}},
    {"commit", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "commit n - x.1 60 7 -> 1 60",
        "commit n - x.1 60 7 -> 1 60",
        "commit n - x.1 55 7 -> 2 60",
        "commit n - y.1 99 7 -> 0 0",
        "STATE n -> X x.1 60 1 0",
        "release n - x.1 0 - -> 1",
        "acquire n - y.1 - 0 Y 1000 5 7 - keep -> 1 61 0",
        "commit none - x.1 60 7 -> 0 0"}},
    {"renew", {
        "acquire n - x.1 - 0 X 100 50 7 - keep -> 1 50 0",
        "renew n - x.1 1000 2 3 -> 1",
        "STATE n -> X x.1 50 2 3",
        "renew n - x.1 0 9 2 -> 1",
        "renew n - x.1 0 9 3 -> 1",
        "STATE n -> X x.1 50 2 3",
        "renew n - x.1 0 1 4 -> 1",
        "STATE n -> X x.1 50 1 4",
        "SLEEP 200",
        "STATE n -> X x.1 50 1 4",
        "renew n - y.1 1000 9 9 -> -1",
        "renew none - x.1 1000 9 9 -> 0",
        "STATE none -> free"}},
    {"plant", {
        "plant n - x.1 X 50 3 4 1000 7 -> 1",
        "STATE n -> X x.1 50 3 4",
        "plant n - x.1 X 50 1 9 1000 7 -> 1",
        "STATE n -> X x.1 50 3 4",
        "plant n - y.1 Y 60 1 0 1000 7 -> 0",
        "acquire m - y.1 - 0 Y 1000 5 7 - keep -> 1 51 0",
        "plant k - z.1 Z 5 1 0 1000 7 -> 1",
        "acquire j - y.2 - 0 Y 1000 5 7 - keep -> 1 52 0"}},
    {"plant twice", {
        "plant a,a - x.1 X 50 1 0 1000 7 y.1 Y 60 1 0 1000 7 -> 1 0",
        "STATE a -> X x.1 50 1 0"}},
    {"somebody else has written there", {
        "SET n",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> -2 0 0",
        "commit n - x.1 60 7 -> 0 0",
        "plant n - x.1 X 50 1 0 1000 7 -> 0",
        "release n - x.1 300 - -> -1",
        "peek n - -> []",
        "STATE n -> foreign"}},
    {"peek", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "renew n - x.1 0 4 1 -> 1",
        "peek n,m - -> [~1000 x.1 X 50 4] []"}},
    {"line and turns", {
        "LISTEN b1", "LISTEN b2",
        "acquire n - b1.1 - 0 X 1000 50 7 b1 tail -> 1 50 0",
        "acquire n - b2.1 - 0 Y 1000 50 7 b2 tail -> 0 ~1000 0",
        "acquire n - b3.1 - 0 Z 1000 50 7 b3 tail -> 0 ~1000 1",
        "acquire n - b2.2 - 0 Y 1000 50 7 b2 keep -> 0 ~1000 2",
        "acquire n - b1.9 - 0 W 1000 50 7 b1/4 front -> 0 ~1000 2",
        "LINE n -> b1/4 b2 b3",
        "release n - b1.1 0 b1 -> 1",
        "LINE n -> b2 b3 b1 turn:b1/4",
        "acquire n - b2.3 - 0 Y 1000 50 7 b2/7 tail -> 0 0 3",
        "LINE n -> b2 b3 b1 b2/7 turn:b1/4",
        "acquire n - b1.10 - 0 W 1000 50 7 b1/4 keep -> 1 51 4",
        "pass n - b1 -> 0",
        "LINE n -> b2 b3 b2/7 turn:b1/4",
        "release n - b1.10 0 - -> 1",
        "LINE n -> b3 b2/7 turn:b1/4",
        "pass n - - -> 1",
        "LINE n -> turn:b2/7"}},
    {"strict order", {
        "LISTEN b1",
        "line n - b1/1 -> 1",
        "line n - b1/2 -> 2",
        "line n - b1/1 -> 2",
        "LINE n -> b1/2 b1/1",
        "acquire n - b1.1 - 0 X 1000 50 7 b1/1 keep -> 0 0 2",
        "LINE n -> b1/1 turn:b1/2",
        "acquire n - b1.2 - 0 X 1000 50 7 b1/2 keep -> 1 50 1",
        "LINE n -> b1/1 turn:b1/2"}},
    {"the data is lost", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "FLUSHALL",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> STRANGER",
        "commit n - x.1 60 7 -> STRANGER",
        "renew n - x.1 1000 1 0 -> STRANGER",
        "takeover n - x.2 100 X 1000 5 7 -> STRANGER",
        "plant n - x.1 X 50 1 0 1000 7 -> STRANGER",
        "activate - - RUN 5 0 -> STRANGER",
        "suspend - - RUN 500 -> STRANGER",
        "release n - x.1 0 - -> 0",
        "peek n - -> []"}},
    {"quarantine", {
        "NOJOIN",
        "join - - RUN 200 s -> quarantine ~200 s 0",
        "join - - RUN 9000 other -> quarantine ~200 s 0",
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> QUARANTINE",
        "commit n - x.1 60 7 -> QUARANTINE",
        "renew n - x.1 1000 1 0 -> QUARANTINE",
        "takeover n - x.2 100 X 1000 5 7 -> QUARANTINE",
        "plant n - x.1 X 70 1 0 1000 7 -> 1",
        "release m - x.1 0 - -> 0",
        "activate - - RUN 500 0 -> quarantine ~200",
        "SLEEP 300",
        "join - - RUN 200 s -> quarantine 0 s 70",
        "acquire m - x.1 - 0 X 1000 50 7 - keep -> QUARANTINE",
        "activate - - RUN 500 0 -> active 0",
        "activate - - RUN 900 0 -> active 0",
        "acquire m - x.1 - 0 X 1000 50 7 - keep -> 1 501 0",
        "renew n - x.1 1000 1 0 -> 1",
        "join - - RUN 200 s -> active 0 s 501"}},
    {"an administrator ends it", {
        "NOJOIN",
        "join - - RUN 60000 s -> quarantine ~60000 s 0",
        "activate - - RUN 500 1 -> active 0",
        "suspend - - RUN 5000 -> quarantine ~5000",
        "suspend - - RUN 100 -> quarantine ~5000",
        "acquire m - x.1 - 0 X 1000 50 7 - keep -> QUARANTINE",
        "activate - - RUN 100 1 -> active 0",
        "acquire m - x.1 - 0 X 1000 50 7 - keep -> 1 501 0"}},
    {"take-over", {
        "acquire n - x.1 - 0 X 1000 50 7 - keep -> 1 50 0",
        "renew n - x.1 0 3 5 -> 1",
        "takeover n - y.1 300 Y 1000 5 7 -> 0 ~1000 0 0 0",
        "takeover none - x.2 300 X 1000 5 7 -> 0 -2 0 0 0",
        "takeover n - x.2 300 X 1000 5 7 -> 1 51 3 50 5",
        "GONE n x.1 -> 1",
        "renew n - x.1 1000 9 9 -> -2",
        "renew n - z.1 1000 9 9 -> -1",
        "takeover n - x.2 300 X 1000 5 7 -> 1 51 3 50 5",
        "STATE n -> X x.2 51 3 5",
        "release m - x.3 300 - -> 0",
        "acquire m - x.4 - 0 X 1000 5 7 - keep -> 1 52 0",
        "takeover m - x.3 300 X 1000 5 7 -> -1 0 0 0 0",
        "commit n - x.2 99 7 -> 1 99",
        "acquire k - x.5 - 0 X 1000 5 7 - keep -> 1 100 0"}},
};
/* clang-format on */
enum { SCRIPT_CASES = sizeof script_cases / sizeof script_cases[0] };

#endif
