//! Requests as the scanner would hand them over.

use shardwise::resp::{ArgSpan, Args};

/// A request and the spans of its arguments.
pub struct Request {
    raw: Vec<u8>,
    spans: Vec<ArgSpan>,
}

impl Request {
    pub fn new<T: AsRef<[u8]>>(args: &[T]) -> Request {
        let raw = encode(args);
        let mut end = format!("*{}\r\n", args.len()).len();
        let spans = args
            .iter()
            .map(|arg| {
                let len = arg.as_ref().len();
                let start = end + format!("${len}\r\n").len();
                end = start + len + 2;
                ArgSpan { start: start as u32, len: len as u32 }
            })
            .collect();
        Request { raw, spans }
    }

    /// From words with spaces between them.
    pub fn words(text: &str) -> Request {
        Request::new(&text.split(' ').collect::<Vec<_>>())
    }

    pub fn args(&self) -> Args<'_> {
        Args::new(&self.raw, &self.spans)
    }
}

/// A request in canonical form.
pub fn encode<T: AsRef<[u8]>>(args: &[T]) -> Vec<u8> {
    let mut raw = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        raw.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        raw.extend_from_slice(arg.as_ref());
        raw.extend_from_slice(b"\r\n");
    }
    raw
}
