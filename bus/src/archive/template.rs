//! The keys of blobs in an archive.
//!
//! What must hold: a key follows from the event alone, so that an event which comes again is written over itself; no name of
//! a table can lead out of its place; and whatever is wrong with a template is said before the first event.

use anabranch_model::{BlobKey, Error, Result, SequenceNumber, Timestamp};

use crate::event::{Event, Origin, Place};

/// Keys of blobs with one event each, unless somebody wants others.
pub const KEY_DEFAULT: &str = "{keyspace}/{table}/{date}/{sequence}.json";
/// Keys of blobs with many events, unless somebody wants others.
pub const LINES_KEY_DEFAULT: &str = "{keyspace}/{table}/{date}/{sequence}.jsonl.gz";
/// The same for files of Parquet.
pub const PARQUET_KEY_DEFAULT: &str = "{keyspace}/{table}/{date}/{sequence}.parquet";

/// What the keyspace of a table that is in none is called.
pub const NO_KEYSPACE: &str = "tables";

/// What stands for something of the source or of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Keyspace,
    Table,
    Stream,
    Queue,
    Shard,
    Date,
    Sequence,
}

const FIELDS: [(&str, Field); 7] = [
    ("keyspace", Field::Keyspace),
    ("table", Field::Table),
    ("stream", Field::Stream),
    ("queue", Field::Queue),
    ("shard", Field::Shard),
    ("date", Field::Date),
    ("sequence", Field::Sequence),
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// What the source of a bot is called. A stream has no table, and a table no stream that anybody chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The keyspace of a table.
    pub keyspace: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The stream.
    pub stream: Option<String>,
    /// The queue.
    pub queue: Option<String>,
}

/// How a key is made of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    parts: Vec<Part>,
}

impl KeyTemplate {
    /// Understands a template such as [`KEY_DEFAULT`] for a source with these names.
    pub fn new(text: &str, names: &Names) -> Result<Self> {
        let mut parts = Vec::new();
        for part in split(text)? {
            let known = match &part {
                Part::Field(Field::Keyspace) => Some(("keyspace", &names.keyspace)),
                Part::Field(Field::Table) => Some(("table", &names.table)),
                Part::Field(Field::Stream) => Some(("stream", &names.stream)),
                Part::Field(Field::Queue) => Some(("queue", &names.queue)),
                Part::Field(Field::Shard) if names.queue.is_some() => Some(("shard", &None)),
                _ => None,
            };
            match known {
                None => parts.push(part),
                Some((field, Some(name))) => parts.push(Part::Text(checked(field, name)?.to_owned())),
                Some((field, None)) => {
                    return Err(refused(
                        text,
                        &format!("its source has no {field}, so {{{field}}} says nothing"),
                    ));
                }
            }
        }
        if !parts.contains(&Part::Field(Field::Sequence)) {
            return Err(refused(text, "without {sequence} one event would be written over another"));
        }
        let template = KeyTemplate { parts };
        template.check(text)?;
        Ok(template)
    }

    /// The key of an event. Messages of a queue have no number, and are named by their identifier.
    pub fn key(&self, event: &Event) -> Result<BlobKey> {
        match &event.origin {
            Origin::Shard { shard, sequence, sub_sequence, .. } => {
                let place = Place { sequence: *sequence, sub_sequence: *sub_sequence };
                self.named(shard.as_str(), &place.to_string(), event.at)
            }
            Origin::Queue { message, .. } => self.named("", checked("message", message.as_str())?, event.at),
        }
    }

    /// The key of a batch. It names both ends: a worker that has lost its shard and does not know it yet must not put a shorter
    /// batch in the place of a longer one.
    pub(super) fn key_of_batch(&self, first: &Event, end: Place) -> Result<BlobKey> {
        match (&first.origin, first.origin.place()) {
            (Origin::Shard { shard, .. }, Some(start)) => {
                self.named(shard.as_str(), &format!("{start}-{end}"), first.at)
            }
            _ => Err(Error::Invalid("a message of a queue has no place in an order".to_owned())),
        }
    }

    fn named(&self, shard: &str, sequence: &str, at: Timestamp) -> Result<BlobKey> {
        let mut key = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Field(Field::Shard) => key.push_str(shard),
                Part::Field(Field::Date) => key.push_str(&date(at)),
                Part::Field(Field::Sequence) => key.push_str(sequence),
                // The names of the source are texts since the template was made.
                Part::Field(Field::Keyspace | Field::Table | Field::Stream | Field::Queue) => {}
            }
        }
        BlobKey::new(&key)
    }

    /// What all keys begin with: the folders that do not depend on the event.
    pub fn prefix(&self) -> String {
        let constant: String = self
            .parts
            .iter()
            .map_while(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Field(_) => None,
            })
            .collect();
        constant.rfind('/').map_or(String::new(), |end| constant[..=end].to_owned())
    }

    /// Whether some event may have this key.
    pub(super) fn fits(&self, key: &str) -> bool {
        fits(&self.parts, key)
    }

    /// Whether events of different days lie under different keys whatever their numbers are.
    pub(super) fn is_dated(&self) -> bool {
        self.parts.contains(&Part::Field(Field::Date))
    }

    /// Whether the keys are such that every tool can have them as paths.
    fn check(&self, text: &str) -> Result<()> {
        // The longest names that there are: a key that fits with them fits always.
        let longest = format!("{0}.{1}-{0}.{1}", SequenceNumber::MAX, u64::MAX);
        let longest = self.named(&"s".repeat(128), &longest, Timestamp::EPOCH);
        let key = longest.map_err(|_| refused(text, "its keys can be longer than 1,024 bytes"))?;
        if key.as_str().split('/').any(|folder| matches!(folder, "" | "." | "..")) {
            return Err(refused(text, "a part between slashes is empty, `.` or `..`"));
        }
        if key.as_str().chars().any(|c| c.is_control() || c == '\\') {
            return Err(refused(text, "it has a backslash or a control character"));
        }
        Ok(())
    }
}

fn fits(parts: &[Part], key: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else { return key.is_empty() };
    let field = match part {
        Part::Text(text) => return key.strip_prefix(text.as_str()).is_some_and(|key| fits(rest, key)),
        Part::Field(field) => *field,
    };
    let allowed = |c: char| match field {
        Field::Date => c.is_ascii_digit() || c == '-',
        Field::Sequence => c.is_ascii_digit() || matches!(c, '-' | '.'),
        _ => c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'),
    };
    let most = key.find(|c| !allowed(c)).unwrap_or(key.len());
    (1..=most).rev().any(|length| fits(rest, &key[length..]))
}

/// The day of a moment, in UTC.
pub(super) fn date(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    // Moments that no calendar has are of the first day.
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

fn split(text: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let open = rest.find(['{', '}']).unwrap_or(rest.len());
        if open > 0 {
            parts.push(Part::Text(rest[..open].to_owned()));
            rest = &rest[open..];
            continue;
        }
        let inner = rest.strip_prefix('{').and_then(|behind| behind.split_once('}'));
        let Some((word, behind)) = inner else {
            return Err(refused(text, "a brace has no partner"));
        };
        let field = FIELDS.iter().find(|(name, _)| *name == word).map(|(_, field)| *field);
        let field = field.ok_or_else(|| {
            let known: Vec<_> = FIELDS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
            refused(text, &format!("{{{word}}} is not known: there are {}", known.join(", ")))
        })?;
        parts.push(Part::Field(field));
        rest = behind;
    }
    Ok(parts)
}

/// A name of a table or a keyspace that is one part of a path and nothing else.
fn checked<'a>(field: &str, name: &'a str) -> Result<&'a str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name == "." || name == ".." || !name.chars().all(allowed) {
        return Err(Error::Invalid(format!(
            "the {field} {name:?} cannot stand in a key: only a-z, A-Z, 0-9, `_`, `.` and `-` can"
        )));
    }
    Ok(name)
}

fn refused(text: &str, why: &str) -> Error {
    Error::Invalid(format!("the key {text:?} cannot be used: {why}"))
}

/// The name of the table of leases from a template in which `{keyspace}`, `{table}` and `{stream}` stand for the source.
pub(crate) fn lease_table(template: &str, names: &Names) -> Result<String> {
    let mut name = template.to_owned();
    for (field, value) in [("keyspace", &names.keyspace), ("table", &names.table), ("stream", &names.stream)]
    {
        let place = format!("{{{field}}}");
        if name.contains(&place) {
            let missing = || {
                Error::Invalid(format!("the lease table {template:?} names {place}, and the source has none"))
            };
            name = name.replace(&place, value.as_deref().ok_or_else(missing)?);
        }
    }
    match name.contains(['{', '}']) {
        true => Err(Error::Invalid(format!(
            "the lease table {template:?} is not understood: there are {{keyspace}}, {{table}} and {{stream}}"
        ))),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{ShardId, StreamName};

    use super::*;

    fn names() -> Names {
        Names {
            keyspace: Some("media".to_owned()),
            table: Some("media_content".to_owned()),
            ..Names::default()
        }
    }

    fn event(sub_sequence: u64) -> Event {
        Event {
            origin: Origin::Shard {
                stream: StreamName::new("changes").unwrap(),
                shard: ShardId::numbered(3),
                sequence: SequenceNumber::from_u128(12_345),
                sub_sequence,
            },
            key: "k".into(),
            data: "{}".into(),
            at: Timestamp::from_millis(1_722_421_800_000),
            attempt: 1,
        }
    }

    #[test]
    fn the_default_is_the_layout_of_the_archive() {
        let template = KeyTemplate::new(KEY_DEFAULT, &names()).unwrap();
        assert_eq!(template.key(&event(0)).unwrap().as_str(), "media/media_content/2024-07-31/12345.json");
        assert_eq!(template.key(&event(7)).unwrap().as_str(), "media/media_content/2024-07-31/12345.7.json");
        assert_eq!(template.prefix(), "media/media_content/");
        let later = Event { attempt: 9, ..event(0) };
        assert_eq!(template.key(&later).unwrap(), template.key(&event(0)).unwrap(), "again is the same");
    }

    #[test]
    fn what_cannot_be_a_key_is_refused_with_the_reason() {
        for (text, why) in [
            ("{table}/{date}.json", "{sequence}"),
            ("{table}/{sequence", "partner"),
            ("{table}/sequence}", "partner"),
            ("{table}/{seq}.json", "{seq} is not known"),
            ("{stream}/{sequence}", "no stream"),
            ("/{table}/{sequence}", "empty"),
            ("{table}//{sequence}", "empty"),
            ("../{sequence}", "`..`"),
            ("a/./{sequence}", "`.`"),
            ("a\\b/{sequence}", "backslash"),
            ("a\n/{sequence}", "control"),
            ("", "{sequence}"),
            (&format!("{}/{{sequence}}", "x".repeat(1_000)), "longer"),
        ] {
            let error = KeyTemplate::new(text, &names()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        for keyspace in ["..", ".", "a/b", "", "ä", "a\0"] {
            let names = Names { keyspace: Some(keyspace.to_owned()), ..names() };
            assert!(KeyTemplate::new(KEY_DEFAULT, &names).is_err(), "{keyspace:?}");
        }
    }

    #[test]
    fn keys_of_others_do_not_fit() {
        let template = KeyTemplate::new("{date}/{table}/{shard}/{sequence}.json", &names()).unwrap();
        assert_eq!(template.prefix(), "");
        assert!(template.fits("2024-07-31/media_content/shardId-000000000003/12345.json"));
        assert!(template.fits(template.key(&event(7)).unwrap().as_str()));
        for other in ["2024-07-31/other/shardId-0/12345.json", "2024-07-31/media_content/x/1.jsonl.gz", ""] {
            assert!(!template.fits(other), "{other}");
        }
    }

    #[test]
    fn leases_are_named_by_the_source() {
        let template = "keyspaces-streamer-{keyspace}-{table}";
        assert_eq!(lease_table(template, &names()).unwrap(), "keyspaces-streamer-media-media_content");
        assert!(lease_table("x-{stream}", &names()).is_err());
        assert!(lease_table("x-{app}", &names()).is_err());
    }
}
