/* The scripts that cost most of what the cage lets through: those that go to the bound of steps by
 * what is dear in a step, and those that are dear to compile.
 *
 * Prints a line for each, in which its name ends at a colon; cage.py counts instructions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dropin/cage.h"
#include "dropin/keys.h"

#define ENDLESS(code) "while true do " code " end"
#define TEXT_OF(bytes) "local s = string.rep('\\0', " bytes ") local a, b = s..'x', s..'y' "
#define FIELDS "local t = {} for i = 1, 250 do t[i] = 'f' .. i end "

static const struct body {
    const char *name, *before, *piece; /* piece: as often as there is room */
    int pieces;
    const char *after;
} bodies[] = {
    {"numbers as texts", "local a = 1.797693134862315e308 ", "", 0,
     ENDLESS("local b = a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a..a")},
    {"two numbers as texts", "local a = 1.797693134862315e308 ", "", 0, ENDLESS("local b = a..a")},
    {"tostring", "local f, a = tostring, 1.797693134862315e308 ", "", 0, ENDLESS("f(a)")},
    {"format", "local f, a = string.format, 1e308 ", "", 0,
     ENDLESS("f('%99.99f%99.99f%99.99f%99.99f', a, a, a, a)")},
    {"texts of 16 as numbers", "local a, b = '1.79769313486e308' ", "b=a+a ", 400, ""},
    {"texts of 30 as numbers", "local a, b = '0.1111111111111111111111e-300' while true do ",
     "b=a+a ", 300, "end"},
    {"texts of 60 as numbers",
     "local a, b = '0.11111111111111111111111111111111111111111111111111111e-300' while true do ",
     "b=a+a ", 300, "end"},
    {"texts of 250 as numbers",
     "local a, b = '0.' .. string.rep('1', 200) .. 'e-300' while true do ", "b=a+a ", 300, "end"},
    {"texts of 1000 as numbers",
     "local a, b = '0.' .. string.rep('1', 1000) .. 'e-300' while true do ", "b=a+a ", 300, "end"},
    {"tonumber", "local f, a = tonumber, '0.' .. string.rep('1', 250) .. 'e-300' ", "", 0,
     ENDLESS("f(a)")},
    {"24 NULs", TEXT_OF("24"), "", 0, ENDLESS("local c = a<b or a<b or a<b")},
    {"64 NULs", TEXT_OF("64"), "", 0, ENDLESS("local c = a<b")},
    {"256 NULs", TEXT_OF("256"), "", 0, ENDLESS("local c = a<b")},
    {"1000 NULs", TEXT_OF("1000"), "", 0, ENDLESS("local c = a<b")},
    {"4000 NULs", TEXT_OF("4000"), "", 0, ENDLESS("local c = a<b")},
    {"20000 NULs", TEXT_OF("20000"), "", 0, ENDLESS("local c = a<b")},
    {"40000 NULs", "local s = string.rep('\\0', 40000) ", "", 0, ENDLESS("local c = s<s")},
    {"fmod", "local f = math.fmod ", "", 0, ENDLESS("f(1.7e308, 5e-324)")},
    {"varargs", "local function f(...) ", "local a = ... ", 180,
     "return f(...) end f(unpack({}, 1, 250))"},
    {"select",
     "local f = select local function g(...) while true do f('#', ...) f(-1, ...) end end ", "", 0,
     "g(unpack({}, 1, 250))"},
    {"next over holes", "local n, t = next, {", "nil,", 900, "} " ENDLESS("n(t)")},
    {"texts of one hash",
     "local t = {} for i = 1, 300 do t[i] = string.rep('x', 34) .. i .. string.rep('y', 30) end ",
     "", 0, ENDLESS("local a = t[1] .. 'y'")},
    {"failures with names", "local function f(a) if a then return end ", "a=a.b ", 400,
     "end while true do pcall(f) end"},
    {"failures after much code",
     "local function f(a) if not a then local b = c.d end end local function g(a) if a then ",
     "a=-a ", 500, "end local b = a.b.c end while true do pcall(g, false) end"},
    {"arguments that are wrong", "local f = string.rep local function g(a) if a then ", "a=-a ",
     500, "end f() end while true do pcall(g, false) end"},
    {"calls of many words", FIELDS, "", 0,
     "for i = 1, 64 do redis.call('HSET', KEYS[1], unpack(t)) end"},
    {"large replies", FIELDS "redis.call('HSET', KEYS[1], unpack(t)) ", "", 0,
     "for i = 1, 64 do redis.call('HGETALL', KEYS[1]) end"},
    {"replies of large values",
     "redis.call('SET', KEYS[1], string.rep('x', 10000)) local t = {} for i = 1, 250 do t[i] = "
     "KEYS[1] end ",
     "", 0, "for i = 1, 64 do redis.call('MGET', unpack(t)) end"},
    {"a reply that doubles", "local t = {1} ", "t={t,t} ", 30, "return t"},
    {"a reply of one text", "local s = string.rep('x', 8000) return {", "s,", 900, "s}"},
    {"sha1hex", "local f, s = redis.sha1hex, string.rep('x', 1000) ", "", 0, ENDLESS("f(s)")},
    {"concat", "local t, f = {}, table.concat for i = 1, 200 do t[i] = 1.797693134862315e308 end ",
     "", 0, ENDLESS("f(t)")},
    {"insert at the front", "local t, f = {}, table.insert ", "", 0, ENDLESS("f(t, 1, 1)")},
    {"closures", "", "", 0, ENDLESS("local a = function() return function() end end a()")},
    {"garbage", "", "", 0, ENDLESS("local a = {{},{},{},{}}")},
    {"or", "return a ", "or a ", 1020, ""},
    {"and or", "local a return a ", "and a or a ", 510, ""},
    {"conditions", "if a then ", "elseif a then ", 680, "end"},
    {"breaks", "while a do ", "if a then break end ", 400, "end"},
    {"numerals", "return {", "1.797693134862315e308,", 390, "}"},
    {"functions", "return ", "function() return ", 190, ""},
    {"many functions", "local a ", "a=function()end ", 330, ""},
    {"negations", "return ", "- ", 195, "1"},
    {"calls in calls", "a(", "a(", 190, ")"},
    {"constants", "local a ", "a='\1\2\3\4\5' ", 500, ""},
    {"locals of outer functions",
     "local "
     "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,"
     "U,"
     "V,W,X,Y,Z "
     "local function f1() local "
     "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F,G,H,I,J,K,"
     "L,M,N,O,P,Q,R,S,T,U,V,W,X,Y,Z local function f2() local "
     "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,"
     "w,x,y,z,A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,X,Y,Z ",
     "_=_ ", 450, "end end"},
};
enum { BODIES = sizeof bodies / sizeof bodies[0] };

static void make_body(const struct body *b, struct buf *out)
{
    size_t room = CAGE_BODY - strlen(b->after);
    buf_append(out, b->before, strlen(b->before));
    for (int i = 0; i < b->pieces && buf_len(out) + strlen(b->piece) < room; i++)
        buf_append(out, b->piece, strlen(b->piece));
    buf_append(out, b->after, strlen(b->after));
}

static void run(const struct body *b)
{
    static const struct resp_arg names[] = {{"lock", 4}};
    struct cage *cage = cage_new(8);
    struct keys keys = {0};
    struct store_reply reply = {0};
    struct buf body = {0};
    make_body(b, &body);
    struct cage_job job = {.body = buf_head(&body),
                           .len = buf_len(&body),
                           .keys = names,
                           .n_keys = 1,
                           .call = keys_call,
                           .arg = &keys};
    keys_begin(&keys, names, 1, 1000000);
    int result = cage_run(cage, &job, &reply);
    printf("%s: %ld steps, %s\n", b->name, cage_steps(cage),
           result < 0 ? cage_refusal(cage) : "served");
    if (result == 0 && reply.nodes[0].kind == STORE_ERROR)
        printf("    %.*s\n", (int)reply.nodes[0].len, store_text(&reply, &reply.nodes[0]));
    keys_fini(&keys);
    store_reply_fini(&reply);
    buf_fini(&body);
    cage_free(cage);
}

int main(void)
{
    char sha1[CAGE_SHA1 + 1];
    cage_sha1("", 0, sha1); /* what OpenSSL does once is no part of a run */
    for (int i = 0; i < BODIES; i++)
        run(&bodies[i]);
    return 0;
}
