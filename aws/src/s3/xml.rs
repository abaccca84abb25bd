//! The little XML that the service speaks: small documents, read whole.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use quick_xml::events::Event;
use quick_xml::{Error, Reader};

/// An element with its text and the elements in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    text: String,
    children: Vec<Element>,
}

/// Why a text is no answer of the service.
#[derive(Debug)]
pub(super) struct NotXml(String);

impl std::fmt::Display for NotXml {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the answer is not XML ({})", self.0)
    }
}

impl std::error::Error for NotXml {}

impl From<Error> for NotXml {
    fn from(error: Error) -> Self {
        NotXml(error.to_string())
    }
}

impl Element {
    /// The root of a document.
    pub(super) fn parse(text: &str) -> Result<Element, NotXml> {
        let mut reader = Reader::from_str(text);
        // The elements that are open, the outermost first.
        let mut open: Vec<Element> = Vec::new();
        loop {
            let closed = match reader.read_event()? {
                Event::Start(start) => {
                    open.push(named(start.local_name().as_ref()));
                    None
                }
                Event::Empty(start) => Some(named(start.local_name().as_ref())),
                Event::End(_) => open.pop(),
                Event::Text(text) => {
                    add(&mut open, &text);
                    None
                }
                Event::CData(text) => {
                    add(&mut open, &text);
                    None
                }
                Event::GeneralRef(reference) => {
                    let meant = match reference.resolve_char_ref()? {
                        Some(c) => Cow::Owned(c.to_string()),
                        None => {
                            named_character(&reference).ok_or_else(|| NotXml(format!("&{};", &*reference)))?
                        }
                    };
                    add(&mut open, &meant);
                    None
                }
                Event::Eof => return Err(NotXml("it ends too early".to_string())),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => None,
            };
            match (closed, open.last_mut()) {
                (Some(element), Some(parent)) => parent.children.push(element),
                (Some(root), None) => return Ok(root),
                (None, _) => {}
            }
        }
    }

    /// The elements in this one that have a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of the element with this name; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.trim())
    }

    /// The text of the element with this name, as it is.
    pub(super) fn raw(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.as_str())
    }

    /// The text of the element with this name, which was escaped as in addresses; none if it is not UTF-8.
    pub(super) fn unescaped(&self, name: &str) -> Option<String> {
        // A real plus is escaped; this one is a space.
        let raw = self.raw(name).replace('+', " ");
        percent_decode(raw.as_bytes()).decode_utf8().ok().map(String::from)
    }
}

fn named(name: &str) -> Element {
    Element { name: name.to_string(), ..Element::default() }
}

/// Adds text to the innermost open element.
fn add(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn named_character(name: &str) -> Option<Cow<'static, str>> {
    let meant = match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    };
    Some(Cow::Borrowed(meant))
}

/// Text that can stand in an element, if it can: XML has no way to write most control characters.
pub(super) fn escaped(text: &str) -> Option<String> {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", u32::from(c))),
            '\u{fffe}' | '\u{ffff}' => return None,
            c if c < ' ' => return None,
            c => escaped.push(c),
        }
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name() {
        let text = "<?xml version=\"1.0\"?>\n<List xmlns=\"x\"> <Entry><Key>a%2Bb+c&amp;&#100;</Key><Size>7</Size>\
                    </Entry><Entry><Key/></Entry></List>";
        let root = Element::parse(text).unwrap();
        let keys: Vec<_> = root.all("Entry").map(|entry| entry.unescaped("Key")).collect();
        assert_eq!(keys, [Some("a+b c&d".to_string()), Some(String::new())]);
        assert_eq!((root.name.as_str(), root.child("Entry").unwrap().text("Size")), ("List", "7"));
    }

    #[test]
    fn what_is_not_xml_is_no_element() {
        for text in ["", "no", "<List>", "<List><Entry></List>", "<a>&nonsense;</a>"] {
            assert!(Element::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        for text in ["a&b<c>d\"e'f", "line\r\nbreak\ttab", "🦦 é", ""] {
            let root = Element::parse(&format!("<R><T>{}</T></R>", escaped(text).unwrap())).unwrap();
            assert_eq!(root.raw("T"), text);
        }
        for text in ["\0", "\u{1b}[31m", "\u{ffff}"] {
            assert_eq!(escaped(text), None);
        }
    }
}
