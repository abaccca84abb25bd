//! Errors that a test plants: which calls fail, and how often.

use std::io;

use crate::operation::SyncEvent;

/// Which calls fail. In a pattern, `*` stands for any run of characters; the root folder is the empty path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pattern: String,
    passed_first: usize,
    repeats: bool,
}

impl Fault {
    /// The next call on a matching path fails, and those after it succeed.
    pub fn next(pattern: &str) -> Self {
        Fault { pattern: pattern.to_owned(), passed_first: 0, repeats: false }
    }

    /// Every call on a matching path fails, until [`crate::SimDisk::clear_faults`].
    pub fn each(pattern: &str) -> Self {
        Fault { repeats: true, ..Fault::next(pattern) }
    }

    /// Lets `count` matching calls pass before the first that fails.
    pub fn after(self, count: usize) -> Self {
        Fault { passed_first: count, ..self }
    }
}

/// Decides over a sync: true if it shall do nothing.
pub(crate) type Ignore = Box<dyn Fn(&SyncEvent) -> bool + Send + Sync>;

/// The faults of one disk.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) syncs: Vec<Fault>,
    pub(crate) writes: Vec<Fault>,
    pub(crate) reads: Vec<Fault>,
    pub(crate) ignored_syncs: Vec<Ignore>,
}

/// Whether one of `faults` strikes a call on `path`; a fault that strikes once is used up by it.
pub(crate) fn strikes(faults: &mut Vec<Fault>, path: &str) -> bool {
    for index in 0..faults.len() {
        let fault = &mut faults[index];
        if !matches(&fault.pattern, path) {
            continue;
        }
        if fault.passed_first > 0 {
            fault.passed_first -= 1;
            continue;
        }
        if !fault.repeats {
            faults.remove(index);
        }
        return true;
    }
    false
}

/// The error that a fault causes.
pub(crate) fn failure(call: &str, path: &str) -> io::Error {
    io::Error::other(format!("simulated failure: {call} {path}"))
}

fn matches(pattern: &str, path: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let Some(tail) = path.strip_prefix(head) else {
        return false;
    };
    let starts = tail.char_indices().map(|(start, _)| start).chain([tail.len()]);
    starts.into_iter().any(|start| matches(rest, &tail[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run() {
        for (pattern, path, expected) in [
            ("journal/0", "journal/0", true),
            ("journal/0", "journal/01", false),
            ("journal/*", "journal/01", true),
            ("journal/*", "journal", false),
            ("*.tmp", "a/b.tmp", true),
            ("*b*d", "abcd", true),
            ("*b*d", "abcde", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_fault_strikes_once_or_always_after_its_pause() {
        let mut faults = vec![Fault::next("a").after(1)];
        assert_eq!([1, 2, 3].map(|_| strikes(&mut faults, "a")), [false, true, false]);
        let mut faults = vec![Fault::each("a").after(1)];
        assert_eq!([1, 2, 3].map(|_| strikes(&mut faults, "a")), [false, true, true]);
        assert!(!strikes(&mut faults, "b"));
    }
}
