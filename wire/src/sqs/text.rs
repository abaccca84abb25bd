//! Bodies as text.
//!
//! SQS knows text only, and not every character; queues hold any bytes. What comes over the wire is such text and is kept as it is.
//! A body that was stored by other means and is no such text is given as base64 behind [`MARK`], so that a receiver
//! gets every message, can tell, and loses nothing.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::errors::refusal;
use crate::fault::Fault;
use crate::protocol::is_allowed;

/// What a body begins with that is not to be read as it is.
const MARK: &str = "anabranch:base64:";

/// Refuses text with a character that SQS does not take.
pub(super) fn check(text: &str) -> Result<(), Fault> {
    if is_plain(text.as_bytes()) {
        return Ok(());
    }
    match text.chars().find(|c| !is_allowed(*c)) {
        None => Ok(()),
        Some(c) => Err(refusal(
            "InvalidMessageContents",
            "InvalidMessageContents",
            format!(
                "Invalid binary character '#x{:X}' was found in the message body, the set of allowed characters is \
                 #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
                u32::from(c)
            ),
        )),
    }
}

/// Whether it is printable ASCII throughout, as most bodies are: looked at byte by byte without a branch, which a
/// processor does for many of them at once.
fn is_plain(body: &[u8]) -> bool {
    body.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// A body as a receiver gets it.
pub(super) fn of_body(body: &[u8]) -> String {
    let allowed = |text: &&str| is_plain(body) || text.chars().all(is_allowed);
    match std::str::from_utf8(body).ok().filter(allowed) {
        Some(text) => text.to_owned(),
        None => format!("{MARK}{}", BASE64_STANDARD.encode(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_can_be_received() {
        assert_eq!(of_body("🦦\u{fffd}\t\r\n".as_bytes()), "🦦\u{fffd}\t\r\n");
        assert_eq!(of_body(&[0xff, 0xfe]), "anabranch:base64://4=");
        assert_eq!(of_body(b"\0"), "anabranch:base64:AA==");
        assert_eq!(of_body("\u{ffff}".as_bytes()), "anabranch:base64:77+/");
    }

    #[test]
    fn characters_that_are_not_allowed_are_named() {
        assert_eq!(check("a\tb\r\n✓🦦\u{e000}"), Ok(()));
        for (text, shown) in [("\0", "#x0"), ("a\u{1f}", "#x1F"), ("\u{fffe}", "#xFFFE"), ("\u{b}", "#xB")] {
            let fault = check(text).unwrap_err();
            assert_eq!(fault.code, "InvalidMessageContents");
            assert!(fault.message.contains(shown), "{}", fault.message);
        }
    }
}
