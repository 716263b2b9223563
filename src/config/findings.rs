//! What reading a file finds on the way: all its faults rather than the first, and words for the log.

use std::fmt;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, ConfigErrors, Reason};
use super::source::NO_LINE;

/// Faults that are kept; of a file with more, the rest is only counted.
const MOST_ERRORS: usize = 100;

/// A word about a setting that is accepted, for the log at start and for `-t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// Key path (`alpha.hash`), and the reason.
    pub text: String,
}

/// What reading a file has found so far.
#[derive(Debug)]
pub(super) struct Findings {
    file: PathBuf,
    errors: Vec<ConfigError>,
    left_out: usize,
    warnings: Vec<Warning>,
}

// === impl Findings ===

impl Findings {
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), left_out: 0, warnings: Vec::new() }
    }

    /// Whether no fault has been found so far.
    pub(super) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Notes a fault of the setting `path` on `line`.
    pub(super) fn error(
        &mut self,
        line: usize,
        path: impl Into<String>,
        reason: Reason,
        hint: Option<String>,
    ) {
        if self.errors.len() == MOST_ERRORS {
            self.left_out += 1;
            return;
        }
        self.errors.push(ConfigError {
            line: (line != NO_LINE).then_some(line),
            path: path.into(),
            hint,
            ..ConfigError::whole(&self.file, reason)
        });
    }

    /// Notes a fault of the file as a whole, however many others there are.
    pub(super) fn whole(&mut self, line: Option<usize>, reason: Reason) {
        self.errors.push(ConfigError { line, ..ConfigError::whole(&self.file, reason) });
    }

    pub(super) fn warning(&mut self, line: usize, path: &str, why: impl fmt::Display) {
        self.warnings
            .push(Warning { line: (line != NO_LINE).then_some(line), text: format!("{path}: {why}") });
    }

    /// The warnings in the order of the file, or the faults.
    pub(super) fn conclude(mut self) -> Result<Vec<Warning>, ConfigErrors> {
        if self.errors.is_empty() {
            self.warnings.sort_by_key(|warning| warning.line);
            return Ok(self.warnings);
        }
        self.errors.sort_by_key(|error| error.line);
        Err(ConfigErrors { errors: self.errors, left_out: self.left_out })
    }
}

// === impl Warning ===

impl fmt::Display for Warning {
    /// `line LINE: PATH: WHY`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}
