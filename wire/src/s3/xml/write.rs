//! Documents that answer a call.

use std::fmt::{Display, Write as _};

/// The namespace of all documents except faults.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document that grows.
pub(crate) struct Xml {
    text: String,
}

impl Xml {
    /// A document with one element, which `content` fills.
    pub(crate) fn document(name: &str, content: impl FnOnce(&mut Xml)) -> String {
        let mut xml = Xml { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned() };
        // Writing into a text cannot fail.
        let _ = write!(xml.text, "<{name} xmlns=\"{NAMESPACE}\">");
        content(&mut xml);
        let _ = write!(xml.text, "</{name}>");
        xml.text
    }

    /// An element with others in it.
    pub(crate) fn element(&mut self, name: &str, content: impl FnOnce(&mut Xml)) -> &mut Self {
        let _ = write!(self.text, "<{name}>");
        content(self);
        let _ = write!(self.text, "</{name}>");
        self
    }

    /// An element with a text.
    pub(crate) fn value(&mut self, name: &str, value: impl Display) -> &mut Self {
        let value = value.to_string();
        self.element(name, |xml| xml.text(&value))
    }

    /// What is XML already.
    pub(crate) fn raw(&mut self, xml: &'static str) {
        self.text.push_str(xml);
    }

    /// A text.
    pub(crate) fn text(&mut self, text: &str) {
        text.chars().for_each(|c| self.character(c));
    }

    /// An element with one other in it, which has a text.
    pub(crate) fn nested(&mut self, outer: &str, inner: &str, value: impl Display) -> &mut Self {
        self.element(outer, |xml| {
            xml.value(inner, value);
        })
    }

    /// An element with a text, if there is one.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.value(name, value);
        }
        self
    }

    /// Characters that a document cannot hold stand as references, as S3 has them: no reader understands them, and
    /// callers who have such keys ask for the encoding of addresses.
    fn character(&mut self, c: char) {
        match c {
            '&' => self.text.push_str("&amp;"),
            '<' => self.text.push_str("&lt;"),
            '>' => self.text.push_str("&gt;"),
            '"' => self.text.push_str("&quot;"),
            '\t' | '\n' | ' '..='\u{7e}' => self.text.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(self.text, "&#x{:x};", u32::from(c));
            }
            c => self.text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_xml_is_escaped() {
        let text = Xml::document("A", |xml| {
            xml.value("B", "<&>\"ä\r\u{1}").optional("C", None::<&str>).optional("D", Some(7));
        });
        assert!(text.ends_with("<B>&lt;&amp;&gt;&quot;ä&#xd;&#x1;</B><D>7</D></A>"), "{text}");
        assert!(text.contains("<A xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"), "{text}");
    }
}
