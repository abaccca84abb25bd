//! From the bytes of a message to the events of a submission. No store is needed for any of it.

use std::fmt;
use std::fmt::Write as _;

use anabranch_model::{Error, Result, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jsonschema::{Draft, Validator};
use serde::Serialize;
use serde_json::Value as Json;
use uuid::Uuid;

/// The schema of a submission, unless another is given.
pub const SUBMISSION_SCHEMA: &str = include_str!("../../../docs/telemetry-submission.schema.json");
/// The kinds of events, in the order in which they are numbered.
const KINDS: [&str; 2] = ["new_process", "network_connection"];
/// What the ids of events are derived from, beside the submission and the order.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_2c0e_55f0_5d0b_9c53_0d7a_4b6f_21aa);
/// Longest reason that is kept of a broken submission.
const REASON_CHARS_MAX: usize = 300;

/// Why a submission has no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is not base64.
    Base64(String),
    /// It is not UTF-8.
    Utf8(String),
    /// It is not JSON.
    Json(String),
    /// It is not what the schema demands.
    Schema(String),
}

impl Broken {
    /// The kind in a word, for counters.
    pub fn word(&self) -> &'static str {
        match self {
            Broken::Base64(_) => "base64",
            Broken::Utf8(_) => "utf8",
            Broken::Json(_) => "json",
            Broken::Schema(_) => "schema",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Base64(why) => write!(f, "the message is not base64: {why}"),
            Broken::Utf8(why) => write!(f, "the submission is not UTF-8: {why}"),
            Broken::Json(why) => write!(f, "the submission is not JSON: {why}"),
            Broken::Schema(why) => write!(f, "the submission is not what the schema demands: {why}"),
        }
    }
}

/// The events of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its id.
    pub id: String,
    /// Its events in order, as they go into the stream.
    pub events: Vec<Bytes>,
}

/// An event as it goes into the stream; see `docs/telemetry-event.schema.json`.
#[derive(Serialize)]
struct Event<'a> {
    event_type: &'static str,
    event_id: Uuid,
    submission_id: &'a str,
    device_id: &'a str,
    order: usize,
    time_created: &'a str,
    time_processed: &'a str,
    event: &'a Json,
}

/// Takes submissions apart.
pub struct Exploder {
    validator: Validator,
}

impl Exploder {
    /// For submissions of this schema. `name` is where it comes from, for whoever has to repair it.
    pub fn new(schema: &str, name: &str) -> Result<Self> {
        let refuse = |why: String| Error::Invalid(format!("the schema {name} cannot be used: {why}"));
        let schema: Json = serde_json::from_str(schema).map_err(|error| refuse(error.to_string()))?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .with_format("local-date-time", is_local_time)
            .should_ignore_unknown_formats(false)
            .build(&schema)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Exploder { validator })
    }

    /// The events of a message. `now` is when they are processed.
    pub fn explode(&self, message: &[u8], now: Timestamp) -> std::result::Result<Submission, Broken> {
        let decoded =
            STANDARD.decode(message.trim_ascii()).map_err(|error| Broken::Base64(error.to_string()))?;
        let text = str::from_utf8(&decoded).map_err(|error| Broken::Utf8(error.to_string()))?;
        let submission: Json = serde_json::from_str(text).map_err(|error| Broken::Json(error.to_string()))?;
        self.check(&submission)?;
        events(&submission, now).ok_or_else(|| {
            Broken::Schema("it has no submission_id, device_id, time_created or events".to_owned())
        })
    }

    fn check(&self, submission: &Json) -> std::result::Result<(), Broken> {
        let Err(error) = self.validator.validate(submission) else { return Ok(()) };
        // Values of a stranger do not belong into logs.
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the submission" } else { &place };
        let reason: String = error.masked().to_string().chars().take(REASON_CHARS_MAX).collect();
        Err(Broken::Schema(format!("{place}: {reason}")))
    }
}

/// The events of a submission that is valid; none if a schema of somebody's own let something pass that is needed.
fn events(submission: &Json, now: Timestamp) -> Option<Submission> {
    let text = |name: &str| submission.get(name)?.as_str();
    let submission_id = text("submission_id")?;
    let id: Uuid = submission_id.parse().ok()?;
    let processed = utc(now);
    let (device_id, time_created) = (text("device_id")?, text("time_created")?);
    let kinds = submission.get("events")?.as_object()?;
    let mut made = Vec::new();
    let mut name = String::new();
    for kind in KINDS {
        for event in kinds.get(kind).and_then(Json::as_array).into_iter().flatten() {
            name.clear();
            let _ = write!(name, "{}/{}", id.hyphenated(), made.len());
            let event = Event {
                event_type: kind,
                event_id: Uuid::new_v5(&NAMESPACE, name.as_bytes()),
                submission_id,
                device_id,
                order: made.len(),
                time_created,
                time_processed: &processed,
                event,
            };
            made.push(Bytes::from(serde_json::to_vec(&event).ok()?));
        }
    }
    Some(Submission { id: submission_id.to_owned(), events: made })
}

/// A moment in UTC, to the millisecond.
fn utc(now: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    moment.map(|moment| format!("{moment:.3}")).unwrap_or_default()
}

/// A date and a time of day without a zone, as devices write them.
fn is_local_time(text: &str) -> bool {
    // The library also reads shorter forms, and skips a zone if there is one.
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 19 && bytes[10] == b'T' && bytes[13] == b':' && bytes[16] == b':';
    let rest = &bytes[19.min(bytes.len())..];
    let fraction = rest.is_empty()
        || (rest[0] == b'.' && (2..=10).contains(&rest.len()) && rest[1..].iter().all(u8::is_ascii_digit));
    shape && fraction && text.parse::<jiff::civil::DateTime>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

    type Change = fn(&mut Json);

    fn submission() -> Json {
        json!({
            "submission_id": "0b9c6b5e-5d1c-4f0c-9d57-0a3b7a0d9f11",
            "device_id": "8c0b7e3e-3a80-45a5-8a3e-8b8f6a7cbb02",
            "time_created": "2021-03-28T15:44:18.592840",
            "events": {
                "new_process": [{"cmdl": "whoami", "user": "admin"}, {"cmdl": "calculator.exe", "user": "john"}],
                "network_connection": [
                    {"source_ip": "192.168.0.1", "destination_ip": "23.13.252.39", "destination_port": 443}
                ],
            },
        })
    }

    fn message(submission: &Json) -> Vec<u8> {
        STANDARD.encode(submission.to_string()).into_bytes()
    }

    fn exploder() -> Exploder {
        Exploder::new(SUBMISSION_SCHEMA, "built in").unwrap()
    }

    fn explode(change: impl FnOnce(&mut Json)) -> std::result::Result<Submission, Broken> {
        let mut submission = submission();
        change(&mut submission);
        exploder().explode(&message(&submission), NOW)
    }

    #[test]
    fn events_have_everything_and_follow_their_schema() {
        let made = explode(|_| {}).unwrap();
        assert_eq!((made.events.len(), made.id.as_str()), (3, "0b9c6b5e-5d1c-4f0c-9d57-0a3b7a0d9f11"));
        let schema: Json =
            serde_json::from_str(include_str!("../../../docs/telemetry-event.schema.json")).unwrap();
        let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        for (order, event) in made.events.iter().enumerate() {
            let event: Json = serde_json::from_slice(event).unwrap();
            schema.validate(&event).unwrap();
            assert_eq!(event["order"], order);
            assert_eq!(event["time_processed"], "2023-11-14T22:13:20.123Z");
        }
        let last: Json = serde_json::from_slice(&made.events[2]).unwrap();
        assert_eq!(
            (&last["event_type"], &last["event"]["destination_port"]),
            (&json!("network_connection"), &json!(443))
        );
    }

    #[test]
    fn ids_are_the_same_again_and_differ_from_each_other() {
        let ids = |change: Change, now| {
            let mut submission = submission();
            change(&mut submission);
            let made = exploder().explode(&message(&submission), now).unwrap();
            let id = |event: &Bytes| serde_json::from_slice::<Json>(event).unwrap()["event_id"].to_string();
            made.events.iter().map(id).collect::<Vec<_>>()
        };
        let first = ids(|_| {}, NOW);
        assert_eq!(first, ids(|_| {}, Timestamp::from_millis(1_800_000_000_000)));
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), 3);
        let other = ids(|s| s["submission_id"] = json!("0b9c6b5e-5d1c-4f0c-9d57-0a3b7a0d9f12"), NOW);
        assert!(first.iter().all(|id| !other.contains(id)));
        // An id is an id however it is spelled.
        assert_eq!(first, ids(|s| s["submission_id"] = json!("0B9C6B5E-5D1C-4F0C-9D57-0A3B7A0D9F11"), NOW));
    }

    #[test]
    fn every_way_of_being_broken_is_told_apart() {
        let word = |message: &[u8]| exploder().explode(message, NOW).unwrap_err().word();
        assert_eq!(word(b"no base64!"), "base64");
        assert_eq!(word(STANDARD.encode(b"\xff\xfe{}").as_bytes()), "utf8");
        assert_eq!(word(STANDARD.encode("{\"a\":").as_bytes()), "json");
        assert_eq!(word(b""), "json");
        let changes: [(Change, &str); 12] = [
            (|s| s["submission_id"] = json!("not-an-uuid"), "/submission_id"),
            (|s| s["device_id"] = json!("not-an-uuid"), "/device_id"),
            (|s| s["time_created"] = json!("2021-03-28T15:44:18Z"), "/time_created"),
            (|s| s["time_created"] = json!("2021-03-28"), "/time_created"),
            (|s| s["time_created"] = json!("2021-02-30T15:44:18"), "/time_created"),
            (|s| s["events"]["new_process"][1]["cmdl"] = Json::Null, "/events/new_process/1/cmdl"),
            (
                |s| s["events"]["network_connection"][0]["destination_ip"] = json!("not-an-ip"),
                "destination_ip",
            ),
            (
                |s| s["events"]["network_connection"][0]["destination_ip"] = json!("1.2.3.256"),
                "destination_ip",
            ),
            (
                |s| s["events"]["network_connection"][0]["destination_port"] = json!(65_536),
                "destination_port",
            ),
            (|s| s["events"]["network_connection"][0]["destination_port"] = json!("443"), "destination_port"),
            (|s| s["events"] = json!({"new_process": []}), "/events"),
            (|s| *s = json!([]), "the submission"),
        ];
        for (change, place) in changes {
            let broken = explode(change).unwrap_err();
            assert_eq!(broken.word(), "schema", "{broken}");
            assert!(broken.to_string().contains(place), "{place}: {broken}");
        }
        let secret = explode(|s| s["submission_id"] = json!("my password")).unwrap_err().to_string();
        assert!(!secret.contains("password"), "{secret}");
    }

    #[test]
    fn what_is_unusual_is_not_broken() {
        let none = explode(|s| s["events"] = json!({"new_process": [], "network_connection": []})).unwrap();
        assert!(none.events.is_empty());
        let many =
            explode(|s| s["events"]["new_process"] = json!(vec![json!({"cmdl": "x", "user": "y"}); 10_000]));
        assert_eq!(many.unwrap().events.len(), 10_001);
        let long = explode(|s| s["events"]["new_process"][0]["cmdl"] = json!("x".repeat(1 << 20))).unwrap();
        assert!(long.events[0].len() > 1 << 20);
        // Clocks of devices run as they like.
        explode(|s| s["time_created"] = json!("2199-01-01T00:00:00")).unwrap();
        explode(|s| s["something_else"] = json!(1)).unwrap();
        assert!(exploder().explode(&[&message(&submission())[..], b"\n"].concat(), NOW).is_ok());
    }

    #[test]
    fn a_schema_that_is_none_is_refused_with_its_name() {
        for schema in ["{", "{\"type\": 7}", "{\"format\": \"no-such-format\"}"] {
            let error = Exploder::new(schema, "/etc/my.json")
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(error.contains("/etc/my.json"), "{schema}: {error}");
        }
    }
}
