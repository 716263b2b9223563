//! Every path that a file names, wherever it stands.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::sources::Source;

/// A path that a file names: `["crate", "resp", "Args"]`, `["std", "fs", "read"]`, `["println!"]`, `[".elapsed"]`.
#[derive(Debug)]
pub struct Mention {
    pub path: Vec<String>,
    pub line: usize,
    /// The module in which it stands.
    pub module: Vec<String>,
    /// Under `#[cfg(test)]`.
    pub in_tests: bool,
}

impl Mention {
    /// The path from the crate's root, for one that begins with `crate`, `self` or `super`.
    pub fn inside_crate(&self) -> Option<Vec<String>> {
        let mut at = match self.path[0].as_str() {
            "crate" => Vec::new(),
            // Alone it is a value or a visibility; it leads out of the module only with something after it.
            "self" | "super" if self.path.len() > 1 => self.module.clone(),
            _ => return None,
        };
        for name in &self.path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => {
                    at.pop();
                }
                _ => at.push(name.clone()),
            }
        }
        Some(at)
    }
}

/// What one pass over a file's tokens collects.
#[derive(Default)]
pub struct Scan {
    pub mentions: Vec<Mention>,
    /// `#[cfg(test)] mod name;`: modules whose own files are tests.
    pub test_modules: Vec<Vec<String>>,
}

impl Scan {
    pub fn of(file: &Source, in_tests: bool) -> Self {
        let tokens: TokenStream =
            file.text.parse().unwrap_or_else(|e| panic!("src/{} is no Rust: {e}", file.path.display()));
        let mut scan = Self::default();
        scan.walk(tokens, &file.module, in_tests);
        scan
    }

    fn walk(&mut self, tokens: TokenStream, module: &[String], in_tests: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        // Set by `#[cfg(test)]`, until the end of the item that follows.
        let mut test_item = false;
        let mut i = 0;
        while i < tokens.len() {
            match &tokens[i] {
                TokenTree::Ident(word) if word == "mod" && is_ident(tokens.get(i + 1)) => {
                    let inner = [module, &[tokens[i + 1].to_string()]].concat();
                    match tokens.get(i + 2) {
                        Some(TokenTree::Group(body)) => {
                            self.walk(body.stream(), &inner, in_tests || test_item)
                        }
                        _ if test_item => self.test_modules.push(inner),
                        _ => {}
                    }
                    test_item = false;
                    i += 3;
                }
                TokenTree::Ident(_) => {
                    let preceded_by_dot = i > 0 && is_punct(tokens.get(i - 1), '.');
                    let mut paths = Vec::new();
                    let next = read_path(&tokens, i, &[], &mut paths);
                    for (mut path, line) in paths {
                        if preceded_by_dot {
                            path.insert(0, format!(".{}", path[0]));
                            path.truncate(1);
                        }
                        let renamed = is_word(tokens.get(next), "as");
                        if path == ["crate"] && !renamed {
                            continue; // `pub(crate)`
                        }
                        self.mentions.push(Mention {
                            path,
                            line,
                            module: module.to_vec(),
                            in_tests: in_tests || test_item,
                        });
                    }
                    i = next;
                }
                TokenTree::Group(group) => {
                    let attribute = group.delimiter() == Delimiter::Bracket
                        && (is_punct(tokens.get(i.wrapping_sub(1)), '#')
                            || is_punct(tokens.get(i.wrapping_sub(1)), '!'));
                    self.walk(group.stream(), module, in_tests || test_item);
                    if attribute {
                        test_item |= group.stream().to_string().replace(' ', "") == "cfg(test)";
                    } else if group.delimiter() == Delimiter::Brace {
                        test_item = false;
                    }
                    i += 1;
                }
                TokenTree::Punct(punct) => {
                    test_item &= punct.as_char() != ';';
                    i += 1;
                }
                TokenTree::Literal(_) => i += 1,
            }
        }
    }
}

/// Reads one path, or all paths of a `use` tree, that begins at `at`; returns where it ends.
fn read_path(
    tokens: &[TokenTree],
    at: usize,
    prefix: &[String],
    out: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let line = tokens[at].span().start().line;
    let mut path = prefix.to_vec();
    let mut i = at;
    loop {
        match tokens.get(i) {
            Some(TokenTree::Ident(word)) if word == "self" && !path.is_empty() => {}
            Some(TokenTree::Ident(word)) => path.push(word.to_string().trim_start_matches("r#").to_owned()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => path.push("*".into()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in
                    inner.split(|token| is_punct(Some(token), ',')).filter(|branch| !branch.is_empty())
                {
                    read_path(branch, 0, &path, out);
                }
                return i + 1;
            }
            // `Vec::<T>`
            _ => break,
        }
        i += 1;
        if is_punct(tokens.get(i), ':') && is_punct(tokens.get(i + 1), ':') {
            i += 2;
        } else {
            break;
        }
    }
    let macro_call = is_punct(tokens.get(i), '!') && matches!(tokens.get(i + 1), Some(TokenTree::Group(_)));
    if macro_call && let Some(name) = path.last_mut() {
        name.push('!');
    }
    out.push((path, line));
    i
}

fn is_ident(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Ident(_)))
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}
