//! How the replies of the parts become the reply of the whole.

use super::keyspace;
use super::scan::Scan;
use crate::resp::{Protocol, ReplyScanner, encode};

/// A rule for merging; it matches how the call was split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Arrays are taken apart and put together in the order of the keys: which part each key went to.
    Concat {
        /// Part of each key, in the order of the request.
        order: Vec<u16>,
    },
    /// Integers are added.
    Sum,
    /// `+OK` if every part says so.
    AllOk,
    /// What all parts say alike.
    Same,
    /// The elements of arrays, one part's after the other's.
    Join,
    /// Arrays of numbers, element by element: 1 where every part says 1.
    And,
    /// One part's reply among those that aren't null, chosen by this number, which was drawn from all 32 bits.
    Draw(u32),
    /// The greatest integer.
    Max,
    /// Names, each with a number behind it: the numbers are added.
    Counts,
    /// A server's cursor becomes one of the pool.
    Scan(Scan),
    /// The replies to INFO, of which the keyspaces are added up and put behind the text of `before`.
    Keyspace {
        /// What the answer begins with.
        before: Vec<u8>,
        /// That of the client.
        protocol: Protocol,
    },
}

/// The replies cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldError {
    /// This part answered with an error: it is the answer of the whole.
    ErrorReply(usize),
    /// This part answered with something that the command never answers.
    Unexpected(usize),
    /// The server's cursor leaves no room for the server's position.
    CursorTooBig,
}

impl Fold {
    /// Whether a part that failed is no failure of the whole: INFO is what clients ask to see whether a server is there, and
    /// says itself which isn't.
    pub fn takes_failures(&self) -> bool {
        matches!(self, Self::Keyspace { .. })
    }

    /// Merges complete replies, one per part in the order of the parts, into `out`.
    ///
    /// A part that failed makes the whole fail: never nil for a key that exists, never a sum without a part (B13).
    pub fn merge(&self, parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
        let failed = parts.iter().position(|part| part.as_ref().first() == Some(&b'-'));
        if let Some(failed) = failed.filter(|_| !self.takes_failures()) {
            return Err(FoldError::ErrorReply(failed));
        }
        match self {
            Self::Concat { order } => concat(order, parts, out),
            Self::Sum => sum(parts, out),
            Self::AllOk => {
                match parts.iter().position(|part| part.as_ref().first() != Some(&b'+')) {
                    Some(part) => return Err(FoldError::Unexpected(part)),
                    None => encode::simple(out, "OK"),
                }
                Ok(())
            }
            Self::Same => same(parts, out),
            Self::Join => join(parts, out),
            Self::And => and(parts, out),
            Self::Draw(number) => draw(*number, parts, out),
            Self::Max => max(parts, out),
            Self::Counts => counts(parts, out),
            Self::Scan(scan) => scan.continued(parts.first().map_or(&[], AsRef::as_ref), out),
            Self::Keyspace { before, protocol } => {
                protocol.text(out, &keyspace::merge(before, parts));
                Ok(())
            }
        }
    }
}

fn concat(order: &[u16], parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut rests = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        let part = part.as_ref();
        let expected = order.iter().filter(|owner| usize::from(**owner) == i).count();
        let (count, rest) = number(part, b'*').ok_or(FoldError::Unexpected(i))?;
        if usize::try_from(count) != Ok(expected) {
            return Err(FoldError::Unexpected(i));
        }
        rests.push(rest);
    }
    out.reserve(parts.iter().map(|part| part.as_ref().len()).sum::<usize>() + 16);
    encode::array(out, order.len());
    for part in order {
        let part = usize::from(*part);
        let rest = rests.get_mut(part).ok_or(FoldError::Unexpected(part))?;
        let Ok(Some(len)) = ReplyScanner::of(Protocol::Resp3).scan(rest) else {
            return Err(FoldError::Unexpected(part));
        };
        let (element, after) = rest.split_at(len);
        out.extend_from_slice(element);
        *rest = after;
    }
    Ok(())
}

fn sum(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut total = 0i64;
    for (i, part) in parts.iter().enumerate() {
        let (n, _) = number(part.as_ref(), b':').ok_or(FoldError::Unexpected(i))?;
        total = total.checked_add(n).ok_or(FoldError::Unexpected(i))?;
    }
    encode::integer(out, total);
    Ok(())
}

fn max(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut most = 0;
    for (i, part) in parts.iter().enumerate() {
        let (n, _) = number(part.as_ref(), b':').ok_or(FoldError::Unexpected(i))?;
        most = n.max(most);
    }
    encode::integer(out, most);
    Ok(())
}

/// Every part names the same, in the same order: the first one gives the names.
fn counts(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut rests = Vec::with_capacity(parts.len());
    let mut elements = 0;
    for (i, part) in parts.iter().enumerate() {
        let (count, rest) = number(part.as_ref(), b'*').ok_or(FoldError::Unexpected(i))?;
        if count < 0 || count % 2 != 0 || i > 0 && count != elements {
            return Err(FoldError::Unexpected(i));
        }
        elements = count;
        rests.push(rest);
    }
    encode::array(out, usize::try_from(elements).unwrap_or_default());
    for _ in 0..elements / 2 {
        let mut sum = 0i64;
        for (i, rest) in rests.iter_mut().enumerate() {
            let Ok(Some(len)) = ReplyScanner::of(Protocol::Resp3).scan(rest) else {
                return Err(FoldError::Unexpected(i));
            };
            if i == 0 {
                out.extend_from_slice(&rest[..len]);
            }
            let (n, after) = number(&rest[len..], b':').ok_or(FoldError::Unexpected(i))?;
            sum = sum.saturating_add(n);
            *rest = after;
        }
        encode::integer(out, sum);
    }
    Ok(())
}

fn same(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let Some((first, others)) = parts.split_first() else { return Err(FoldError::Unexpected(0)) };
    match others.iter().position(|part| part.as_ref() != first.as_ref()) {
        Some(other) => Err(FoldError::Unexpected(other + 1)),
        None => {
            out.extend_from_slice(first.as_ref());
            Ok(())
        }
    }
}

fn join(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut total = 0usize;
    let mut bodies = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        let (count, body) = number(part.as_ref(), b'*').ok_or(FoldError::Unexpected(i))?;
        let count = usize::try_from(count).map_err(|_| FoldError::Unexpected(i))?;
        total = total.checked_add(count).ok_or(FoldError::Unexpected(i))?;
        bodies.push(body);
    }
    out.reserve(bodies.iter().map(|body| body.len()).sum::<usize>() + 16);
    encode::array(out, total);
    bodies.iter().for_each(|body| out.extend_from_slice(body));
    Ok(())
}

fn and(parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let mut all: Option<Vec<bool>> = None;
    for (i, part) in parts.iter().enumerate() {
        let answers = ones(part.as_ref()).ok_or(FoldError::Unexpected(i))?;
        match &mut all {
            None => all = Some(answers),
            Some(all) if all.len() == answers.len() => {
                all.iter_mut().zip(answers).for_each(|(all, one)| *all &= one);
            }
            Some(_) => return Err(FoldError::Unexpected(i)),
        }
    }
    let all = all.unwrap_or_default();
    encode::array(out, all.len());
    all.iter().for_each(|one| encode::integer(out, i64::from(*one)));
    Ok(())
}

/// The elements of an array of numbers: whether each is 1.
fn ones(reply: &[u8]) -> Option<Vec<bool>> {
    let (count, mut rest) = number(reply, b'*')?;
    // Grows with what is there, not with what is announced.
    let mut ones = Vec::new();
    for _ in 0..count {
        let (n, after) = number(rest, b':')?;
        ones.push(n == 1);
        rest = after;
    }
    Some(ones)
}

fn draw(number: u32, parts: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> Result<(), FoldError> {
    let is_null = |part: &[u8]| matches!(part, b"$-1\r\n" | b"*-1\r\n" | b"_\r\n");
    let full: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).filter(|part| !is_null(part)).collect();
    let chosen = (u64::from(number) * full.len() as u64) >> 32;
    let reply = full.get(chosen as usize).copied().or(parts.first().map(AsRef::as_ref));
    out.extend_from_slice(reply.ok_or(FoldError::Unexpected(0))?);
    Ok(())
}

/// The number on the first line of a reply of type `kind`, and what follows the line.
pub(super) fn number(reply: &[u8], kind: u8) -> Option<(i64, &[u8])> {
    let rest = reply.strip_prefix(&[kind])?;
    let end = memchr::memchr(b'\r', rest)?;
    let n = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((n, rest.get(end + 2..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(fold: &Fold, parts: &[&[u8]]) -> Result<String, FoldError> {
        let mut out = Vec::new();
        fold.merge(parts, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_come_in_the_order_of_the_keys() {
        let fold = Fold::Concat { order: vec![0, 1, 0, 1, 1] };
        let parts = [&b"*2\r\n$1\r\na\r\n$-1\r\n"[..], b"*3\r\n$1\r\nb\r\n$0\r\n\r\n$2\r\n\r\n\r\n"];
        let merged = "*5\r\n$1\r\na\r\n$1\r\nb\r\n$-1\r\n$0\r\n\r\n$2\r\n\r\n\r\n";
        assert_eq!(merge(&fold, &parts).unwrap(), merged);
    }

    #[test]
    fn values_of_resp3_are_taken_as_they_are() {
        let fold = Fold::Concat { order: vec![0, 1, 0] };
        let merged = merge(&fold, &[&b"*2\r\n_\r\n%1\r\n+k\r\n,1.5\r\n"[..], b"*1\r\n$1\r\nb\r\n"]).unwrap();
        assert_eq!(merged, "*3\r\n_\r\n$1\r\nb\r\n%1\r\n+k\r\n,1.5\r\n");
    }

    #[test]
    fn sums_and_oks() {
        assert_eq!(merge(&Fold::Sum, &[b":2\r\n", b":0\r\n", b":5\r\n"]).unwrap(), ":7\r\n");
        assert_eq!(merge(&Fold::AllOk, &[b"+OK\r\n", b"+OK\r\n"]).unwrap(), "+OK\r\n");
    }

    #[test]
    fn replies_of_all_servers() {
        assert_eq!(merge(&Fold::Same, &[b"$1\r\na\r\n", b"$1\r\na\r\n"]).unwrap(), "$1\r\na\r\n");
        assert_eq!(merge(&Fold::Same, &[b"$1\r\na\r\n", b"$1\r\nb\r\n"]), Err(FoldError::Unexpected(1)));
        let parts = [&b"*1\r\n$1\r\na\r\n"[..], b"*0\r\n", b"*2\r\n$1\r\nb\r\n$0\r\n\r\n"];
        assert_eq!(merge(&Fold::Join, &parts).unwrap(), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$0\r\n\r\n");
        assert_eq!(merge(&Fold::Join, &[b"*0\r\n", b"*-1\r\n"]), Err(FoldError::Unexpected(1)));
        let parts = [&b"*3\r\n:1\r\n:0\r\n:1\r\n"[..], b"*3\r\n:1\r\n:1\r\n:0\r\n"];
        assert_eq!(merge(&Fold::And, &parts).unwrap(), "*3\r\n:1\r\n:0\r\n:0\r\n");
        assert_eq!(merge(&Fold::And, &[b"*1\r\n:1\r\n", b"*0\r\n"]), Err(FoldError::Unexpected(1)));
        assert_eq!(merge(&Fold::And, &[b"*9999999999\r\n:1\r\n"]), Err(FoldError::Unexpected(0)));
    }

    #[test]
    fn subscribers_are_added_up_by_channel() {
        let parts =
            [&b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n"[..], b"*4\r\n$1\r\na\r\n:0\r\n$1\r\nb\r\n:2\r\n"];
        let sums = "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n";
        assert_eq!(merge(&Fold::Counts, &parts).unwrap(), sums);
        assert_eq!(merge(&Fold::Counts, &[parts[0], b"*0\r\n"]), Err(FoldError::Unexpected(1)));
        assert_eq!(merge(&Fold::Max, &[b":1\r\n", b":3\r\n", b":0\r\n"]).unwrap(), ":3\r\n");
    }

    #[test]
    fn a_key_is_drawn_from_servers_that_have_one() {
        let parts = [&b"$-1\r\n"[..], b"$1\r\na\r\n", b"_\r\n", b"$1\r\nb\r\n"];
        assert_eq!(merge(&Fold::Draw(0), &parts).unwrap(), "$1\r\na\r\n");
        assert_eq!(merge(&Fold::Draw(u32::MAX), &parts).unwrap(), "$1\r\nb\r\n");
        assert_eq!(merge(&Fold::Draw(7), &parts[..1]).unwrap(), "$-1\r\n");
        assert_eq!(merge(&Fold::Draw(0), &[b"$1\r\na\r\n", b"-ERR x\r\n"]), Err(FoldError::ErrorReply(1)));
    }

    /// B13: a part that failed, or that answered something odd, never makes a smaller answer.
    #[test]
    fn a_failed_part_fails_the_whole() {
        let concat = Fold::Concat { order: vec![0, 1] };
        assert_eq!(merge(&concat, &[b"*1\r\n$-1\r\n", b"-ERR x\r\n"]), Err(FoldError::ErrorReply(1)));
        assert_eq!(
            merge(&concat, &[b"*2\r\n$-1\r\n$-1\r\n", b"*1\r\n$-1\r\n"]),
            Err(FoldError::Unexpected(0))
        );
        assert_eq!(merge(&concat, &[b"*1\r\n$-1\r\n", b":1\r\n"]), Err(FoldError::Unexpected(1)));
        assert_eq!(merge(&Fold::Sum, &[b":1\r\n", b"-OOM\r\n"]), Err(FoldError::ErrorReply(1)));
        assert_eq!(merge(&Fold::Sum, &[b":1\r\n", b"+OK\r\n"]), Err(FoldError::Unexpected(1)));
        assert_eq!(
            merge(&Fold::Sum, &[b":9223372036854775807\r\n", b":1\r\n"]),
            Err(FoldError::Unexpected(1))
        );
        assert_eq!(merge(&Fold::AllOk, &[b"+OK\r\n", b":1\r\n"]), Err(FoldError::Unexpected(1)));
    }
}
