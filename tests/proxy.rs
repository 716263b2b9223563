//! The running proxy in front of real servers: one binary, a module for each subject.

mod support;

mod proxy {
    mod across;
    mod admin;
    mod auth;
    mod blocking;
    mod bounds;
    mod client_family;
    mod compare;
    mod crosskeys;
    mod databases;
    mod dead_server;
    mod ejection;
    mod fleet;
    mod half_replies;
    mod lifecycle;
    mod limits;
    mod load;
    mod local;
    mod metrics;
    mod operator;
    mod placement;
    mod protocol;
    mod pubsub;
    mod read_only;
    mod reload;
    mod resp3;
    mod restart;
    mod scripts;
    mod split;
    mod stats_port;
    mod support_selftest;
    mod timeouts;
    mod traffic;
    mod transactions;
    mod unix;
    mod wait;
}
