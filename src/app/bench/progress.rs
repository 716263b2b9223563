//! The bar that shows a turn while it runs.

use indicatif::{ProgressBar, ProgressStyle};

use super::stop::Stop;
use crate::load::{Length, Progress, Watcher};

/// Shows the current turn on the standard error, if that is a terminal.
#[derive(Debug)]
pub struct Bar {
    quiet: bool,
    stop: Stop,
    bar: ProgressBar,
    length: Length,
}

impl Bar {
    /// `quiet`: shows nothing. The run ends when `stop` is asked for.
    pub fn new(quiet: bool, stop: Stop) -> Self {
        Self { quiet, stop, bar: ProgressBar::hidden(), length: Length::Requests(0) }
    }
}

impl Watcher for Bar {
    fn begins(&mut self, what: &str, length: Length) {
        self.length = length;
        if self.quiet {
            return;
        }
        let len = match length {
            Length::Requests(n) => n,
            Length::Time(time) => time.as_millis() as u64,
        };
        let style = ProgressStyle::with_template("{prefix:32!} {bar:24} {percent:>3}%  {msg}");
        self.bar = ProgressBar::new(len).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_prefix(what.to_owned());
        self.bar.set_message("connecting");
        self.bar.tick();
    }

    fn progress(&mut self, progress: &Progress) {
        let position = match self.length {
            Length::Requests(_) => progress.done,
            Length::Time(_) => progress.elapsed.as_millis() as u64,
        };
        self.bar.set_position(position);
        let errors =
            if progress.errors > 0 { format!("  {} errors", progress.errors) } else { String::new() };
        self.bar.set_message(format!("{:.0} req/s  p99 {:.3} ms{errors}", progress.rate, progress.p99_ms));
    }

    fn ends(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_asked_for()
    }
}
