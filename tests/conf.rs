//! The configuration from outside: the files of conf/, the reference, golden errors, hostile text, and nutcracker.

mod conf {
    mod deployments;
    mod docs;
    mod golden;
    mod hostile;
    mod nutcracker;
    mod packaging;
    mod values;
}
