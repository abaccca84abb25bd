//! Typed values as the XML of the Query protocol.
//!
//! Lists and maps have no element of their own: their entries stand side by side, under a name that the service says.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::fault::Fault;

/// How a member that has entries is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// A member without entries, or one whose own members are spelled each under its name.
    Plain,
    /// A list: the name of each entry.
    List(&'static str),
    /// A map: the name of each entry, and of what stands in it.
    Map(&'static str, &'static str, &'static str),
}

/// The members of a value as XML. `spelling` says how a member with entries is spelled.
pub(crate) fn members<T: Serialize>(value: &T, spelling: &dyn Fn(&str) -> Spelling) -> Result<String, Fault> {
    let value =
        serde_json::to_value(value).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    let mut out = String::new();
    write(&mut out, &value, spelling);
    Ok(out)
}

fn write(out: &mut String, value: &Value, spelling: &dyn Fn(&str) -> Spelling) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(content) => out.push_str(&text(content)),
        Value::Array(entries) => entries.iter().for_each(|entry| element(out, "member", entry, spelling)),
        Value::Object(members) => {
            for (name, member) in members {
                match (spelling(name), member) {
                    (Spelling::List(entry), Value::Array(entries)) => {
                        entries.iter().for_each(|value| element(out, entry, value, spelling));
                    }
                    (Spelling::Map(entry, key, inner), Value::Object(entries)) => {
                        for (name, value) in entries {
                            out.push_str(&format!("<{entry}><{key}>{}</{key}>", text(name)));
                            element(out, inner, value, spelling);
                            out.push_str(&format!("</{entry}>"));
                        }
                    }
                    _ => element(out, name, member, spelling),
                }
            }
        }
    }
}

fn element(out: &mut String, name: &str, value: &Value, spelling: &dyn Fn(&str) -> Spelling) {
    out.push_str(&format!("<{name}>"));
    write(out, value, spelling);
    out.push_str(&format!("</{name}>"));
}

/// Whether XML can hold this character.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Text as content of an element. A carriage return is spelled by its number, because readers take a plain one for a
/// line feed; what XML cannot hold becomes the replacement character.
pub(crate) fn text(content: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'' | '\r') || !is_allowed(c);
    if !content.contains(special) {
        return Cow::Borrowed(content);
    }
    let mut out = String::with_capacity(content.len() + 16);
    for c in content.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\r' => out.push_str("&#13;"),
            c if is_allowed(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spelling(name: &str) -> Spelling {
        match name {
            "Messages" => Spelling::List("Message"),
            "Attributes" => Spelling::Map("Attribute", "Name", "Value"),
            _ => Spelling::Plain,
        }
    }

    #[test]
    fn entries_stand_side_by_side() {
        let value = json!({
            "Messages": [{"Body": "a<b", "Attributes": {"x": "1", "y": {"StringValue": "v"}}}, {"Body": "c"}],
            "Count": 7, "On": true, "Nothing": null,
        });
        assert_eq!(
            members(&value, &spelling).unwrap(),
            "<Count>7</Count><Message><Attribute><Name>x</Name><Value>1</Value></Attribute><Attribute><Name>y</Name>\
             <Value><StringValue>v</StringValue></Value></Attribute><Body>a&lt;b</Body></Message><Message><Body>c</Body>\
             </Message><Nothing></Nothing><On>true</On>"
        );
    }

    #[test]
    fn text_survives_a_reader() {
        assert_eq!(text("plain ✓"), "plain ✓");
        assert_eq!(text("a\r\nb\t&<>\"'"), "a&#13;\nb\t&amp;&lt;&gt;&quot;&apos;");
        assert_eq!(text("\u{0}\u{b}\u{fffe}"), "\u{fffd}\u{fffd}\u{fffd}");
    }

    proptest::proptest! {
        #[test]
        fn what_xml_can_hold_comes_back(content in ".{0,40}") {
            let allowed: String = content.chars().filter(|c| is_allowed(*c)).collect();
            let escaped = text(&allowed);
            proptest::prop_assert!(!escaped.contains(['<', '>', '\r']));
            proptest::prop_assert_eq!(&*quick_xml::escape::unescape(&escaped).unwrap(), &*allowed);
            proptest::prop_assert!(text(&content).chars().all(is_allowed));
        }
    }
}
