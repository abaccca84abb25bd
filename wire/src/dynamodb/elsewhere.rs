//! What tables can be told elsewhere and not here: policies of their own, and copies in other regions. To take it and to do
//! nothing would be a lie.

use serde::de::IgnoredAny;

use crate::fault::Fault;

/// Refuses members that ask for what cannot be done.
pub(super) fn refuse(members: &[(&str, &Option<IgnoredAny>)]) -> Result<(), Fault> {
    match members.iter().find(|(_, given)| given.is_some()) {
        Some((name, _)) => Err(Fault::validation(format!(
            "{name} is not supported here: tables have no policies, and no copies in other regions"
        ))),
        None => Ok(()),
    }
}
