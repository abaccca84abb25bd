//! Documents that come with a call. What they may not do: declare anything, refer to anything but characters, or grow
//! beyond the limits.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::fault::Fault;
use crate::limits::{XML_DEPTH_MAX, XML_ELEMENTS_MAX};

/// An element, without its attributes and without prefixes of namespaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// The element that a document consists of, which must have this name.
    pub(crate) fn parse(document: &[u8], name: &str) -> Result<Element, Fault> {
        let text = std::str::from_utf8(document).map_err(|_| malformed())?;
        let root = Parser::default().document(text).ok_or_else(malformed)?;
        if root.name == name { Ok(root) } else { Err(malformed()) }
    }

    /// The elements in it that have this name.
    pub(crate) fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a Element> + use<'a, 'n> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the one element that has this name. Two of them are a mistake.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut found = self.all(name);
        match (found.next(), found.next()) {
            (Some(element), None) => Ok(Some(&element.text)),
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(malformed()),
        }
    }

    /// Like [`Element::text`], and it must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Fault> {
        self.text(name)?.ok_or_else(malformed)
    }
}

/// What S3 says about every document that it does not understand.
pub(crate) fn malformed() -> Fault {
    Fault::client(
        "MalformedXML",
        "The XML you provided was not well-formed or did not validate against our published schema",
    )
}

/// Elements that are open, the outermost first.
#[derive(Default)]
struct Parser {
    open: Vec<Element>,
    elements: usize,
}

impl Parser {
    fn document(mut self, text: &str) -> Option<Element> {
        let mut reader = Reader::from_str(text);
        let mut root = None;
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => self.start(&start)?,
                Event::Empty(start) => {
                    self.start(&start)?;
                    self.end(&mut root)?;
                }
                Event::End(_) => self.end(&mut root)?,
                Event::Text(text) => self.text(&text.xml10_content())?,
                Event::CData(data) => self.text(&data.xml10_content())?,
                Event::GeneralRef(reference) => self.text(&character(&reference)?)?,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::DocType(_) => return None,
                Event::Eof => return root.filter(|_| self.open.is_empty()),
            }
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Option<()> {
        self.elements += 1;
        if self.elements > XML_ELEMENTS_MAX || self.open.len() >= XML_DEPTH_MAX {
            return None;
        }
        let name = start.local_name().as_ref().to_owned();
        self.open.push(Element { name, ..Element::default() });
        Some(())
    }

    fn end(&mut self, root: &mut Option<Element>) -> Option<()> {
        let element = self.open.pop()?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            // A document is one element.
            None if root.is_some() => return None,
            None => *root = Some(element),
        }
        Some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() || text == "\u{feff}" => {}
            None => return None,
        }
        Some(())
    }
}

/// The five names that every reader knows, and characters by their number.
fn character(reference: &BytesRef<'_>) -> Option<String> {
    let name = reference.xml10_content();
    let known = match &*name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        number => {
            let digits = number.strip_prefix('#')?;
            let code = match digits.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some(known.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Element, Fault> {
        Element::parse(text.as_bytes(), "A")
    }

    #[test]
    fn elements_have_texts_and_children() {
        let text = "<?xml version=\"1.0\"?>\n<!-- x --><s:A xmlns:s='n' x='y'><B> a&amp;&#x62;<![CDATA[<c>]]> </B><C/>\r\n\
                    <B>2</B></s:A>\n";
        let root = parse(text).unwrap();
        let all: Vec<_> = root.all("B").map(|child| child.text.as_str()).collect();
        assert_eq!(all, [" a&b<c> ", "2"]);
        assert_eq!(root.text("C").unwrap(), Some(""));
        assert_eq!(root.text("D").unwrap(), None);
        assert!(root.text("B").is_err(), "two of them");
        assert!(root.required("D").is_err());
    }

    #[test]
    fn other_documents_are_refused() {
        let deep = format!("{}{}", "<A>".repeat(XML_DEPTH_MAX + 1), "</A>".repeat(XML_DEPTH_MAX + 1));
        let wide = format!("<A>{}</A>", "<b/>".repeat(XML_ELEMENTS_MAX));
        for text in [
            "",
            "x",
            "<A>",
            "</A>",
            "<A></B>",
            "<B/>",
            "<A/><A/>",
            "<A/>x",
            "<!DOCTYPE A [<!ENTITY e 'x'>]><A>&e;</A>",
            "<!DOCTYPE A SYSTEM 'file:///etc/passwd'><A/>",
            "<A>&e;</A>",
            "<A>&#xd800;</A>",
            "<A>&#x;</A>",
            "<A>&</A>",
            &deep,
            &wide,
        ] {
            let shown: String = text.chars().take(60).collect();
            assert!(parse(text).is_err_and(|fault| fault.code == "MalformedXML"), "{shown}");
        }
        assert!(Element::parse(b"<A>\xff</A>", "A").is_err());
    }
}
