//! Requests that somebody has made long: every list and every map of every right request gets as many small entries as a body of
//! some size has room for. What the server takes for one is counted, and stays in proportion to its length.

use serde_json::{Value, json};

use crate::sample::{Sample, cbor};

/// Bytes that are added to a request.
const LONG_BYTES: usize = 128 << 10;

/// The long forms of a request.
pub fn grown(sample: &Sample) -> Vec<Sample> {
    let is_form = sample.headers.iter().any(|(name, value)| {
        name == "content-type" && value.starts_with(b"application/x-www-form-urlencoded")
    });
    if is_form {
        return grown_forms(sample);
    }
    let value = sample.cbor.clone().or_else(|| serde_json::from_slice(&sample.body).ok());
    let Some(value @ Value::Object(_)) = value else { return Vec::new() };
    let mut places = Vec::new();
    collect_places(&value, String::new(), &mut places);
    let mut all = Vec::new();
    for place in places {
        let mut entries = vec![json!({}), json!("")];
        entries.extend(value.pointer(&place).and_then(first).cloned());
        for entry in entries {
            let mut value = value.clone();
            if let Some(at) = value.pointer_mut(&place) {
                lengthen(at, &entry, sample.cbor.is_some());
            }
            let body = if sample.cbor.is_some() { cbor(&value) } else { value.to_string().into_bytes() };
            all.push(Sample { body, cbor: None, ..sample.clone() });
        }
    }
    all
}

/// Where lists and maps are, the outermost first. Of the entries of a list the first stands for all.
fn collect_places(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Array(entries) => {
            if let Some(first) = entries.first() {
                collect_places(first, format!("{place}/0"), places);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect_places(member, format!("{place}/{name}"), places);
            }
        }
        _ => return,
    }
    places.push(place);
}

fn first(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(entries) => entries.first(),
        Value::Object(members) => members.values().next(),
        _ => None,
    }
}

fn lengthen(value: &mut Value, entry: &Value, in_cbor: bool) {
    let entry_bytes = if in_cbor { cbor(entry).len() } else { entry.to_string().len() + 1 };
    match value {
        Value::Array(entries) => {
            entries.extend(std::iter::repeat_n(entry.clone(), LONG_BYTES / entry_bytes));
        }
        Value::Object(members) => {
            // A name of four letters, quoted and with a colon.
            let count = LONG_BYTES / (entry_bytes + if in_cbor { 5 } else { 7 });
            members.extend((0..count).map(|number| (format!("{number:04x}"), entry.clone())));
        }
        _ => {}
    }
}

/// Each numbered field once more with every number that there is room for.
fn grown_forms(sample: &Sample) -> Vec<Sample> {
    let text = String::from_utf8_lossy(&sample.body).into_owned();
    let numbered = text.split('&').filter(|field| field.contains(".1.") || field.contains(".1="));
    let lengthened = numbered.map(|field| {
        let mut body = text.clone();
        let (before, behind) = field.split_once(".1").unwrap_or((field, ""));
        for number in 2.. {
            if body.len() > LONG_BYTES {
                break;
            }
            body.push_str(&format!("&{before}.{number}{behind}"));
        }
        Sample { body: body.into_bytes(), ..sample.clone() }
    });
    lengthened.collect()
}
