//! How much lies in a queue or a table before it is measured.

use clap::Args;

use super::options::Bounds;

/// What the goals speak of.
const FULL: usize = 1_000_000;
/// Entries for each MiB of a round: 200,000 at the default of 64 MiB, so that a run is over within two minutes.
const ENTRIES_PER_MEGABYTE: usize = 3_125;

/// How many messages or items there are.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Scale {
    /// Fill with a million entries, not with 3,125 for each MiB of a round
    #[arg(long)]
    pub(crate) full: bool,
}

impl Scale {
    /// Messages in a queue, or items in a table.
    pub(crate) fn entries(self, bounds: &Bounds) -> usize {
        if self.full { FULL } else { bounds.megabytes as usize * ENTRIES_PER_MEGABYTE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_grow_with_the_rounds_unless_the_goal_is_measured() {
        let bounds = |megabytes| Bounds { rounds: 5, seconds: 1, megabytes, dir: None, only: None };
        let entries = |full, megabytes| Scale { full }.entries(&bounds(megabytes));
        assert_eq!((entries(false, 64), entries(false, 1)), (200_000, 3_125));
        assert_eq!((entries(true, 64), entries(true, 1)), (1_000_000, 1_000_000));
    }
}
