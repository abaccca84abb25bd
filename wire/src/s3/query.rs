//! The query of a request, decoded exactly.

use percent_encoding::percent_decode_str;

use super::errors::invalid;
use crate::fault::Fault;

/// Names and values in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query. What is no text is refused.
    pub(super) fn parse(text: &str) -> Result<Query, Fault> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(&name.replace('+', " "))?, decode(&value.replace('+', " "))?))
        });
        pairs.collect::<Result<_, Fault>>().map(Query)
    }

    /// The first value of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether the name is there, with a value or without.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A value, unless it is missing or empty.
    pub(super) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// How many entries are wanted, at most `most`; that many if nothing is said.
    pub(super) fn limit(&self, name: &str, most: usize) -> Result<usize, Fault> {
        let Some(text) = self.filled(name) else { return Ok(most) };
        match text.parse::<i64>() {
            Ok(number @ 0..=2_147_483_647) => Ok((number as usize).min(most)),
            Ok(_) => Err(invalid(format!("Argument {name} must be an integer between 0 and 2147483647"))),
            Err(_) => Err(invalid(format!("Provided {name} not an integer or within integer range"))),
        }
    }

    /// All pairs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Decodes a part of an address. What is no UTF-8 is refused, and so is a percent sign without two digits.
pub(super) fn decode(text: &str) -> Result<String, Fault> {
    let refused = || Fault::client("InvalidURI", "Couldn't parse the specified URI.");
    let digits = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if text.split('%').skip(1).any(|rest| !digits(rest)) {
        return Err(refused());
    }
    percent_decode_str(text).decode_utf8().map(|text| text.into_owned()).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_the_first_counts() {
        let query = Query::parse("delete&prefix=a+b%2Bc%2F%00&prefix=x&empty=&max-keys=5").unwrap();
        assert!(query.has("delete") && !query.has("Delete"));
        assert_eq!(query.get("prefix"), Some("a b+c/\0"));
        assert_eq!((query.get("empty"), query.filled("empty")), (Some(""), None));
        assert_eq!((query.limit("max-keys", 1_000), query.limit("max-parts", 1_000)), (Ok(5), Ok(1_000)));
        for text in ["-1", "2147483648", "x", "1.5", " 1"] {
            let query = Query::parse(&format!("max-keys={text}")).unwrap();
            assert!(
                query.limit("max-keys", 1_000).is_err_and(|fault| fault.code == "InvalidArgument"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for text in ["a=%", "a=%2", "a=%zz", "a=%ff", "%c3=1", "a=%2%32"] {
            assert!(Query::parse(text).is_err_and(|fault| fault.code == "InvalidURI"), "{text}");
        }
        assert_eq!(decode("%25%c3%A4%2e.").unwrap(), "%ä..");
    }
}
