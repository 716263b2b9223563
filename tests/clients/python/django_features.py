"""Django's cache and sessions on HOST PORT."""

import sys

import django
from django.conf import settings

from report import expect, run


def main(host, port):
    cache_settings = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"redis://{host}:{port}",
                      # set_many is one transaction: all keys on one server.
                      "KEY_PREFIX": "{cache}"}
    settings.configure(CACHES={"default": cache_settings}, SESSION_ENGINE="django.contrib.sessions.backends.cache",
                       SECRET_KEY="of a test", INSTALLED_APPS=["django.contrib.sessions"], USE_TZ=True)
    django.setup()
    from django.contrib.sessions.backends.cache import SessionStore
    from django.core.cache import cache

    def one():
        cache.set("one", {"a": [1, 2]}, timeout=60)
        expect(cache.get("one"), {"a": [1, 2]})
        expect(cache.get("missing", "default"), "default")
        expect([cache.add("one", 2), cache.add("new", 2, 60), cache.incr("new", 40)], [False, True, 42])
        expect([cache.touch("one", 100), cache.delete("one"), cache.get("one")], [True, True, None])
        expect(cache.get_or_set("computed", lambda: 7, 60), 7)

    def many():
        values = {f"key {number}": number for number in range(100)}
        expect(cache.set_many(values, timeout=60), [])
        expect(cache.get_many([*values, "missing"]), values)
        cache.delete_many(values)
        expect(cache.get_many(values), {})

    def clear():
        cache.set("one", 1)
        cache.clear()
        expect(cache.get("one"), None)

    def sessions():
        session = SessionStore()
        session["user"] = 42
        session.save()
        expect(SessionStore(session.session_key)["user"], 42)
        old = session.session_key
        session.cycle_key()
        expect([SessionStore(session.session_key).get("user"), SessionStore(old).get("user")], [42, None])
        session.flush()
        expect(SessionStore(old).get("user"), None)

    return run(f"Django {django.__version__}", [("one key", one), ("many keys", many), ("clear", clear), ("sessions", sessions)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
