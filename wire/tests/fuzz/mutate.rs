//! How requests are damaged: by their bytes, by their values, and by what other requests say.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::corpus::{self, Corpus};
use crate::sample::{Sample, cbor};

/// What parsers trip over.
const WORDS: &[&str] = &[
    "",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{1f600}",
    "e\u{301}",
    "..",
    "/",
    "//",
    "%",
    "%00",
    "%2f",
    "%zz",
    "+",
    " ",
    "\r\n",
    "\"",
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "&",
    "&amp;",
    "&#0;",
    "&x;",
    "<!DOCTYPE a [<!ENTITY x 'y'>]>",
    "<![CDATA[",
    "-->",
    "=",
    ",",
    ";",
    ":",
    "#",
    "#a",
    ":a",
    "AND",
    "OR NOT",
    "BETWEEN",
    "IN (",
    "SET",
    "REMOVE",
    "ADD",
    "size(",
    "contains(",
    "begins_with(",
    "attribute_exists(",
    "a.b[0]",
    "a[99999999999]",
    "a[-1]",
    "[0]",
    "if_not_exists(",
    "list_append(",
    "true",
    "null",
    "-0",
    "-1",
    "1e400",
    "NaN",
    "Infinity",
    "9223372036854775808",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.1e-200",
    "2026-11-15T25:61:61Z",
    "Sun, 15 Nov 2026 18:15:00 GMT",
    "bytes=0-",
    "bytes=-0",
    "bytes=5-1",
    "bytes=0-1,3-4",
    "bytes=99999999999999999999-",
    "W/\"a\"",
    "*",
    "aws-chunked",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "UNSIGNED-PAYLOAD",
    "gzip",
    "100-continue",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "-1\r\n",
    "5;chunk-signature=\r\n",
    "x-amz-checksum-crc32:",
    "arn:aws:",
    "arn:aws:::::",
    "AWS4-HMAC-SHA256 Credential=a/20261115/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00",
    "shardId-000000000000",
    "49600000000000000000000000000000000000000000000000000000",
];

/// A request of the corpus with one to four things wrong with it.
pub fn damaged(corpus: &Corpus, chance: &mut Chance) -> Sample {
    let mut sample = chance.one_of(&corpus.samples).clone();
    for _ in 0..=chance.below(4) {
        match chance.below(10) {
            0..=3 => change_value(&mut sample, corpus, chance),
            4..=5 => change_body(&mut sample, corpus, chance),
            6 => change_uri(&mut sample, corpus, chance),
            7..=8 => change_headers(&mut sample, corpus, chance),
            _ => swap_body(&mut sample, corpus, chance),
        }
    }
    sample
}

/// Changes a value in JSON or CBOR; the bytes of anything else.
fn change_value(sample: &mut Sample, corpus: &Corpus, chance: &mut Chance) {
    let known = sample.cbor.take();
    let is_cbor = known.is_some();
    let Some(mut value) = known.or_else(|| serde_json::from_slice(&sample.body).ok()) else {
        return change_body(sample, corpus, chance);
    };
    let count = count(&value);
    let mut at = chance.below(count);
    replace(&mut value, &mut at, corpus, chance);
    sample.body = if is_cbor { cbor(&value) } else { value.to_string().into_bytes() };
    sample.cbor = Some(value).filter(|_| is_cbor);
}

/// Changes bytes of the body, so that nobody knows any more what it says.
fn change_body(sample: &mut Sample, corpus: &Corpus, chance: &mut Chance) {
    sample.cbor = None;
    change_bytes(&mut sample.body, corpus, chance);
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(entries) => entries.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value with this number, counted in depth.
fn replace(value: &mut Value, at: &mut usize, corpus: &Corpus, chance: &mut Chance) -> bool {
    if *at == 0 {
        *value = other(value, corpus, chance);
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(entries) => entries.iter_mut().any(|entry| replace(entry, at, corpus, chance)),
        Value::Object(members) => members.values_mut().any(|member| replace(member, at, corpus, chance)),
        _ => false,
    }
}

/// Something else in place of a value.
fn other(value: &Value, corpus: &Corpus, chance: &mut Chance) -> Value {
    let text = |text: &str, chance: &mut Chance| {
        let mut bytes = text.as_bytes().to_vec();
        change_bytes(&mut bytes, corpus, chance);
        Value::String(String::from_utf8_lossy(&bytes).into_owned())
    };
    match (value, chance.below(10)) {
        (_, 0) => Value::Null,
        (_, 1) => json!([value, value]),
        (_, 2) => json!({ *chance.one_of(WORDS): value }),
        (_, 3) => Value::String((*chance.one_of(WORDS)).to_owned()),
        (_, 4) => chance
            .one_of(&[
                json!(-1),
                json!(0),
                json!(1e300),
                json!(u64::MAX),
                json!(i64::MIN),
                json!(true),
                json!([]),
            ])
            .clone(),
        (_, 5) => Value::String(chance.one_of(&["x", "\u{e4}", "%41", "("]).repeat(1 << chance.below(17))),
        // A few times as deep as any parser may follow.
        (_, 6) => (0..chance.below(100)).fold(value.clone(), |inner, _| json!({ "M": { "a": inner } })),
        (Value::Object(members), _) => {
            let mut members = members.clone();
            let names: Vec<String> = members.keys().cloned().collect();
            if !names.is_empty() {
                let name = chance.one_of(&names);
                let removed = members.remove(name).unwrap_or_default();
                members.insert((*chance.one_of(&["a", "", "N", "L", "SS", "NULL"])).to_owned(), removed);
            }
            Value::Object(members)
        }
        (Value::Array(entries), _) => {
            Value::Array(entries.iter().cycle().take(chance.below(300)).cloned().collect())
        }
        (Value::String(old), _) => text(old, chance),
        (old, _) => text(&old.to_string(), chance),
    }
}

/// Changes some bytes.
fn change_bytes(bytes: &mut Vec<u8>, corpus: &Corpus, chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let length = chance.below((bytes.len() - at).min(64) + 1);
    match chance.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 => drop(bytes.drain(at..at + length)),
        2 => {
            let again = bytes[at..at + length].repeat(1 + chance.below(9));
            bytes.splice(at..at, again);
        }
        3 => bytes.truncate(at),
        4 => {
            let end = at + length;
            bytes.splice(at..end, chance.one_of(WORDS).bytes());
        }
        5 => {
            bytes.splice(at..at, chance.one_of(WORDS).bytes());
        }
        6 => {
            let source = &chance.one_of(&corpus.samples).body;
            let from = chance.below(source.len() + 1);
            let to = (from + chance.below(200)).min(source.len());
            bytes.splice(at..at, source[from..to].iter().copied());
        }
        _ => {
            let random = (0..chance.below(16)).map(|_| chance.below(256) as u8);
            let random: Vec<u8> = random.collect();
            bytes.splice(at..at + length, random);
        }
    }
}

/// Changes the address, within what an address may hold.
fn change_uri(sample: &mut Sample, corpus: &Corpus, chance: &mut Chance) {
    let mut bytes = sample.uri.clone().into_bytes();
    if chance.once_in(3) {
        let (name, value) = (chance.one_of(corpus::NAMES), chance.one_of(WORDS));
        let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        let join = if sample.uri.contains('?') { '&' } else { '?' };
        bytes.extend(format!("{join}{name}={encoded}").bytes());
    } else {
        change_bytes(&mut bytes, corpus, chance);
    }
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte);
    let mut uri = String::from("/");
    for byte in bytes.iter().skip_while(|byte| **byte == b'/') {
        if plain(*byte) { uri.push(char::from(*byte)) } else { uri.push_str(&format!("%{byte:02X}")) }
    }
    sample.uri = uri;
}

fn change_headers(sample: &mut Sample, corpus: &Corpus, chance: &mut Chance) {
    let headers = &mut sample.headers;
    if headers.is_empty() || chance.once_in(3) {
        let value = chance.one_of(WORDS).bytes().collect();
        headers.push(((*chance.one_of(corpus::HEADERS)).to_owned(), value));
    } else {
        let at = chance.below(headers.len());
        match chance.below(4) {
            0 => drop(headers.remove(at)),
            1 => headers.push(headers[at].clone()),
            2 => headers[at].1 = chance.one_of(WORDS).bytes().collect(),
            _ => change_bytes(&mut headers[at].1, corpus, chance),
        }
    }
    for (_, value) in headers {
        value.retain(|byte| *byte >= b' ' && *byte != 0x7f);
    }
}

fn swap_body(sample: &mut Sample, corpus: &Corpus, chance: &mut Chance) {
    sample.cbor = None;
    sample.body = match chance.below(4) {
        0 => Vec::new(),
        1 => vec![b'['; 1 << chance.below(16)],
        2 => (0..chance.below(2_000)).map(|_| chance.below(256) as u8).collect(),
        _ => chance.one_of(&corpus.samples).body.clone(),
    };
}
