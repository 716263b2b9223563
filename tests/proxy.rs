//! The running proxy in front of real servers: one binary, a module for each subject.

mod support;

mod proxy {
    mod compare;
    mod placement;
    mod protocol;
    mod support_selftest;
}
