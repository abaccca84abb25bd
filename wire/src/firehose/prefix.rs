//! The beginning of a key: text with expressions such as `!{timestamp:yyyy/MM/dd}` and `!{firehose:random-string}`.

use super::errors::invalid;
use crate::fault::Fault;

/// What a prefix without a time of its own is followed by.
const HOUR: &str = "%Y/%m/%d/%H/";
/// Longest prefix as it is written.
const BYTES_MAX: usize = 512;
/// Letters of a random text.
const RANDOM_CHARS: usize = 11;

/// A prefix that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix(Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// How the time is spelled, in the language of `strftime`.
    Time(String),
    Random,
    /// The kind of an error, in the prefix of what could not be delivered.
    ErrorType,
}

impl Prefix {
    /// Reads the prefix of objects.
    pub(super) fn of_objects(text: &str) -> Result<Self, Fault> {
        let mut prefix = Prefix::parse(text)?;
        if prefix.0.contains(&Part::ErrorType) {
            return Err(invalid("Prefix cannot contain !{firehose:error-output-type}."));
        }
        if !prefix.0.iter().any(|part| matches!(part, Part::Time(_))) {
            prefix.0.push(Part::Time(HOUR.to_owned()));
        }
        Ok(prefix)
    }

    /// Checks the prefix of errors against the one of objects, as the service does.
    pub(super) fn check_errors(text: Option<&str>, objects: &str) -> Result<(), Fault> {
        let errors = text.map(Prefix::parse).transpose()?;
        let has_type = errors.as_ref().is_some_and(|prefix| prefix.0.contains(&Part::ErrorType));
        if objects.contains("!{") && errors.is_none() {
            return Err(invalid("ErrorOutputPrefix is needed when Prefix contains expressions."));
        }
        if text.is_some_and(|text| text.contains("!{")) && !has_type {
            return Err(invalid("ErrorOutputPrefix must contain !{firehose:error-output-type}."));
        }
        Ok(())
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > BYTES_MAX {
            return Err(invalid(format!("A prefix can have {BYTES_MAX} bytes at most.")));
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("!{") {
            let (expression, behind) =
                after.split_once('}').ok_or_else(|| invalid(format!("!{{{after} has no end.")))?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::parse(expression)?);
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Prefix(parts))
    }

    /// The beginning of the key of an object whose first record came at this time. `seed` stands in for chance, so that an
    /// object that is stored again has the same key.
    pub(super) fn expand(&self, moment: jiff::Timestamp, seed: u128) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Time(format) => moment.strftime(format).to_string(),
            Part::Random => random(seed),
            Part::ErrorType => String::new(),
        };
        self.0.iter().map(part).collect()
    }
}

impl Part {
    fn parse(expression: &str) -> Result<Self, Fault> {
        match expression.split_once(':') {
            Some(("timestamp", pattern)) => time_format(pattern).map(Part::Time),
            Some(("firehose", "random-string")) => Ok(Part::Random),
            Some(("firehose", "error-output-type")) => Ok(Part::ErrorType),
            _ => Err(invalid(format!("The expression !{{{expression}}} is not supported."))),
        }
    }
}

/// The patterns of Java that tell parts of a time, as `strftime` spells them.
fn time_format(pattern: &str) -> Result<String, Fault> {
    let mut format = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (taken, spelled) = if first == '\'' {
            let quoted = rest[1..].split_once('\'').map(|(quoted, _)| quoted);
            let quoted = quoted.ok_or_else(|| invalid(format!("{pattern}: a quote has no end.")))?;
            // Two quotes in a row stand for one.
            let text = if quoted.is_empty() { "'".to_owned() } else { quoted.replace('%', "%%") };
            (quoted.len() + 2, text)
        } else if first.is_ascii_alphabetic() {
            let run = rest.len() - rest.trim_start_matches(first).len();
            let spelled = match &rest[..run] {
                "yyyy" | "uuuu" | "YYYY" => "%Y",
                "yy" => "%y",
                "MM" => "%m",
                "dd" => "%d",
                "DDD" => "%j",
                "HH" => "%H",
                "mm" => "%M",
                "ss" => "%S",
                "SSS" => "%3f",
                other => return Err(invalid(format!("{other} is no part of a time that is supported."))),
            };
            (run, spelled.to_owned())
        } else {
            (first.len_utf8(), if first == '%' { "%%".to_owned() } else { first.to_string() })
        };
        format.push_str(&spelled);
        rest = &rest[taken..];
    }
    Ok(format)
}

/// Letters that look like chance. Neighbouring seeds differ in all of them.
fn random(seed: u128) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) ^ (seed >> 64);
    let letters = (0..RANDOM_CHARS).map(|_| {
        state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
        let number = (state >> 120) as u8 % 36;
        if number < 10 { b'0' + number } else { b'a' + number - 10 }
    });
    letters.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let moment = "2026-11-15T08:05:09.042Z".parse().unwrap();
        Prefix::of_objects(text).unwrap().expand(moment, 1)
    }

    #[test]
    fn times_are_spelled_as_asked_for() {
        assert_eq!(expanded(""), "2026/11/15/08/");
        assert_eq!(expanded("raw/"), "raw/2026/11/15/08/");
        assert_eq!(expanded("a-!{timestamp:yyyy}/m=!{timestamp:MM}/x"), "a-2026/m=11/x");
        assert_eq!(expanded("!{timestamp:yyyy-MM-dd'T'HHmmss.SSS''%}/"), "2026-11-15T080509.042'%/");
        assert_eq!(expanded("100%-!{timestamp:'%Y'yy}"), "100%-%Y26");
    }

    #[test]
    fn random_texts_depend_on_the_seed_only() {
        let prefix = Prefix::of_objects("!{firehose:random-string}/").unwrap();
        let at = |seed| prefix.expand(jiff::Timestamp::UNIX_EPOCH, seed);
        assert_eq!(at(7), at(7));
        assert_ne!(at(7), at(8));
        assert_eq!(at(7).find('/'), Some(RANDOM_CHARS));
        assert!(at(7).ends_with("/1970/01/01/00/"), "{}", at(7));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "!{timestamp:yyyy",
            "!{timestamp:QQ}",
            "!{timestamp:'yyyy}",
            "!{partitionKeyFromQuery:id}",
            "!{}",
            "!{firehose:error-output-type}/",
            &"x".repeat(BYTES_MAX + 1),
        ] {
            assert!(Prefix::of_objects(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_have_a_prefix_where_objects_have_expressions() {
        let check = |errors: Option<&str>, objects| Prefix::check_errors(errors, objects).is_ok();
        assert!(check(None, "plain/") && check(Some("bad/"), "plain/"));
        assert!(!check(None, "!{timestamp:yyyy}/"));
        assert!(check(Some("bad/!{firehose:error-output-type}/"), "!{timestamp:yyyy}/"));
        assert!(!check(Some("bad/!{timestamp:yyyy}/"), "plain/"));
    }

    proptest::proptest! {
        #[test]
        fn any_prefix_is_read_or_refused(text in "(!\\{|\\}|timestamp:|firehose:|'|%|[yMdHmsS]{1,4}|\\PC){0,20}") {
            if let Ok(prefix) = Prefix::of_objects(&text) {
                prefix.expand(jiff::Timestamp::UNIX_EPOCH, 0);
            }
        }
    }
}
