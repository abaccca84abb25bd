//! Every node as text, with the placeholders put back so that a test can be read.

use anabranch_model::table::expression::{exists, if_missing, list_append, missing, size};
use anabranch_model::table::path;

use super::*;
use anabranch_model::table::Projection;

/// The text with names in backquotes and values as they are. A placeholder that is not in the maps stays and fails.
fn readable(text: String, expressions: Expressions) -> String {
    let Placeholders { names, values } = expressions.placeholders();
    let mut text = text;
    let mut known: Vec<_> =
        names.unwrap_or_default().into_iter().map(|(n, name)| (n, format!("`{name}`"))).collect();
    known.extend(values.unwrap_or_default().into_iter().map(|(n, value)| {
        let shown = match value {
            AttributeValue::S(text) => format!("'{text}'"),
            AttributeValue::N(number) => number,
            other => format!("{other:?}"),
        };
        (n, shown)
    }));
    // Longer placeholders first: `#n1` begins `#n12`.
    known.sort_by_key(|(placeholder, _)| std::cmp::Reverse(placeholder.len()));
    for (placeholder, shown) in known {
        text = text.replace(&placeholder, &shown);
    }
    text
}

fn condition(condition: Condition) -> String {
    let mut expressions = Expressions::default();
    let text = expressions.condition(&condition);
    readable(text, expressions)
}

fn update(update: Update) -> String {
    let mut expressions = Expressions::default();
    let text = expressions.update(&update).expect("a change");
    readable(text, expressions)
}

fn key(key: KeyCondition) -> String {
    let mut expressions = Expressions::default();
    let text = expressions.key_condition(&key);
    readable(text, expressions)
}

#[test]
fn every_condition_has_its_text() {
    let p = path;
    for (given, expected) in [
        (p("a").equals(1), "`a` = 1"),
        (p("a").differs(1), "`a` <> 1"),
        (p("a").below(1), "`a` < 1"),
        (p("a").at_most(1), "`a` <= 1"),
        (p("a").above(p("b")), "`a` > `b`"),
        (p("a").at_least("x"), "`a` >= 'x'"),
        (p("a").between(1, 2), "`a` BETWEEN 1 AND 2"),
        (p("a").one_of([1, 2, 3]), "`a` IN (1, 2, 3)"),
        (p("a").one_of([1]), "`a` IN (1)"),
        (exists("a"), "attribute_exists(`a`)"),
        (missing(p("a").name("b").index(3).name("c")), "attribute_not_exists(`a`.`b`[3].`c`)"),
        (p("a").begins_with("x"), "begins_with(`a`, 'x')"),
        (p("a").contains(p("b")), "contains(`a`, `b`)"),
        (size("a").above(2), "size(`a`) > 2"),
        (exists("a").negated(), "NOT attribute_exists(`a`)"),
    ] {
        assert_eq!(condition(given), expected);
    }
    let kinds = [
        (Kind::Text, "S"),
        (Kind::Number, "N"),
        (Kind::Binary, "B"),
        (Kind::Bool, "BOOL"),
        (Kind::Null, "NULL"),
        (Kind::List, "L"),
        (Kind::Map, "M"),
        (Kind::TextSet, "SS"),
        (Kind::NumberSet, "NS"),
        (Kind::BinarySet, "BS"),
    ];
    for (kind, letters) in kinds {
        let expected = format!("attribute_type(`a`, '{letters}')");
        assert_eq!(condition(Condition::HasKind(path("a"), kind)), expected);
    }
}

#[test]
fn junctions_keep_their_meaning_without_doubled_parentheses() {
    let [a, b, c] = ["a", "b", "c"].map(exists);
    let (x, y, z) = ("attribute_exists(`a`)", "attribute_exists(`b`)", "attribute_exists(`c`)");
    let alone = |condition: &Condition| Condition::And(vec![condition.clone()]);
    for (given, expected) in [
        (a.clone().and(b.clone()).and(c.clone()), format!("{x} AND {y} AND {z}")),
        (a.clone().or(b.clone()).and(c.clone()), format!("({x} OR {y}) AND {z}")),
        (a.clone().and(b.clone()).or(c.clone()), format!("({x} AND {y}) OR {z}")),
        (a.clone().and(b.clone().or(c.clone())), format!("{x} AND ({y} OR {z})")),
        (a.clone().and(b.clone()).negated(), format!("NOT ({x} AND {y})")),
        (a.clone().negated().negated(), format!("NOT (NOT {x})")),
        (alone(&alone(&a)), x.to_string()),
        (alone(&a.clone().or(b.clone())).and(c.clone()), format!("({x} OR {y}) AND {z}")),
        (Condition::Or(vec![alone(&a), b.clone()]), format!("{x} OR {y}")),
        (path("n").between(1, 2).and(c), format!("(`n` BETWEEN 1 AND 2) AND {z}")),
    ] {
        let text = condition(given);
        assert_eq!(text, expected);
        // A function has its name before its parenthesis.
        assert!(!text.contains("(("), "{text}");
    }
}

#[test]
fn every_condition_on_a_key_has_its_text() {
    let of = || KeyCondition::of("h", "x");
    assert_eq!(key(of()), "`h` = 'x'");
    for (range, expected) in [
        (RangeCondition::equals(1), "`r` = 1"),
        (RangeCondition::below(1), "`r` < 1"),
        (RangeCondition::at_most(1), "`r` <= 1"),
        (RangeCondition::above(1), "`r` > 1"),
        (RangeCondition::at_least(1), "`r` >= 1"),
        (RangeCondition::between(1, 2), "`r` BETWEEN 1 AND 2"),
        (RangeCondition::begins_with("y"), "begins_with(`r`, 'y')"),
    ] {
        assert_eq!(key(of().and("r", range)), format!("`h` = 'x' AND {expected}"));
    }
}

#[test]
fn every_update_has_its_text() {
    for (given, expected) in [
        (Update::new().set("a", 1), "SET `a` = 1"),
        (Update::new().set("a", path("b")), "SET `a` = `b`"),
        (Update::new().set("a", path("b").plus(1)), "SET `a` = `b` + 1"),
        (Update::new().set("a", path("b").minus(path("c"))), "SET `a` = `b` - `c`"),
        (Update::new().set("a", if_missing("b", 0).plus(1)), "SET `a` = if_not_exists(`b`, 0) + 1"),
        (
            Update::new().set("a", list_append(path("a"), if_missing("b", path("c")))),
            "SET `a` = list_append(`a`, if_not_exists(`b`, `c`))",
        ),
        (Update::new().remove("a").remove(path("b").index(0)), "REMOVE `a`, `b`[0]"),
        (Update::new().add("a", 1).add("b", 2), "ADD `a` 1, `b` 2"),
        (Update::new().delete("a", "x"), "DELETE `a` 'x'"),
        (
            Update::new().delete("d", "x").add("c", 1).remove("b").set("a", 1).set(path("m").name("x"), 2),
            "SET `a` = 1, `m`.`x` = 2 REMOVE `b` ADD `c` 1 DELETE `d` 'x'",
        ),
    ] {
        assert_eq!(update(given), expected);
    }
    assert_eq!(Expressions::default().update(&Update::new()), None);
}

#[test]
fn placeholders_are_shared_and_never_empty() {
    let nothing = Expressions::default().placeholders();
    assert_eq!(nothing, Placeholders { names: None, values: None });
    let mut expressions = Expressions::default();
    let condition = expressions.condition(&path("count").equals(1));
    let update = expressions.update(&Update::new().set("count", 2).remove(path("x").name("count")));
    let projection = expressions.projection(&Projection::of([path("y"), path("x").index(1)]).0);
    assert_eq!(condition, "#n0 = :v0");
    assert_eq!(update.as_deref(), Some("SET #n0 = :v1 REMOVE #n1.#n0"));
    assert_eq!(projection, "#n2, #n1[1]");
    let Placeholders { names, values } = expressions.placeholders();
    let names = names.expect("names");
    assert_eq!(names["#n0"], "count");
    assert_eq!(names.len(), 3);
    assert_eq!(values.expect("values").len(), 2);
}
