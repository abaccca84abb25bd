//! Moments in headers and documents.

use anabranch_model::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

/// `Sun, 15 Nov 2026 18:15:00 GMT`
pub(super) fn http_date(moment: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&of(moment)).unwrap_or_default()
}

/// `2026-11-15T18:15:00.000Z`: whole seconds, so that a document says the same as the header of the object.
pub(super) fn iso(moment: Timestamp) -> String {
    of(moment).strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

/// A date in a header. What is no date counts as none, as HTTP has it.
pub(super) fn parse_http_date(text: &str) -> Option<Timestamp> {
    let moment =
        DateTimeParser::new().parse_timestamp(text).or_else(|_| text.parse::<jiff::Timestamp>()).ok()?;
    u64::try_from(moment.as_millisecond()).ok().map(Timestamp::from_millis)
}

fn of(moment: Timestamp) -> jiff::Timestamp {
    let millis = i64::try_from(moment.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_two_spellings() {
        let moment = Timestamp::from_millis(1_794_766_500_123);
        assert_eq!(http_date(moment), "Sun, 15 Nov 2026 18:15:00 GMT");
        assert_eq!(iso(moment), "2026-11-15T18:15:00.000Z");
        let second = Some(Timestamp::from_millis(1_794_766_500_000));
        for text in
            ["Sun, 15 Nov 2026 18:15:00 GMT", "Sun, 15 Nov 2026 19:15:00 +0100", "2026-11-15T18:15:00Z"]
        {
            assert_eq!(parse_http_date(text), second, "{text}");
        }
        for text in ["", "yesterday", "1794766500", "Sun, 15 Nov 1926 18:15:00 GMT"] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
        assert_eq!(http_date(Timestamp::from_millis(u64::MAX)).len(), 29);
    }
}
