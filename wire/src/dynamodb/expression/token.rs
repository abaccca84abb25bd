//! The words of an expression. Nothing is refused here: what no grammar knows becomes a token that none expects.

/// One word, with where it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: Kind,
    /// Its first byte.
    pub(super) start: usize,
    /// The byte behind it.
    pub(super) end: usize,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, or a function where a parenthesis follows.
    Word,
    /// A word of the grammar itself.
    Keyword(Keyword),
    /// `#name`.
    Name,
    /// `:value`.
    Value,
    /// Digits.
    Digits,
    /// `=`, `<>`, `<`, `<=`, `>`, `>=`.
    Comparator,
    /// Any other character.
    Symbol(char),
    /// Behind the last word.
    End,
}

/// The words that no attribute can have, however it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Between,
    In,
    Set,
    Remove,
    Add,
    Delete,
}

/// The words of the grammar, as messages spell them.
const KEYWORDS: [(&str, Keyword); 9] = [
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("NOT", Keyword::Not),
    ("BETWEEN", Keyword::Between),
    ("IN", Keyword::In),
    ("SET", Keyword::Set),
    ("REMOVE", Keyword::Remove),
    ("ADD", Keyword::Add),
    ("DELETE", Keyword::Delete),
];

/// The words of a text, ended by [`Kind::End`].
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = next(&text[at..], first);
        tokens.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    tokens.push(Token { kind: Kind::End, start: text.len(), end: text.len() });
    tokens
}

/// The token that a text begins with, and its length.
fn next(text: &str, first: char) -> (Kind, usize) {
    let rest = &text[first.len_utf8()..];
    match first {
        'a'..='z' | 'A'..='Z' => {
            let length = 1 + run(rest, is_part_of_word);
            let word = &text[..length];
            let keyword = KEYWORDS.iter().find(|(spelled, _)| word.eq_ignore_ascii_case(spelled));
            (keyword.map_or(Kind::Word, |(_, keyword)| Kind::Keyword(*keyword)), length)
        }
        '#' | ':' => match run(rest, is_part_of_word) {
            0 => (Kind::Symbol(first), 1),
            length => (if first == '#' { Kind::Name } else { Kind::Value }, 1 + length),
        },
        '0' => (Kind::Digits, 1),
        '1'..='9' => (Kind::Digits, 1 + run(rest, |c| c.is_ascii_digit())),
        '=' => (Kind::Comparator, 1),
        '<' if rest.starts_with(['>', '=']) => (Kind::Comparator, 2),
        '>' if rest.starts_with('=') => (Kind::Comparator, 2),
        '<' | '>' => (Kind::Comparator, 1),
        // A text in quotes is one word, so that the message shows it as a whole; there are no such texts.
        '\'' | '"' => match rest.find(first) {
            Some(length) => (Kind::Symbol(first), length + 2),
            None => (Kind::Symbol(first), 1),
        },
        other => (Kind::Symbol(other), other.len_utf8()),
    }
}

/// Whether a character can stand in a word behind its first one.
pub(super) fn is_part_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| &text[token.start..token.end]).collect()
    }

    #[test]
    fn a_text_is_cut_into_words() {
        assert_eq!(
            words("#a.b[10]<>:v AND\tsize (x)\n>=\u{a0}y"),
            ["#a", ".", "b", "[", "10", "]", "<>", ":v", "AND", "size", "(", "x", ")", ">=", "y", ""]
        );
        assert_eq!(words("a==1b_c 'x y' 00"), ["a", "=", "=", "1", "b_c", "'x y'", "0", "0", ""]);
        assert_eq!(words("_é#:'"), ["_", "é", "#", ":", "'", ""]);
    }

    #[test]
    fn keywords_are_known_in_any_case_and_only_as_a_whole() {
        let kinds: Vec<_> = tokens("BeTween android in_ NOT").iter().map(|token| token.kind).collect();
        assert_eq!(
            kinds,
            [Kind::Keyword(Keyword::Between), Kind::Word, Kind::Word, Kind::Keyword(Keyword::Not), Kind::End]
        );
    }
}
