//! The bar that shows how far a bench is: on standard error, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over the rounds of a bench.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar of so many steps.
    pub(crate) fn new(steps: usize) -> Progress {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:32} {pos}/{len}  {eta} left") {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Says what is going on.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// One step further.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
