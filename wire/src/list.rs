//! Lists of a request that have few entries by the rules of their service. What comes behind one entry too many is passed
//! over: it is refused anyway, and an entry can be hundreds of times as large decoded as it is on the way (`{}`).

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Most entries of a list whose service has a smaller limit, which is looked at later.
pub(crate) const ENTRIES_MAX: usize = 1_000;

/// The entries of a list, at most one more than `MAX`. The caller refuses that one.
#[derive(Debug)]
pub(crate) struct AtMost<T, const MAX: usize>(pub(crate) Vec<T>);

/// Reads a list that must be there, unless the field says what stands for it.
pub(crate) fn at_most<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    AtMost::<T, MAX>::deserialize(deserializer).map(|list| list.0)
}

/// Reads a list that may be null; the field must have a default, because it may be missing.
pub(crate) fn some_at_most<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<AtMost<T, MAX>>::deserialize(deserializer).map(|list| list.map(|list| list.0))
}

/// Reads a list like [`at_most`], and refuses what has more entries.
pub(crate) fn bounded<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    at_most::<D, T, MAX>(deserializer).and_then(checked::<_, _, MAX>)
}

/// Reads a list like [`some_at_most`], and refuses what has more entries.
pub(crate) fn some_bounded<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    some_at_most::<D, T, MAX>(deserializer)?.map(checked::<_, _, MAX>).transpose()
}

fn checked<T, E: Error, const MAX: usize>(entries: Vec<T>) -> Result<Vec<T>, E> {
    if entries.len() > MAX {
        return Err(E::custom(format_args!("a list has more than {MAX} entries")));
    }
    Ok(entries)
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries(PhantomData))
    }
}

struct Entries<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Entries<T, MAX> {
    type Value = AtMost<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut sequence: S) -> Result<Self::Value, S::Error> {
        let mut entries = Vec::with_capacity(sequence.size_hint().unwrap_or(0).min(MAX));
        while entries.len() <= MAX {
            match sequence.next_element()? {
                Some(entry) => entries.push(entry),
                None => return Ok(AtMost(entries)),
            }
        }
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AtMost(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample {
        #[serde(default, deserialize_with = "at_most::<_, _, 3>")]
        must: Vec<u8>,
        #[serde(default, deserialize_with = "some_at_most::<_, _, 3>")]
        may: Option<Vec<u8>>,
        #[serde(default, deserialize_with = "bounded::<_, _, 3>")]
        few: Vec<u8>,
        #[serde(default, deserialize_with = "some_bounded::<_, _, 3>")]
        maybe_few: Option<Vec<u8>>,
    }

    #[test]
    fn one_too_many_is_kept_and_no_more() {
        let read = |json: &str| serde_json::from_str::<Sample>(json).map(|sample| (sample.must, sample.may));
        assert_eq!(read("{}").unwrap(), (vec![], None));
        assert_eq!(read(r#"{"may":null}"#).unwrap(), (vec![], None));
        assert!(read(r#"{"must":null}"#).is_err() && read(r#"{"must":{}}"#).is_err());
        assert_eq!(read(r#"{"must":[1,2,3],"may":[]}"#).unwrap(), (vec![1, 2, 3], Some(vec![])));
        // What is passed over is not looked at, but it must be JSON.
        assert_eq!(
            read(r#"{"must":[1,2,3,4,{},"x"],"may":[1,2,3,4,5]}"#).unwrap(),
            (vec![1, 2, 3, 4], Some(vec![1, 2, 3, 4]))
        );
        assert!(read(r#"{"must":[1,2,3,4,{],"may":[]}"#).is_err());
    }

    #[test]
    fn where_nobody_else_looks_one_too_many_is_refused() {
        let read = |json: &str| {
            serde_json::from_str::<Sample>(json)
                .map(|sample| (sample.few, sample.maybe_few))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(r#"{"few":[1,2,3],"maybe_few":[1]}"#), Ok((vec![1, 2, 3], Some(vec![1]))));
        assert_eq!(read(r#"{"maybe_few":null}"#), Ok((vec![], None)));
        for json in [r#"{"few":[1,2,3,4]}"#, r#"{"maybe_few":[1,2,3,4,5]}"#] {
            assert!(read(json).unwrap_err().starts_with("a list has more than 3 entries"), "{json}");
        }
    }
}
