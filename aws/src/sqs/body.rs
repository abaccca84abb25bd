//! Bodies: SQS takes text only, and not every character.
//!
//! A body that is such text goes as it is, so that others can read it. Anything else goes as base64 behind [`MARK`], and
//! so does a text that begins with the mark: what comes back is always what was sent.

use anabranch_model::NewMessage;
use aws_smithy_types::base64;
use bytes::Bytes;

/// What a body begins with that is not to be read as it is.
const MARK: &str = "anabranch:base64:";

/// Whether SQS takes this character.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The body as text, if SQS takes it as it is.
pub(super) fn plain(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.chars().all(is_allowed))
}

/// The body as SQS takes it.
pub(super) fn to_text(body: &[u8]) -> String {
    match plain(body).filter(|text| !text.starts_with(MARK)) {
        Some(text) => text.to_string(),
        None => format!("{MARK}{}", base64::encode(body)),
    }
}

/// The body as it was sent. A stranger's text that only looks like one of ours is left as it is.
pub(super) fn from_text(text: String) -> Bytes {
    match decoded(&text) {
        Some(body) => body.into(),
        None => text.into(),
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    base64::decode(text.strip_prefix(MARK)?).ok()
}

/// The deduplication id of a message that came as `text`. Where SQS made it of the text, it is that of the body.
pub(super) fn deduplication_id(text: &str, id: String) -> String {
    let of = |body: Vec<u8>| NewMessage::new(body).deduplication_id();
    match decoded(text) {
        Some(body) if of(text.as_bytes().to_vec()) == id => of(body),
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_comes_back() {
        let mark = MARK.to_string();
        let bodies: [&[u8]; 9] = [
            b"plain",
            "🦦\u{fffd}\t\r\n".as_bytes(),
            &[0],
            &[255, 254],
            "\u{fffe}".as_bytes(),
            "\u{1b}[0m".as_bytes(),
            mark.as_bytes(),
            b"anabranch:base64:AAAA",
            b"anabranch:base64:no base64",
        ];
        for body in bodies {
            let text = to_text(body);
            assert!(text.chars().all(is_allowed), "{body:?} goes as {text:?}");
            assert_eq!(from_text(text), body);
        }
    }

    #[test]
    fn text_goes_as_it_is() {
        assert_eq!(to_text("{\"a\": 1} ✓".as_bytes()), "{\"a\": 1} ✓");
        // What a stranger sent is not ours to change.
        assert_eq!(from_text("anabranch:base64:???".into()), "anabranch:base64:???");
    }

    #[test]
    fn the_deduplication_id_is_that_of_the_body() {
        let body = NewMessage::new(vec![0, 255]);
        let text = to_text(&body.body);
        let given = NewMessage::new(text.clone()).deduplication_id();
        assert_eq!(deduplication_id(&text, given), body.deduplication_id());
        assert_eq!(deduplication_id(&text, "own".into()), "own");
        assert_eq!(deduplication_id("text", "own".into()), "own");
    }
}
