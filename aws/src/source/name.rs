//! The names of streams of changes.
//!
//! AWS names such a stream by its table and by a label, the moment at which it was turned on. A name of the model has
//! room for both, unless the table's name is very long: then the name holds its beginning and its hash, and the stream is
//! looked for among all of the account.

use anabranch_model::{Error, HashKey, Result, StreamName};

/// Stands between the name of a table and a label.
const WHOLE: &str = "-at-";
/// Stands between what is left of the name of a table and a label.
const CUT: &str = "-of-";
/// Characters of a long name that are kept.
const KEPT_CHARS: usize = 48;

/// What a name says about a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamLabel {
    pub(crate) owner: Owner,
    /// As AWS writes it.
    pub(crate) label: String,
}

/// Whose changes a stream has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The table with this name.
    Whole(String),
    /// The table whose name is cut to this.
    Cut(String),
}

impl StreamLabel {
    /// The name of the stream of a table with a label.
    pub(crate) fn name(table: &str, label: &str) -> Result<StreamName> {
        let label = label.replace(':', "_");
        let whole = StreamName::new(&format!("{table}{WHOLE}{label}"));
        whole.or_else(|_| StreamName::new(&format!("{}{CUT}{label}", cut(table))))
    }

    /// What a name says; an error if no stream of changes has such a name.
    pub(crate) fn parse(stream: &StreamName) -> Result<StreamLabel> {
        let text = stream.as_str();
        // A label has none of the separators, so the last one is ours whatever the table is called.
        let whole = text.rfind(WHOLE).map(|at| (at, true));
        let cut = text.rfind(CUT).map(|at| (at, false));
        let Some((at, is_whole)) = whole.max(cut).filter(|(at, _)| *at > 0) else {
            return Err(Error::StreamNotFound(stream.clone()));
        };
        let table = text[..at].to_string();
        let label = text[at + WHOLE.len()..].replace('_', ":");
        Ok(StreamLabel { owner: if is_whole { Owner::Whole(table) } else { Owner::Cut(table) }, label })
    }
}

impl Owner {
    /// Whether it is the table with this name.
    pub(crate) fn is(&self, table: &str) -> bool {
        match self {
            Owner::Whole(name) => name == table,
            Owner::Cut(name) => *name == cut(table),
        }
    }
}

fn cut(table: &str) -> String {
    let start: String = table.chars().take(KEPT_CHARS).collect();
    format!("{start}-{:032x}", HashKey::of(table.as_bytes()).get())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = "2026-11-15T20:51:10.252";

    #[test]
    fn names_tell_table_and_label() {
        for table in ["clicks", "a_b.c-d", "x-at-y", "x-of-y", "space.table", &"t".repeat(101)] {
            let name = StreamLabel::name(table, LABEL).unwrap();
            let known = StreamLabel::parse(&name).unwrap();
            assert_eq!((&known.owner, known.label.as_str()), (&Owner::Whole(table.to_string()), LABEL));
            assert!(known.owner.is(table) && !known.owner.is("other"));
        }
    }

    #[test]
    fn a_long_table_is_known_by_its_hash() {
        let [one, other] = ["a", "b"].map(|end| format!("{}{end}", "x-at-".repeat(50)));
        let name = StreamLabel::name(&one, LABEL).unwrap();
        assert_ne!(name, StreamLabel::name(&other, LABEL).unwrap());
        let known = StreamLabel::parse(&name).unwrap();
        assert_eq!(known.label, LABEL);
        assert!(known.owner.is(&one) && !known.owner.is(&other), "{known:?}");
    }

    #[test]
    fn other_names_are_of_no_table() {
        for name in ["clicks", "-at-2026", "at", "-of-"] {
            let name = StreamName::new(name).unwrap();
            assert_eq!(StreamLabel::parse(&name), Err(Error::StreamNotFound(name)));
        }
    }
}
