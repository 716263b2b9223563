//! Writes RESP into a buffer.

/// `+text`. The text has no CR or LF.
pub fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, b'+', text.as_bytes());
}

/// `:n`.
pub fn integer(out: &mut Vec<u8>, n: i64) {
    out.push(b':');
    if n < 0 {
        out.push(b'-');
    }
    decimal(out, n.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

/// `$len`, the bytes.
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    decimal(out, bytes.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The null of RESP2, `$-1`.
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"$-1\r\n");
}

/// `*len`; the elements follow.
pub fn array(out: &mut Vec<u8>, len: usize) {
    head(out, b'*', len);
}

/// The head of an aggregate of type `kind`, whose `len` elements (or pairs) follow.
pub(super) fn head(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.push(kind);
    decimal(out, len as u64);
    out.extend_from_slice(b"\r\n");
}

/// A request in canonical form.
pub fn request<'a>(out: &mut Vec<u8>, args: impl ExactSizeIterator<Item = &'a [u8]>) {
    array(out, args.len());
    args.for_each(|arg| bulk(out, arg));
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_edges() {
        for n in [0, 1, -1, 9, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            integer(&mut out, n);
            assert_eq!(out, format!(":{n}\r\n").into_bytes());
        }
    }
}
