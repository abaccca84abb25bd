//! What the arguments of several commands are made of: paths, paths with values, and conditions.

use anabranch_model::table::expression::{exists, missing};
use anabranch_model::table::{Condition, Path, Value, path};
use clap::Args;

use super::plain::Form;
use crate::failure::Failure;

/// What must hold for a write to happen.
#[derive(Debug, Args)]
pub(super) struct ConditionArgs {
    /// Only if the value at this path is this one; may be given several times
    #[arg(long = "if", value_name = "PATH=JSON")]
    equal: Vec<String>,
    /// Only if there is something at this path
    #[arg(long, value_name = "PATH")]
    if_exists: Vec<String>,
    /// Only if there is nothing at this path
    #[arg(long, value_name = "PATH")]
    if_missing: Vec<String>,
}

impl ConditionArgs {
    /// All that was demanded, if anything was.
    pub(super) fn condition(&self, form: Form) -> Result<Option<Condition>, Failure> {
        let mut all = Vec::new();
        for text in &self.equal {
            let (path, value) = assignment(form, text)?;
            all.push(path.equals(value));
        }
        for text in &self.if_exists {
            all.push(exists(parse_path(text)?));
        }
        for text in &self.if_missing {
            all.push(missing(parse_path(text)?));
        }
        Ok(if all.len() > 1 { Some(Condition::And(all)) } else { all.pop() })
    }
}

/// A path and a value, as in `address.city="Ulm"`.
pub(super) fn assignment(form: Form, text: &str) -> Result<(Path, Value), Failure> {
    let Some((path, json)) = text.split_once('=') else {
        return Err(Failure::usage(format!("{text} has no `=`"), "write a path and JSON, for instance n=1"));
    };
    Ok((parse_path(path)?, form.value(json)?))
}

/// A path as in `address.lines[0]`.
pub(super) fn parse_path(text: &str) -> Result<Path, Failure> {
    let wrong = || {
        let hint = "write names with points between them and numbers in brackets, for instance lines[0].text";
        Failure::usage(format!("`{text}` is not a path"), hint)
    };
    let mut found: Option<Path> = None;
    for part in text.split('.') {
        let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return Err(wrong());
        }
        let mut next = match found {
            None => path(name),
            Some(path) => path.name(name),
        };
        let mut rest = indexes;
        while !rest.is_empty() {
            let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (index, behind) = inner.ok_or_else(wrong)?;
            next = next.index(index.parse().map_err(|_| wrong())?);
            rest = behind;
        }
        found = Some(next);
    }
    found.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_names_and_numbers() {
        assert_eq!(parse_path("a").unwrap(), path("a"));
        assert_eq!(parse_path("a.b[0][12].c").unwrap(), path("a").name("b").index(0).index(12).name("c"));
        for wrong in ["", ".", "a.", "[0]", "a[", "a[x]", "a[0]b", "a[-1]"] {
            assert!(parse_path(wrong).is_err(), "{wrong}");
        }
    }
}
