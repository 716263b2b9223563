//! The two versions of the wire format, and what replies look like in each.

use super::encode;

/// Which version of RESP a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every client understands.
    #[default]
    Resp2,
    /// What a client gets that has said HELLO 3.
    Resp3,
}

/// Replies whose form depends on the version, as Redis writes them in each.
impl Protocol {
    /// The number that HELLO takes and tells.
    pub fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }

    /// No value: `$-1` or `_`.
    pub fn null(self, out: &mut Vec<u8>) {
        match self {
            Self::Resp2 => encode::null(out),
            Self::Resp3 => out.extend_from_slice(b"_\r\n"),
        }
    }

    /// No array: `*-1` or `_`.
    pub fn null_array(self, out: &mut Vec<u8>) {
        match self {
            Self::Resp2 => out.extend_from_slice(b"*-1\r\n"),
            Self::Resp3 => out.extend_from_slice(b"_\r\n"),
        }
    }

    /// So many pairs of key and value follow: an array of twice as many, or a map.
    pub fn map(self, out: &mut Vec<u8>, pairs: usize) {
        match self {
            Self::Resp2 => encode::array(out, pairs * 2),
            Self::Resp3 => encode::head(out, b'%', pairs),
        }
    }

    /// So many different elements in no order follow: an array, or a set.
    pub fn set(self, out: &mut Vec<u8>, len: usize) {
        match self {
            Self::Resp2 => encode::array(out, len),
            Self::Resp3 => encode::head(out, b'~', len),
        }
    }

    /// So many elements follow that nobody asked for now: an array, or a push.
    pub fn push(self, out: &mut Vec<u8>, len: usize) {
        match self {
            Self::Resp2 => encode::array(out, len),
            Self::Resp3 => encode::head(out, b'>', len),
        }
    }

    /// Yes or no: 1 or 0, or a boolean.
    pub fn boolean(self, out: &mut Vec<u8>, value: bool) {
        match (self, value) {
            (Self::Resp2, _) => encode::integer(out, value.into()),
            (Self::Resp3, true) => out.extend_from_slice(b"#t\r\n"),
            (Self::Resp3, false) => out.extend_from_slice(b"#f\r\n"),
        }
    }

    /// A text for people: a bulk, or a verbatim string of plain text.
    pub fn text(self, out: &mut Vec<u8>, text: &[u8]) {
        match self {
            Self::Resp2 => encode::bulk(out, text),
            Self::Resp3 => {
                encode::head(out, b'=', text.len() + 4);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_version_has_its_own_forms() {
        let (two, three) = (Protocol::Resp2, Protocol::Resp3);
        assert_eq!(written(|out| two.null(out)), "$-1\r\n");
        assert_eq!(written(|out| two.null_array(out)), "*-1\r\n");
        assert_eq!(written(|out| three.null(out)), "_\r\n");
        assert_eq!(written(|out| three.null_array(out)), "_\r\n");
        assert_eq!(written(|out| two.map(out, 2)), "*4\r\n");
        assert_eq!(written(|out| three.map(out, 2)), "%2\r\n");
        assert_eq!(written(|out| two.set(out, 2)), "*2\r\n");
        assert_eq!(written(|out| three.set(out, 2)), "~2\r\n");
        assert_eq!(written(|out| three.push(out, 3)), ">3\r\n");
        assert_eq!(written(|out| two.boolean(out, true)), ":1\r\n");
        assert_eq!(written(|out| three.boolean(out, false)), "#f\r\n");
        assert_eq!(written(|out| two.text(out, b"ab")), "$2\r\nab\r\n");
        assert_eq!(written(|out| three.text(out, b"ab")), "=6\r\ntxt:ab\r\n");
    }
}
