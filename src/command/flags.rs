//! The sets of bits in a row, each with the names that Redis prints in COMMAND INFO.

/// Declares a set of named bits: the type, its bits as constants, their names, and a module with the bits as plain numbers
/// for the rows (`WRITE | FAST` is a constant expression for numbers only).
macro_rules! bits {
    ($(#[$doc:meta])* $name:ident: $repr:ty, words in $words:ident;
     $($(#[$bit_doc:meta])* $bit:ident = $shift:literal, $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name($repr);

        #[allow(dead_code)] // not every word is said in a row
        pub(super) mod $words {
            $($(#[$bit_doc])* pub const $bit: $repr = 1 << $shift;)*
        }

        impl $name {
            $($(#[$bit_doc])* pub const $bit: $name = $name($words::$bit);)*

            /// No bit at all.
            pub const NONE: $name = $name(0);

            /// The set of these bits.
            #[allow(dead_code)] // categories are put together with `with`
            pub(super) const fn of(bits: $repr) -> $name {
                $name(bits)
            }

            /// Both sets together.
            pub const fn with(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// Whether every bit of `other` is set here.
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// The names as Redis prints them, in the order of the declaration.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                const NAMES: &[($name, &str)] = &[$(($name::$bit, $text)),*];
                NAMES.iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, text)| *text)
            }

            /// The bit that Redis calls `text` in any case; `None` if there is no such.
            pub fn named(text: &[u8]) -> Option<$name> {
                const NAMES: &[($name, &str)] = &[$(($name::$bit, $text)),*];
                NAMES.iter().find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(text)).map(|(bit, _)| *bit)
            }
        }
    };
}

bits! {
    /// What Redis says about a command as a whole.
    Flags: u32, words in flag;
    /// May change a key. Refused in a pool with `read_only: true`.
    WRITE = 0, "write";
    /// Only reads keys.
    READONLY = 1, "readonly";
    /// Refused by a server that is out of memory.
    DENYOOM = 2, "denyoom";
    /// Administration of a server.
    ADMIN = 3, "admin";
    /// Part of publish/subscribe.
    PUBSUB = 4, "pubsub";
    /// Not allowed in scripts.
    NOSCRIPT = 5, "noscript";
    /// May wait for other clients before it answers.
    BLOCKING = 6, "blocking";
    /// Answered by a server that is still loading its data.
    LOADING = 7, "loading";
    /// Answered by a replica that has lost its master.
    STALE = 8, "stale";
    /// Not shown by MONITOR.
    SKIP_MONITOR = 9, "skip_monitor";
    /// Not noted in the slow log.
    SKIP_SLOWLOG = 10, "skip_slowlog";
    /// Allowed on a slot that is being imported.
    ASKING = 11, "asking";
    /// Takes constant or logarithmic time.
    FAST = 12, "fast";
    /// Allowed before a client has authenticated.
    NO_AUTH = 13, "no_auth";
    /// First, last and step alone don't give all keys.
    MOVABLE_KEYS = 14, "movablekeys";
    /// Not answered while a replica swaps in a new data set.
    NO_ASYNC_LOADING = 15, "no_async_loading";
    /// Not allowed in a transaction.
    NO_MULTI = 16, "no_multi";
    /// Answered by a server that is busy with a script.
    ALLOW_BUSY = 17, "allow_busy";
    /// May come without any key.
    NO_MANDATORY_KEYS = 18, "no_mandatory_keys";
}

bits! {
    /// What a command does with the keys of one key spec.
    KeyFlags: u16, words in key;
    /// Reads the value.
    RO = 0, "RO";
    /// Reads and changes the value.
    RW = 1, "RW";
    /// Overwrites the value.
    OW = 2, "OW";
    /// Removes the key.
    RM = 3, "RM";
    /// Returns, copies or otherwise uses the user's data.
    ACCESS = 4, "access";
    /// Changes data, and may add or delete some.
    UPDATE = 5, "update";
    /// Adds data.
    INSERT = 6, "insert";
    /// Deletes data.
    DELETE = 7, "delete";
    /// Routed like a key, but isn't one (a channel).
    NOT_KEY = 8, "not_key";
    /// The spec doesn't find all keys.
    INCOMPLETE = 9, "incomplete";
    /// Which flags hold depends on the arguments.
    VARIABLE_FLAGS = 10, "variable_flags";
}

bits! {
    /// What Redis's tips say about a command's reply.
    Hints: u8, words in hint;
    /// The same call on the same data may get another reply.
    RANDOM = 0, "nondeterministic_output";
    /// The elements of the reply come in no particular order.
    RANDOM_ORDER = 1, "nondeterministic_output_order";
}

bits! {
    /// ACL categories.
    Categories: u32, words in category;
    /// Keys whatever their type.
    KEYSPACE = 0, "@keyspace";
    /// Reads data.
    READ = 1, "@read";
    /// Writes data.
    WRITE = 2, "@write";
    /// Sets.
    SET = 3, "@set";
    /// Sorted sets.
    SORTED_SET = 4, "@sortedset";
    /// Lists.
    LIST = 5, "@list";
    /// Hashes.
    HASH = 6, "@hash";
    /// Strings.
    STRING = 7, "@string";
    /// Bitmaps.
    BITMAP = 8, "@bitmap";
    /// HyperLogLogs.
    HYPERLOGLOG = 9, "@hyperloglog";
    /// Geo sets.
    GEO = 10, "@geo";
    /// Streams.
    STREAM = 11, "@stream";
    /// Publish/subscribe.
    PUBSUB = 12, "@pubsub";
    /// Administration.
    ADMIN = 13, "@admin";
    /// Constant or logarithmic time.
    FAST = 14, "@fast";
    /// All that isn't fast.
    SLOW = 15, "@slow";
    /// May block.
    BLOCKING = 16, "@blocking";
    /// May do harm in the wrong hands.
    DANGEROUS = 17, "@dangerous";
    /// The connection itself.
    CONNECTION = 18, "@connection";
    /// Transactions.
    TRANSACTION = 19, "@transaction";
    /// Scripts and functions.
    SCRIPTING = 20, "@scripting";
}
