//! The running proxy in front of real servers: one binary, a module for each subject.

mod support;

mod proxy {
    mod auth;
    mod compare;
    mod crosskeys;
    mod limits;
    mod local;
    mod placement;
    mod protocol;
    mod read_only;
    mod split;
    mod support_selftest;
    mod unix;
}
