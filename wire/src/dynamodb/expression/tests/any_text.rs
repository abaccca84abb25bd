//! Any text, with or without a meaning.

use super::*;

/// Texts out of what expressions are made of, and of what they are not.
fn any_text() -> impl proptest::strategy::Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "a",
        "b.c",
        "#a",
        "#b",
        ":v",
        ":n",
        ":l",
        "=",
        "<>",
        "<",
        ">=",
        "(",
        ")",
        "[",
        "]",
        "0",
        "17",
        ",",
        ".",
        "AND",
        "or",
        "NOT",
        "between",
        "IN",
        "set",
        "REMOVE",
        "add",
        "delete",
        "+",
        "-",
        "size(",
        "attribute_exists(",
        "contains(a,",
        "begins_with(",
        "if_not_exists(a,",
        "list_append(",
        "name",
        "é",
        "'",
        "\"",
        "#",
        ":",
        "\u{0}",
        "$",
        "99999999999999",
    ]);
    proptest::strategy::Strategy::prop_map(proptest::collection::vec(words, 0..40), |words| words.join(" "))
}

proptest::proptest! {
    /// Whatever the text, there is an answer, and what is accepted the model takes as well.
    #[test]
    fn any_text_is_read_or_refused(text in any_text()) {
        if let Ok(condition) = usual().condition(&text) {
            proptest::prop_assert!(condition.check().is_ok(), "{text}");
        }
        if let Ok(projection) = usual().projection(&text) {
            proptest::prop_assert!(projection.check().is_ok(), "{text}");
        }
        if let Ok(update) = usual().update(&text) {
            let schema = anabranch_model::table::KeySchema::hash("key", anabranch_model::table::KeyKind::Text);
            proptest::prop_assert!(update.check(&schema).is_ok(), "{text}");
        }
        let _ = usual().key_condition(&text).and_then(key_parts);
    }

    #[test]
    fn any_characters_are_read_or_refused(text in ".{0,200}") {
        for fault in [usual().condition(&text).map(drop), usual().update(&text).map(drop), usual().projection(&text).map(drop)] {
            if let Err(fault) = fault {
                proptest::prop_assert_eq!(fault.code, "ValidationException");
            }
        }
    }
}
