/* A module for the tests of commands that only servers know. It declares what it needs of Redis's module API itself, since
 * redismodule.h isn't installed with the server. */
#include <stddef.h>

typedef struct Ctx Ctx;
typedef struct String String;
typedef struct Key Key;
typedef int (*Command)(Ctx *, String **, int);

static int (*CreateCommand)(Ctx *, const char *, Command, const char *, int, int, int);
static int (*SetModuleAttribs)(Ctx *, const char *, int, int);
static int (*ReplyWithSimpleString)(Ctx *, const char *);
static int (*ReplyWithLongLong)(Ctx *, long long);
static int (*ReplyWithArray)(Ctx *, long);
static int (*ReplyWithString)(Ctx *, String *);
static int (*ReplyWithNull)(Ctx *);
static int (*WrongArity)(Ctx *);
static Key *(*OpenKey)(Ctx *, String *, int);
static int (*StringSet)(Key *, String *);
static char *(*StringDMA)(Key *, size_t *, int);
static int (*ReplyWithStringBuffer)(Ctx *, const char *, size_t);
static void (*CloseKey)(Key *);
static int (*IsKeysPositionRequest)(Ctx *);
static void (*KeyAtPos)(Ctx *, int);

/* TOY.SET key value [ignored ...] */
static int set(Ctx *ctx, String **argv, int argc) {
    if (argc < 3) return WrongArity(ctx);
    Key *key = OpenKey(ctx, argv[1], 3);
    StringSet(key, argv[2]);
    CloseKey(key);
    return ReplyWithSimpleString(ctx, "OK");
}

/* TOY.GET key */
static int get(Ctx *ctx, String **argv, int argc) {
    if (argc != 2) return WrongArity(ctx);
    Key *key = OpenKey(ctx, argv[1], 1);
    if (!key) return ReplyWithNull(ctx);
    size_t len;
    char *value = StringDMA(key, &len, 1);
    int result = ReplyWithStringBuffer(ctx, value, len);
    CloseKey(key);
    return result;
}

/* TOY.ECHO key [key ...]: its own keys */
static int echo(Ctx *ctx, String **argv, int argc) {
    ReplyWithArray(ctx, argc - 1);
    for (int i = 1; i < argc; i++) ReplyWithString(ctx, argv[i]);
    return 0;
}

/* TOY.COUNT: has no key */
static int count(Ctx *ctx, String **argv, int argc) {
    (void)argv;
    return ReplyWithLongLong(ctx, argc);
}

/* TOY.ODD n key: says only when asked where its key is */
static int odd(Ctx *ctx, String **argv, int argc) {
    if (IsKeysPositionRequest(ctx)) {
        KeyAtPos(ctx, 2);
        return 0;
    }
    return count(ctx, argv, argc);
}

#define NEEDS(name) if (get_api("RedisModule_" #name, (void **)&name)) return 1

int RedisModule_OnLoad(Ctx *ctx, String **argv, int argc) {
    (void)argv;
    (void)argc;
    int (*get_api)(const char *, void **) = *(int (**)(const char *, void **))ctx;
    NEEDS(CreateCommand);
    NEEDS(SetModuleAttribs);
    NEEDS(ReplyWithSimpleString);
    NEEDS(ReplyWithLongLong);
    NEEDS(ReplyWithArray);
    NEEDS(ReplyWithString);
    NEEDS(ReplyWithNull);
    NEEDS(WrongArity);
    NEEDS(OpenKey);
    NEEDS(StringSet);
    NEEDS(StringDMA);
    NEEDS(ReplyWithStringBuffer);
    NEEDS(CloseKey);
    NEEDS(IsKeysPositionRequest);
    NEEDS(KeyAtPos);
    SetModuleAttribs(ctx, "toy", 1, 1);
    if (CreateCommand(ctx, "toy.set", set, "write deny-oom", 1, 1, 1)) return 1;
    if (CreateCommand(ctx, "toy.get", get, "readonly fast", 1, 1, 1)) return 1;
    if (CreateCommand(ctx, "toy.echo", echo, "readonly", 1, -1, 1)) return 1;
    if (CreateCommand(ctx, "toy.count", count, "readonly", 0, 0, 0)) return 1;
    return CreateCommand(ctx, "toy.odd", odd, "readonly getkeys-api", 1, 1, 1);
}
