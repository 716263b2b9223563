//! The notation of the phrases, parsed once.

/// A part of a phrase.
#[derive(Debug)]
pub enum Node {
    /// To be filled in, or to be sent as it is.
    Word(&'static str),
    /// One of several sequences.
    Choice {
        /// The sequences.
        options: Vec<Vec<Node>>,
        /// Or none of them.
        optional: bool,
        /// Or several, one after the other.
        repeated: bool,
    },
}

/// Parses a phrase; panics when its brackets don't match.
pub fn parse(phrase: &'static str) -> Vec<Node> {
    let mut rest = phrase;
    let (mut options, end) = alternatives(&mut rest);
    assert!(end.is_none() && options.len() == 1, "a bracket or a bar too many: {phrase}");
    options.pop().expect("there is one")
}

/// Sequences up to a closing bracket, which is returned, or to the end.
fn alternatives(rest: &mut &'static str) -> (Vec<Vec<Node>>, Option<char>) {
    let mut options = vec![Vec::new()];
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return (options, None) };
        let sequence = options.last_mut().expect("it begins with one");
        match first {
            '[' | '(' => {
                *rest = &rest[1..];
                let (inner, end) = alternatives(rest);
                assert_eq!(end, Some(if first == '[' { ']' } else { ')' }), "before {rest:?}");
                let repeated = rest.starts_with('+');
                *rest = rest.strip_prefix('+').unwrap_or(rest);
                sequence.push(Node::Choice { options: inner, optional: first == '[', repeated });
            }
            ']' | ')' => {
                *rest = &rest[1..];
                return (options, Some(first));
            }
            '|' => {
                *rest = &rest[1..];
                options.push(Vec::new());
            }
            _ => {
                let end = rest.find([' ', '[', ']', '(', ')', '|']).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                sequence.push(Node::Word(word));
                *rest = behind;
            }
        }
    }
}
