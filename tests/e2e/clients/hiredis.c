/* hiredis: one session of locking. usage: hiredis PORT */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisReply *ask(redisContext *c, const char *line)
{
    redisReply *reply = redisCommand(c, line);

    if (reply == NULL) {
        fprintf(stderr, "%s: %s\n", line, c->errstr);
        exit(1);
    }
    return reply;
}

static void expect(redisContext *c, const char *line, int type, const char *text, long long integer)
{
    redisReply *reply = ask(c, line);

    if (reply->type != type || (text != NULL && strncmp(reply->str, text, strlen(text)) != 0) ||
        (type == REDIS_REPLY_INTEGER && reply->integer != integer)) {
        fprintf(stderr, "%s: type %d, not %d: %s %lld\n", line, reply->type, type,
                reply->str != NULL ? reply->str : "", reply->integer);
        exit(1);
    }
    freeReplyObject(reply);
}

static redisContext *dial(int port)
{
    redisContext *c = redisConnect("127.0.0.1", port);

    if (c == NULL || c->err != 0) {
        fprintf(stderr, "connect: %s\n", c != NULL ? c->errstr : "no memory");
        exit(1);
    }
    return c;
}

int main(int argc, char **argv)
{
    redisContext *holder, *rival;
    redisReply *reply;

    if (argc != 2)
        return 2;
    holder = dial(atoi(argv[1]));
    rival = dial(atoi(argv[1]));
    expect(holder, "PING", REDIS_REPLY_STATUS, "PONG", 0);
    reply = ask(holder, "LOCK hiredis OWNER app");
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->integer <= 0 || reply->element[1]->integer <= 0)
        return 1;
    freeReplyObject(reply);
    expect(rival, "LOCK hiredis", REDIS_REPLY_NIL, NULL, 0);
    expect(rival, "HOLDS hiredis OWNER app", REDIS_REPLY_INTEGER, NULL, 1);
    expect(rival, "UNLOCK hiredis", REDIS_REPLY_ERROR, "NOTHELD", 0);
    expect(holder, "UNLOCK hiredis OWNER app", REDIS_REPLY_INTEGER, NULL, 1);
    expect(holder, "QUIT", REDIS_REPLY_STATUS, "OK", 0);
    redisFree(holder);
    redisFree(rival);
    puts("ok");
    return 0;
}
