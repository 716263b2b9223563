//! The rows, in Redis's groups: one file each.
//!
//! A row reads: name, number of arguments (negative: at least), flags, where the keys are (with what is done to them),
//! how shardwise handles it. `tests/commands.rs` compares all but the last with live servers.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod scripting;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
mod transactions;

use super::row::{Group, Row};

/// Every row, by group, in alphabetical order.
pub(super) const SECTIONS: &[(Group, &[Row])] = &[
    (Group::Bitmap, bitmap::ROWS),
    (Group::Cluster, cluster::ROWS),
    (Group::Connection, connection::ROWS),
    (Group::Generic, generic::ROWS),
    (Group::Geo, geo::ROWS),
    (Group::Hash, hash::ROWS),
    (Group::HyperLogLog, hyperloglog::ROWS),
    (Group::List, list::ROWS),
    (Group::PubSub, pubsub::ROWS),
    (Group::Scripting, scripting::ROWS),
    (Group::Server, server::ROWS),
    (Group::Set, set::ROWS),
    (Group::SortedSet, sorted_set::ROWS),
    (Group::Stream, stream::ROWS),
    (Group::String, string::ROWS),
    (Group::Transactions, transactions::ROWS),
];

/// What the files of rows need.
mod words {
    pub(super) use super::super::flags::{Categories, flag::*, hint::*, key::*};
    pub(super) use super::super::keys::KeyRule;
    pub(super) use super::super::row::AllKind;
    pub(super) use super::super::row::ClientQuery::*;
    pub(super) use super::super::row::CommandQuery::*;
    pub(super) use super::super::row::Handling::*;
    pub(super) use super::super::row::Local::*;
    pub(super) use super::super::row::Pin::*;
    pub(super) use super::super::row::SplitKind::*;
    pub(super) use super::super::row::Transaction::*;
    pub(super) use super::super::row::Why::*;
    pub(super) use super::super::row::{ReplyPolicy, RequestPolicy, Row, ScriptUse, TimeoutAt, Unless, row};
    pub(super) use super::super::spec::*;
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Flags, KeyFlags};
    use super::super::keys::KeyRule;
    use super::super::row::{AllKind, Handling, Pin, ReplyPolicy, RequestPolicy, SplitKind, Unless};
    use super::super::spec::{BeginSearch, KeySpec};
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Row> {
        SECTIONS.iter().flat_map(|(_, rows)| *rows).flat_map(|row| std::iter::once(row).chain(row.subs))
    }

    /// `Keys` holds two runs. What the specs say of more than two places must have a rule of its own.
    #[test]
    fn specs_alone_never_give_more_than_two_runs() {
        for row in rows() {
            if row.rule == KeyRule::Specs {
                assert!(row.keys.len() <= 2, "{}", row.name);
                let vague = |spec: &KeySpec| {
                    spec.begin == BeginSearch::Unknown || spec.flags.contains(KeyFlags::INCOMPLETE)
                };
                assert!(!row.keys.iter().any(vague), "{}", row.name);
            }
        }
    }

    #[test]
    fn split_commands_are_those_that_redis_would_send_to_several_servers() {
        for row in rows() {
            let reply = match row.handling {
                Handling::Split(SplitKind::Concat) => ReplyPolicy::Default,
                Handling::Split(SplitKind::AllOk) => ReplyPolicy::AllSucceeded,
                Handling::Split(SplitKind::Sum) => ReplyPolicy::AggSum,
                _ => continue,
            };
            assert_eq!((row.request, row.reply), (RequestPolicy::MultiShard, reply), "{}", row.name);
        }
    }

    #[test]
    fn what_goes_everywhere_is_what_redis_would_send_everywhere() {
        for row in rows() {
            let Handling::Everywhere(kind) = row.handling else { continue };
            let replies: &[ReplyPolicy] = match kind {
                AllKind::Sum => &[ReplyPolicy::AggSum],
                AllKind::Same => &[ReplyPolicy::AllSucceeded],
                AllKind::And => &[ReplyPolicy::AggLogicalAnd],
                // RANDOMKEY has no policy in Redis 7.0, and is special in Valkey.
                // Redis's tips say nothing of publish/subscribe.
                _ if row.flags.contains(Flags::PUBSUB) => continue,
                AllKind::Max | AllKind::Counts => &[],
                AllKind::Join | AllKind::Draw => &[ReplyPolicy::Default, ReplyPolicy::Special],
            };
            let everywhere = matches!(row.request, RequestPolicy::AllShards | RequestPolicy::AllNodes);
            assert!(everywhere && replies.contains(&row.reply), "{}", row.name);
        }
    }

    /// A command that may block on a shared connection would hold up everybody behind it.
    #[test]
    fn commands_that_may_block_are_pinned_refused_or_looked_at() {
        for row in rows() {
            if row.flags.contains(Flags::BLOCKING) && row.unless != Unless::Block {
                let is_pinned = matches!(row.handling, Handling::Pinned(Pin::Block(_)) | Handling::Wait);
                assert!(is_pinned || matches!(row.handling, Handling::Unsupported(_)), "{}", row.name);
            }
        }
    }

    /// Commands that change what a connection means, or go where no key leads, must not reach a shared connection.
    #[test]
    fn what_is_sent_to_servers_has_keys_or_is_listed_here() {
        let keyless = rows().filter_map(|row| match row.handling {
            Handling::AnyServer => Some(row.name),
            Handling::Keyed | Handling::Split(_) | Handling::Pinned(_) => {
                assert_ne!(row.rule, KeyRule::None, "{} has no keys to be routed by", row.name);
                None
            }
            _ => None,
        });
        let expected = [
            "object",
            "object|help",
            "function|dump",
            "function|list",
            "command|docs",
            "lolwut",
            "time",
            "xgroup",
            "xgroup|help",
            "xinfo",
            "xinfo|help",
        ];
        assert_eq!(keyless.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn scripts_count_as_writes_unless_they_are_declared_as_reading() {
        let names = |wanted: fn(&Row) -> bool| {
            rows().filter(move |row| wanted(row)).map(|row| row.name).collect::<Vec<_>>()
        };
        let unmarked = names(|row| row.is_write() && !row.flags.contains(Flags::WRITE));
        assert_eq!(unmarked, ["eval", "evalsha", "fcall"]);
        let read = names(|row| !row.is_write() && row.name.ends_with("_ro"));
        assert_eq!(
            read,
            [
                "bitfield_ro",
                "sort_ro",
                "georadius_ro",
                "georadiusbymember_ro",
                "eval_ro",
                "evalsha_ro",
                "fcall_ro"
            ]
        );
    }

    #[test]
    fn subcommands_carry_the_name_of_their_container() {
        for container in SECTIONS.iter().flat_map(|(_, rows)| *rows) {
            for sub in container.subs {
                assert_eq!(sub.name.split_once('|').map(|(name, _)| name), Some(container.name));
                assert!(sub.subs.is_empty(), "{}", sub.name);
            }
        }
    }
}
