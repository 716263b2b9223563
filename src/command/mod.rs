//! What a command is: one declarative row each, and what a request of it asks for.
