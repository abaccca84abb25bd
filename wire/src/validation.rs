//! Checks of a request, in the words in which the services tell of them: all that is wrong is told at once.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::fault::Fault;

/// Most characters of a refused value that the answer repeats.
const SHOWN_CHARS_MAX: usize = 1_024;

/// Most findings of one call. The services tell of no more either.
const FINDINGS_MAX: usize = 10;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    findings: Vec<String>,
}

/// What a text must look like.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    /// As the service spells it.
    pub(crate) text: &'static str,
    /// The same as a function.
    pub(crate) matches: fn(&str) -> bool,
}

impl Validation {
    /// A value that must be there.
    pub(crate) fn required<T>(&mut self, field: &str, value: &Option<T>) -> &mut Self {
        if value.is_none() {
            self.find(format_args!(
                "Value null at '{field}' failed to satisfy constraint: Member must not be null"
            ));
        }
        self
    }

    /// The length of a text, in characters.
    pub(crate) fn length(
        &mut self,
        field: &str,
        value: Option<&str>,
        allowed: RangeInclusive<usize>,
    ) -> &mut Self {
        if let Some(value) = value {
            self.size(field, value, value.chars().count(), allowed);
        }
        self
    }

    /// How many entries a list or map has, or bytes a value; `shown` stands for it in the message.
    pub(crate) fn size(
        &mut self,
        field: &str,
        shown: impl Display,
        size: usize,
        allowed: RangeInclusive<usize>,
    ) -> &mut Self {
        if size < *allowed.start() {
            let least = allowed.start();
            self.refuse(field, shown, format_args!("have length greater than or equal to {least}"));
        } else if size > *allowed.end() {
            let most = allowed.end();
            self.refuse(field, shown, format_args!("have length less than or equal to {most}"));
        }
        self
    }

    /// What a text must look like.
    pub(crate) fn pattern(&mut self, field: &str, value: Option<&str>, pattern: Pattern) -> &mut Self {
        if let Some(value) = value.filter(|value| !(pattern.matches)(value)) {
            self.refuse(field, value, format_args!("satisfy regular expression pattern: {}", pattern.text));
        }
        self
    }

    /// A number within bounds.
    pub(crate) fn range(
        &mut self,
        field: &str,
        value: Option<i64>,
        allowed: RangeInclusive<i64>,
    ) -> &mut Self {
        match value {
            Some(value) if value < *allowed.start() => {
                let least = allowed.start();
                self.refuse(field, value, format_args!("have value greater than or equal to {least}"));
            }
            Some(value) if value > *allowed.end() => {
                let most = allowed.end();
                self.refuse(field, value, format_args!("have value less than or equal to {most}"));
            }
            _ => {}
        }
        self
    }

    /// A number within bounds that the answer does not repeat.
    pub(crate) fn range_of_unshown(
        &mut self,
        field: &str,
        value: Option<i64>,
        allowed: RangeInclusive<i64>,
    ) -> &mut Self {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            let (relation, bound) = match value < *allowed.start() {
                true => ("greater", allowed.start()),
                false => ("less", allowed.end()),
            };
            self.refuse_unshown(field, format_args!("have value {relation} than or equal to {bound}"));
        }
        self
    }

    /// How many entries a list has at most that the answer does not repeat.
    pub(crate) fn size_of_unshown(&mut self, field: &str, size: usize, most: usize) -> &mut Self {
        if size > most {
            self.refuse_unshown(field, format_args!("have length less than or equal to {most}"));
        }
        self
    }

    /// The length of every entry of a list or map. They are told of together, as the service does; `shown` is all of
    /// them, and `whose` says which of their sides is meant.
    pub(crate) fn lengths<'v>(
        &mut self,
        field: &str,
        shown: impl Display,
        whose: &str,
        entries: impl IntoIterator<Item = &'v String>,
        allowed: RangeInclusive<usize>,
    ) -> &mut Self {
        if entries.into_iter().any(|entry| !allowed.contains(&entry.chars().count())) {
            let shown: String = shown.to_string().chars().take(SHOWN_CHARS_MAX).collect();
            let (least, most) = (allowed.start(), allowed.end());
            self.find(format_args!(
                "Value '{shown}' at '{field}' failed to satisfy constraint: {whose} must satisfy constraint: [Member must \
                 have length less than or equal to {most}, Member must have length greater than or equal to {least}]"
            ));
        }
        self
    }

    /// One of a few words.
    pub(crate) fn one_of(&mut self, field: &str, value: Option<&str>, allowed: &[&str]) -> &mut Self {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            let set = allowed.join(", ");
            self.refuse(field, value, format_args!("satisfy enum value set: [{set}]"));
        }
        self
    }

    /// What every name of a map must be like. Of each the same is told, whatever is wrong with it.
    pub(crate) fn map_keys(&mut self, field: &str, fit: bool, must: impl Display) -> &mut Self {
        self.entries(field, "{...}", fit, "keys", must)
    }

    /// What every value of a map must be like; `shown` stands for the map.
    pub(crate) fn map_values(
        &mut self,
        field: &str,
        shown: impl Display,
        fit: bool,
        must: impl Display,
    ) -> &mut Self {
        self.entries(field, shown, fit, "value", must)
    }

    fn entries(
        &mut self,
        field: &str,
        shown: impl Display,
        fit: bool,
        what: &str,
        must: impl Display,
    ) -> &mut Self {
        if !fit {
            let shown: String = shown.to_string().chars().take(SHOWN_CHARS_MAX).collect();
            self.find(format_args!(
                "Value '{shown}' at '{field}' failed to satisfy constraint: Map {what} must satisfy constraint: [{must}]"
            ));
        }
        self
    }

    fn refuse(&mut self, field: &str, value: impl Display, must: impl Display) {
        let value: String = value.to_string().chars().take(SHOWN_CHARS_MAX).collect();
        self.find(format_args!(
            "Value '{value}' at '{field}' failed to satisfy constraint: Member must {must}"
        ));
    }

    fn refuse_unshown(&mut self, field: &str, must: impl Display) {
        self.find(format_args!("Value at '{field}' failed to satisfy constraint: Member must {must}"));
    }

    fn find(&mut self, finding: impl Display) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding.to_string());
        }
    }

    /// Everything that was found, as one fault.
    pub(crate) fn done(&mut self) -> Result<(), Fault> {
        let findings = std::mem::take(&mut self.findings);
        let count = findings.len();
        if count == 0 {
            return Ok(());
        }
        let errors = if count == 1 { "error" } else { "errors" };
        Err(Fault::validation(format!("{count} validation {errors} detected: {}", findings.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: Pattern =
        Pattern { text: "[a-z]+", matches: |text| text.bytes().all(|b| b.is_ascii_lowercase()) };

    #[test]
    fn everything_wrong_is_told_at_once() {
        let mut validation = Validation::default();
        validation
            .required::<u8>("shardId", &None)
            .length("streamName", Some(""), 1..=128)
            .pattern("streamName", Some("A!"), LETTERS)
            .range("limit", Some(0), 1..=10)
            .one_of("type", Some("X"), &["A", "B"]);
        let fault = validation.done().unwrap_err();
        assert_eq!(fault.code, "ValidationException");
        assert_eq!(
            fault.message,
            "5 validation errors detected: \
             Value null at 'shardId' failed to satisfy constraint: Member must not be null; \
             Value '' at 'streamName' failed to satisfy constraint: Member must have length greater than or equal to 1; \
             Value 'A!' at 'streamName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-z]+; \
             Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1; \
             Value 'X' at 'type' failed to satisfy constraint: Member must satisfy enum value set: [A, B]"
        );
    }

    #[test]
    fn but_no_more_than_ten_things() {
        let mut validation = Validation::default();
        for number in 0..1_000 {
            validation.required::<u8>(&format!("a.{number}"), &None).range("limit", Some(0), 1..=10);
        }
        let message = validation.done().unwrap_err().message;
        assert!(message.starts_with("10 validation errors detected: Value null at 'a.0' "), "{message}");
        assert_eq!(message.matches("failed to satisfy").count(), 10);
    }

    #[test]
    fn what_is_allowed_or_absent_passes() {
        let mut validation = Validation::default();
        validation
            .required("a", &Some(1))
            .length("b", Some("äöü"), 3..=3)
            .length("b", None, 1..=2)
            .pattern("c", Some("abc"), LETTERS)
            .range("d", Some(10), 1..=10)
            .range("d", None, 1..=10)
            .one_of("e", None, &[]);
        assert_eq!(validation.done(), Ok(()));
    }
}
