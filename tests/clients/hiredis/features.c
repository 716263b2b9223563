/* hiredis against HOST PORT, at its defaults. Tells what it could do: a line for the client, then one for each feature:
 * its name, `ok` or `FAILED`, and why. Built by tests/setup.sh */

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *host;
static int port;
static char why[512];

static redisContext *start(void) {
    redisContext *c = redisConnect(host, port);
    if (c == NULL || c->err) {
        fprintf(stderr, "connect: %s\n", c ? c->errstr : "no memory");
        exit(1);
    }
    return c;
}

/* Whether the reply is what was wanted: `type`, and its text or number. Frees it. */
static int is(redisContext *c, redisReply *reply, int type, const char *text, long long number) {
    if (reply == NULL) {
        snprintf(why, sizeof why, "no reply: %s", c->errstr);
        return 0;
    }
    int same = reply->type == type && (text == NULL || (reply->str != NULL && strcmp(reply->str, text) == 0)) &&
               (type != REDIS_REPLY_INTEGER || reply->integer == number);
    if (!same)
        snprintf(why, sizeof why, "found type %d, %lld, '%.200s'; wanted type %d, %lld, '%.100s'", reply->type,
                 reply->integer, reply->str ? reply->str : "", type, number, text ? text : "");
    freeReplyObject(reply);
    return same;
}

static int is_status(redisContext *c, redisReply *reply, const char *text) { return is(c, reply, REDIS_REPLY_STATUS, text, 0); }
static int is_string(redisContext *c, redisReply *reply, const char *text) { return is(c, reply, REDIS_REPLY_STRING, text, 0); }
static int is_number(redisContext *c, redisReply *reply, long long n) { return is(c, reply, REDIS_REPLY_INTEGER, NULL, n); }

static redisReply *next(redisContext *c) {
    void *reply = NULL;
    return redisGetReply(c, &reply) == REDIS_OK ? reply : NULL;
}

/* Whether it is an array of these texts. Frees it. */
static int is_list(redisContext *c, redisReply *reply, int count, ...) {
    if (reply == NULL) {
        snprintf(why, sizeof why, "no reply: %s", c->errstr);
        return 0;
    }
    int same = reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)count;
    va_list texts;
    va_start(texts, count);
    for (int i = 0; same && i < count; i++) {
        const char *text = va_arg(texts, const char *);
        same = reply->element[i]->str != NULL && strcmp(reply->element[i]->str, text) == 0;
    }
    va_end(texts);
    if (!same)
        snprintf(why, sizeof why, "found type %d with %zu elements: %.200s", reply->type, reply->elements,
                 reply->str ? reply->str : "other ones");
    freeReplyObject(reply);
    return same;
}

/* Sends one command in a process of its own, after 0.2 s. */
static pid_t later(const char *command, const char *key, const char *value) {
    pid_t child = fork();
    if (child == 0) {
        usleep(200000);
        redisContext *c = start();
        freeReplyObject(redisCommand(c, "%s %s %s", command, key, value));
        _exit(0);
    }
    return child;
}

static int check_connect(redisContext *c) {
    return is_status(c, redisCommand(c, "SET %s %b", "features:connect", "a\0\r\n", (size_t)4), "OK") &&
           is_number(c, redisCommand(c, "STRLEN features:connect"), 4);
}

static int check_pipeline(redisContext *c) {
    for (int i = 0; i < 300; i++) {
        redisAppendCommand(c, "SET features:p:%d %d", i, i);
        redisAppendCommand(c, "GET features:p:%d", i);
    }
    for (int i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        if (!is_status(c, next(c), "OK") || !is_string(c, next(c), text)) return 0;
    }
    return 1;
}

static int check_transaction(redisContext *c) {
    redisAppendCommand(c, "WATCH {features}:t");
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "SET {features}:t 1");
    redisAppendCommand(c, "GET {features}:t");
    redisAppendCommand(c, "EXEC");
    if (!is_status(c, next(c), "OK") || !is_status(c, next(c), "OK") || !is_status(c, next(c), "QUEUED") ||
        !is_status(c, next(c), "QUEUED") || !is_list(c, next(c), 2, "OK", "1"))
        return 0;
    redisContext *other = start();
    int same = is_status(c, redisCommand(c, "WATCH {features}:t"), "OK") &&
               is_status(other, redisCommand(other, "SET {features}:t changed"), "OK") &&
               is_status(c, redisCommand(c, "MULTI"), "OK") &&
               is_status(c, redisCommand(c, "GET {features}:t"), "QUEUED") &&
               is(c, redisCommand(c, "EXEC"), REDIS_REPLY_NIL, NULL, 0);
    redisFree(other);
    return same;
}

static int check_blocking_pop(redisContext *c) {
    freeReplyObject(redisCommand(c, "DEL features:queue"));
    if (!is(c, redisCommand(c, "BLPOP features:queue 1"), REDIS_REPLY_NIL, NULL, 0)) return 0;
    pid_t pusher = later("RPUSH", "features:queue", "element");
    int same = is_list(c, redisCommand(c, "BLPOP features:queue 10"), 2, "features:queue", "element");
    waitpid(pusher, NULL, 0);
    return same;
}

static int check_subscribe(redisContext *unused) {
    (void)unused;
    redisContext *c = start();
    freeReplyObject(redisCommand(c, "SUBSCRIBE features:channel"));
    freeReplyObject(redisCommand(c, "PSUBSCRIBE features:pattern:*"));
    pid_t publisher = later("PUBLISH", "features:channel", "direct");
    int same = is_list(c, next(c), 3, "message", "features:channel", "direct");
    waitpid(publisher, NULL, 0);
    publisher = later("PUBLISH", "features:pattern:x", "matched");
    same = same && is_list(c, next(c), 4, "pmessage", "features:pattern:*", "features:pattern:x", "matched");
    waitpid(publisher, NULL, 0);
    redisFree(c);
    return same;
}

static int check_script(redisContext *c) {
    const char *body = "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)";
    redisReply *loaded = redisCommand(c, "SCRIPT LOAD %s", body);
    if (loaded == NULL || loaded->type != REDIS_REPLY_STRING) return is_string(c, loaded, "a SHA1 of the script");
    for (int i = 0; i < 20; i++) {
        freeReplyObject(redisCommand(c, "DEL features:script:%d", i));
        if (!is_number(c, redisCommand(c, "EVALSHA %s 1 features:script:%d 21", loaded->str, i), 42)) return 0;
    }
    freeReplyObject(loaded);
    return is_string(c, redisCommand(c, "EVAL %s 0 x", "return ARGV[1]"), "x");
}

static int check_scan(redisContext *c) {
    static char seen[500];
    for (int i = 0; i < 500; i++) redisAppendCommand(c, "SET features:scan:%d 1", i);
    for (int i = 0; i < 500; i++)
        if (!is_status(c, next(c), "OK")) return 0;
    char cursor[32] = "0";
    do {
        redisReply *reply = redisCommand(c, "SCAN %s MATCH features:scan:* COUNT 50", cursor);
        if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) return is_list(c, reply, 2, "", "");
        snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
        for (size_t i = 0; i < reply->element[1]->elements; i++) seen[atoi(reply->element[1]->element[i]->str + 14)] = 1;
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    int found = 0;
    for (int i = 0; i < 500; i++) found += seen[i];
    snprintf(why, sizeof why, "found %d of 500", found);
    return found == 500;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*check)(redisContext *);
    } checks[] = {{"connect", check_connect},     {"pipeline", check_pipeline}, {"transaction", check_transaction},
                  {"blocking pop", check_blocking_pop}, {"subscribe", check_subscribe}, {"script", check_script},
                  {"scan", check_scan}};
    if (argc < 3) return 2;
    host = argv[1];
    port = atoi(argv[2]);
    printf("client\thiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    int failed = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        redisContext *c = start();
        fflush(stdout); /* a child must not print it again */
        if (checks[i].check(c)) {
            printf("%s\tok\n", checks[i].name);
        } else {
            printf("%s\tFAILED\t%s\n", checks[i].name, why);
            failed = 1;
        }
        redisFree(c);
    }
    return failed;
}
