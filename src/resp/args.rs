//! The arguments of one request, as spans into its bytes.

/// Where one argument lies in its request. Requests are at most 1 GiB (`Limits::request`), so 32 bits are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgSpan {
    /// Offset of the first byte of the argument's content, from the first byte of the request.
    pub start: u32,
    /// Length of the content in bytes.
    pub len: u32,
}

/// One complete request: its bytes in canonical RESP array form, and the spans of its arguments.
/// Argument 0 is the command's name. There is always at least one argument.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    raw: &'a [u8],
    spans: &'a [ArgSpan],
}

impl<'a> Args<'a> {
    /// `raw` is the whole request; every span lies inside it; `spans` is not empty.
    pub fn new(raw: &'a [u8], spans: &'a [ArgSpan]) -> Self {
        debug_assert!(!spans.is_empty());
        Self { raw, spans }
    }

    /// The request as it came, ready to be forwarded.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Number of arguments, the command's name included (as Redis counts arity).
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Argument `i`, or `None` past the end.
    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        self.spans.get(i).map(|span| self.slice(*span))
    }

    /// The command's name as the client wrote it.
    pub fn name(&self) -> &'a [u8] {
        self.slice(self.spans[0])
    }

    /// All arguments from `from` on.
    pub fn iter_from(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        this.spans.iter().skip(from).map(move |span| this.slice(*span))
    }

    /// The arguments from `from` on as a request of their own (COMMAND GETKEYS); `raw` stays the whole request's.
    /// `None` if there are none.
    pub fn without(&self, from: usize) -> Option<Args<'a>> {
        let spans = self.spans.get(from..).filter(|spans| !spans.is_empty())?;
        Some(Args { raw: self.raw, spans })
    }

    fn slice(&self, span: ArgSpan) -> &'a [u8] {
        &self.raw[span.start as usize..(span.start + span.len) as usize]
    }
}
