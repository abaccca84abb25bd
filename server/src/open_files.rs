//! How many files may be open. Connections count as files, and must not take those that the engine needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{CONNECTIONS_MAX, FILES_KEPT};

/// Raises the limit as far as the system lets us and we can use it. Most systems begin with a low one for the sake of old
/// programs.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (CONNECTIONS_MAX + FILES_KEPT) as u64;
    let reachable = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < reachable)
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum: limit.maximum })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// Most connections to the listen address at a time.
pub(crate) fn connections_max() -> usize {
    allowed(getrlimit(Resource::Nofile).current)
}

/// As many as the limit leaves after the engine has its files, but at least half of it.
fn allowed(files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    files.saturating_sub(FILES_KEPT).max(files / 2).clamp(1, CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_engine() {
        assert_eq!(allowed(None), CONNECTIONS_MAX);
        assert_eq!(allowed(Some(1 << 20)), CONNECTIONS_MAX);
        assert_eq!(allowed(Some(4_096)), 4_096 - FILES_KEPT);
        assert_eq!(allowed(Some(256)), 128);
        assert_eq!(allowed(Some(0)), 1);
    }
}
