//! Text in headers, which hold ASCII only: other text is written in encoded words (RFC 2047), as S3 does itself when it
//! gives back what someone stored as UTF-8.

use aws_smithy_types::base64;

const START: &str = "=?";
const END: &str = "?=";

/// Text as the value of a header.
pub(super) fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    // Space at the edges of a value is nobody's.
    if plain && text.trim() == text && !text.contains(START) {
        return text.to_string();
    }
    format!("=?UTF-8?B?{}?=", base64::encode(text))
}

/// The text in the value of a header. What is no encoded word stands for itself.
pub(super) fn decode(value: &str) -> String {
    let (mut decoded, mut rest) = (String::new(), value);
    while let Some(start) = rest.find(START) {
        let (before, word) = rest.split_at(start);
        match split_word(word) {
            Some((text, behind)) => {
                // Space between two words only keeps them apart.
                let between_words = !decoded.is_empty() && before.trim().is_empty();
                decoded.push_str(if between_words { "" } else { before });
                decoded.push_str(&text);
                rest = behind;
            }
            None => {
                decoded.push_str(before);
                decoded.push_str(START);
                rest = &word[START.len()..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The text of the encoded word that stands first, and what comes behind it.
fn split_word(word: &str) -> Option<(String, &str)> {
    let (charset, rest) = word.strip_prefix(START)?.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (coded, behind) = rest.split_once(END)?;
    let bytes = match encoding {
        "B" | "b" => base64::decode(coded).ok()?,
        "Q" | "q" => quoted(coded)?,
        _ => return None,
    };
    let text = String::from_utf8(bytes).ok().filter(|_| charset.eq_ignore_ascii_case("utf-8"))?;
    Some((text, behind))
}

fn quoted(coded: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), coded.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => b' ',
            b'=' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was() {
        for text in ["", "Jo", "a \"b\", c; d=e", "Zürich 🦦", " edges ", "=?UTF-8?B?eA==?=", "a=?b", "é é"]
        {
            let value = encode(text);
            assert!(value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{value}");
            assert_eq!(decode(&value), text, "{value}");
        }
    }

    #[test]
    fn words_of_others_are_read() {
        assert_eq!(decode("=?UTF-8?Q?Z=C3=BCrich_=F0=9F=A6=A6?="), "Zürich 🦦");
        assert_eq!(decode("=?utf-8?b?w6k=?= =?UTF-8?Q?=C3=A9?= x"), "éé x");
        for damaged in ["=?UTF-8?B?***?=", "=?latin1?Q?=E9?=", "=?", "=?UTF-8?X?x?=", "=?UTF-8?Q?=G0?="] {
            assert_eq!(decode(damaged), damaged);
        }
    }
}
