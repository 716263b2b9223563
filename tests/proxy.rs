//! The running proxy in front of real servers: one binary, a module for each subject.

mod support;

mod proxy {
    mod compare;
    mod dead_server;
    mod ejection;
    mod fleet;
    mod half_replies;
    mod lifecycle;
    mod load;
    mod placement;
    mod protocol;
    mod stats_port;
    mod support_selftest;
    mod timeouts;
}
