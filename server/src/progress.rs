//! A progress bar on standard error, for work of more than a second and a person who watches.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anabranch_model::Clock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less than this needs no bar.
const QUIET: Duration = Duration::from_secs(1);

/// The progress of one command.
pub(crate) struct Progress<'a> {
    clock: &'a dyn Clock,
    started_at: Duration,
    length_bytes: Option<u64>,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    /// `length_bytes` is how much there is to do, if that is known.
    pub(crate) fn new(clock: &'a dyn Clock, length_bytes: Option<u64>) -> Self {
        Progress { clock, started_at: clock.elapsed(), length_bytes, bar: None }
    }

    /// So many bytes are done; the message says more.
    pub(crate) fn show(&mut self, bytes: u64, message: impl FnOnce() -> String) {
        let is_long = self.clock.elapsed().saturating_sub(self.started_at) >= QUIET;
        if self.bar.is_none() && is_long && io::stderr().is_terminal() {
            self.bar = Some(bar(self.length_bytes));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            bar.set_message(message());
        }
    }

    /// So many bytes of so many are done: how much there is to do may turn out while it is done.
    pub(crate) fn show_of(&mut self, bytes: u64, length_bytes: u64, message: impl FnOnce() -> String) {
        self.length_bytes = Some(length_bytes);
        if let Some(bar) = &self.bar {
            bar.set_length(length_bytes);
        }
        self.show(bytes, message);
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bar(length_bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match length_bytes {
        Some(length) => (ProgressBar::new(length), "{bar:30} {percent:>3} %  {msg}, {binary_bytes_per_sec}"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}, {binary_bytes_per_sec}"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    // A template that does not parse is a mistake of this file; the plain style shows the same figures.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
}
