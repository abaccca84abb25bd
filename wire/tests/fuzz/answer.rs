//! What every answer must be, whatever was asked.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use crate::Answered;
use crate::sample::Sample;

/// Whether the answer is one that a client of the service can read.
pub fn check(sample: &Sample, answer: &Answered) -> Result<(), String> {
    let text = String::from_utf8_lossy(&answer.body);
    let shown: String = text.chars().take(600).collect();
    // 501 is what S3 says about what it does not do.
    if !(200..500).contains(&answer.status) && answer.status != 501 {
        return Err(format!("the server blames itself: {} {shown}", answer.status));
    }
    if answer.body.is_empty() {
        // HEAD has no body, and 304 none either. Operations that answer nothing do so on success only.
        let silent = sample.method == "HEAD" || answer.status < 400;
        return if silent { Ok(()) } else { Err(format!("{} without a word", answer.status)) };
    }
    let kind = answer.content_type.as_str();
    let read = match kind {
        _ if answer.status < 400 && is_object(sample) => Ok(()),
        "application/x-amz-json-1.0" | "application/x-amz-json-1.1" => json(answer),
        "application/x-amz-cbor-1.1" | "application/cbor" => cbor(answer),
        "text/xml" | "application/xml" => xml(&text, answer.status >= 400),
        "application/vnd.amazon.eventstream" => frames(&answer.body),
        other => Err(format!("the content type is {other:?}")),
    };
    read.map_err(|why| format!("{} of type {kind} is not what clients read: {why}: {shown}", answer.status))
}

/// Objects come as they were stored.
fn is_object(sample: &Sample) -> bool {
    sample.service == "s3"
}

fn json(answer: &Answered) -> Result<(), String> {
    let value: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    named(&value, answer.status)
}

fn cbor(answer: &Answered) -> Result<(), String> {
    let value: Value = match minicbor_serde::from_slice(&answer.body) {
        Ok(value) => value,
        // Bytes have no place in JSON; a fault has none.
        Err(error) if answer.status >= 400 => return Err(error.to_string()),
        Err(_) => return Ok(()),
    };
    named(&value, answer.status)
}

/// A refusal has a code that clients match on.
fn named(value: &Value, status: u16) -> Result<(), String> {
    let code = value.get("__type").and_then(Value::as_str).unwrap_or_default();
    if status >= 400 && code.is_empty() {
        return Err("a fault without a code".to_owned());
    }
    Ok(())
}

fn xml(text: &str, refused: bool) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0;
    let mut coded = false;
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                depth += 1;
                coded |= start.name().as_ref() == "Code";
            }
            Event::End(_) => depth -= 1,
            Event::Eof if depth == 0 && (coded || !refused) => return Ok(()),
            Event::Eof => return Err("it breaks off, or has no code".to_owned()),
            _ => {}
        }
    }
}

/// Frames follow each other, each as long as it says.
fn frames(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        let length = bytes.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
        if length < 16 || length > bytes.len() {
            return Err(format!("a frame of {length} bytes where {} are left", bytes.len()));
        }
        bytes = &bytes[length..];
    }
    Ok(())
}
