//! Projections, updates and conditions on keys.

use anabranch_model::table::expression::{Update, if_missing, list_append};
use anabranch_model::table::{Projection, RangeCondition, Value, path};

use super::super::key_condition::KeyPart;
use super::*;

#[test]
fn projections_are_paths() {
    let projection = usual().projection("a, #a.b[3], q.#b").unwrap();
    assert_eq!(
        projection,
        Projection::of([path("a"), path("x.y").name("b").index(3), path("q").name("name")])
    );
    let refused = |text: &str| message("ProjectionExpression", text, usual().projection(text).map(drop));
    let two = |what: &str, one: &str, two: &str| {
        format!(
            "Two document paths {what} with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
        )
    };
    assert_eq!(refused("a,"), "Syntax error; token: \"<EOF>\", near: \",\"");
    assert_eq!(refused("a b"), "Syntax error; token: \"b\", near: \"a b\"");
    assert_eq!(refused("size(a)"), "Syntax error; token: \"(\", near: \"size(a\"");
    assert_eq!(refused("a,:v"), "Syntax error; token: \":v\", near: \",:v\"");
    assert_eq!(refused("id,name"), "Attribute name is a reserved keyword; reserved keyword: name");
    assert_eq!(refused("a,b,a"), two("overlap", "[a]", "[a]"));
    assert_eq!(refused("a.b,a"), two("overlap", "[a, b]", "[a]"));
    assert_eq!(refused("c,a[0],a.b"), two("conflict", "[a, [0]]", "[a, b]"));
}

#[test]
fn updates_mean_what_they_say() {
    let update =
        |text: &str| usual().update(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.message));
    assert_eq!(
        update("SET a = :v, b.c = b.d remove e[1] ADD f :n, g :ss delete h :ss"),
        Update::new()
            .set("a", "x")
            .set(path("b").name("c"), path("b").name("d"))
            .remove(path("e").index(1))
            .add("f", 1)
            .add("g", Value::text_set(["a"]).unwrap())
            .delete("h", Value::text_set(["a"]).unwrap())
    );
    assert_eq!(update("set a = a + :n"), Update::new().set("a", path("a").plus(1)));
    assert_eq!(
        update("set a = (:n - b)"),
        Update::new().set("a", anabranch_model::table::expression::SetOperand::from(1).minus(path("b")))
    );
    assert_eq!(update("set a = (b) + (:n)"), Update::new().set("a", path("b").plus(1)));
    assert_eq!(
        update("set a = if_not_exists(q, if_not_exists(w, :n)) + :n"),
        Update::new().set("a", if_missing("q", if_missing("w", 1)).plus(1))
    );
    assert_eq!(
        update("set a = list_append(if_not_exists(q, :l), :l)"),
        Update::new().set("a", list_append(if_missing("q", Value::List(vec![])), Value::List(vec![])))
    );
}

#[test]
fn updates_are_refused_in_the_words_of_the_service() {
    let wrong = "Incorrect operand type for operator or function; operator";
    let misplaced = "The function is not allowed to be used this way in an expression; function: list_append";
    for (text, why) in [
        ("", "The expression can not be empty;".to_string()),
        ("set", "Syntax error; token: \"<EOF>\", near: \"set\"".to_string()),
        ("foo a = :v", "Syntax error; token: \"foo\", near: \"foo a\"".to_string()),
        ("and a = :v", "Syntax error; token: \"and\", near: \"and a\"".to_string()),
        ("set a = :v,", "Syntax error; token: \"<EOF>\", near: \",\"".to_string()),
        ("set a :v", "Syntax error; token: \":v\", near: \"a :v\"".to_string()),
        ("set a < :v", "Syntax error; token: \"<\", near: \"a < :v\"".to_string()),
        ("set a == :v", "Syntax error; token: \"=\", near: \"== :v\"".to_string()),
        ("set :v = :v", "Syntax error; token: \":v\", near: \"set :v =\"".to_string()),
        ("set size(a) = :v", "Syntax error; token: \"(\", near: \"size(a\"".to_string()),
        ("set a = :v; remove b", "Syntax error; token: \";\", near: \":v; remove\"".to_string()),
        ("add a b", "Syntax error; token: \"b\", near: \"a b\"".to_string()),
        ("remove :v", "Syntax error; token: \":v\", near: \"remove :v\"".to_string()),
        ("set a = n + :n + :n", "Syntax error; token: \"+\", near: \":n + :n\"".to_string()),
        ("set a = if_not_exists(q, n + :n)", "Syntax error; token: \"+\", near: \"n + :n\"".to_string()),
        ("set a = ((:n))", "The expression has redundant parentheses;".to_string()),
        ("set a = :v set b = :v", "The \"SET\" section can only be used once in an update expression;".to_string()),
        ("remove a add b :n remove c", "The \"REMOVE\" section can only be used once in an update expression;".to_string()),
        ("set a = :v set", "Syntax error; token: \"<EOF>\", near: \"set\"".to_string()),
        ("set a = :v set abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort".to_string()),
        ("set a = :v set b = foo(a)", "Invalid function name; function: foo".to_string()),
        ("set abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort".to_string()),
        ("set a = foo(a)", "Invalid function name; function: foo".to_string()),
        ("set a = size(a)", "The function is not allowed in an update expression; function: size".to_string()),
        ("set a = :n + :v", format!("{wrong} or function: +, operand type: S")),
        ("set a = if_not_exists(b, :v) - :n", format!("{wrong} or function: -, operand type: S")),
        ("set a = list_append(b, :v)", format!("{wrong} or function: list_append, operand type: S")),
        ("set a = list_append(b)", "Incorrect number of operands for operator or function; operator or function: list_append, number of operands: 1".to_string()),
        ("set a = list_append(:l, list_append(:l, :l))", misplaced.to_string()),
        ("set a = list_append(:l, :l) + :n", misplaced.to_string()),
        ("set a = if_not_exists(:v, :v)", "Operator or function requires a document path; operator or function: if_not_exists".to_string()),
        ("set a = if_not_exists(b, b)", "The first operand must be distinct from the remaining operands for this operator or function; operator: if_not_exists, first operand: [b]".to_string()),
        ("add a :v", format!("{wrong}: ADD, operand type: STRING")),
        ("add a :l", format!("{wrong}: ADD, operand type: LIST")),
        ("delete a :n", format!("{wrong}: DELETE, operand type: NUMBER")),
        ("set a = :v remove a", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]".to_string()),
        ("set a.b = :v, a[0] = :v", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]".to_string()),
    ] {
        assert_eq!(refused_update(text), why, "{text}");
    }
}

fn key_condition(text: &str) -> Result<KeyPart, Fault> {
    usual().key_condition(text).and_then(key_parts)
}

#[test]
fn key_conditions_ask_for_single_attributes() {
    let asked = |text: &str| key_condition(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.message));
    let parts = |parts: Vec<(&str, RangeCondition)>| {
        parts.into_iter().map(|(name, part)| (name.to_string(), part)).collect::<KeyPart>()
    };
    assert_eq!(asked("h = :v"), parts(vec![("h", RangeCondition::equals("x"))]));
    assert_eq!(
        asked("((h = :v) and (:n < r))"),
        parts(vec![("h", RangeCondition::equals("x")), ("r", RangeCondition::above(1))])
    );
    assert_eq!(
        asked("r between :m and :n and #a = :v"),
        parts(vec![("r", RangeCondition::between(0, 1)), ("x.y", RangeCondition::equals("x"))])
    );
    assert_eq!(
        asked("h = :v and begins_with(r, :w)"),
        parts(vec![("h", RangeCondition::equals("x")), ("r", RangeCondition::begins_with("y"))])
    );
}

#[test]
fn key_conditions_are_refused_in_the_words_of_the_service() {
    for (text, why) in [
        ("", "Invalid KeyConditionExpression: The expression can not be empty;"),
        ("h = :v or r = :n", "Invalid operator used in KeyConditionExpression: OR"),
        ("not h = :v", "Invalid operator used in KeyConditionExpression: NOT"),
        ("h = :v and r <> :n", "Invalid operator used in KeyConditionExpression: <>"),
        ("h = :v and r in (:n)", "Invalid operator used in KeyConditionExpression: IN"),
        ("h = :v and contains(r, :n)", "Invalid operator used in KeyConditionExpression: contains"),
        ("attribute_exists(r)", "Invalid operator used in KeyConditionExpression: attribute_exists"),
        ("h = :v and h = :v", "KeyConditionExpressions must only contain one condition per key"),
        ("h = :v and size(r) = :n", "KeyConditionExpressions cannot contain nested operations"),
        (
            "h = r",
            "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
        ),
        ("h.x = :v", "KeyConditionExpressions cannot have conditions on nested attributes"),
        ("h.x > r", "KeyConditionExpressions cannot have conditions on nested attributes"),
        (
            ":v between :m and :n",
            "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(:v, r)",
            "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(r, :n)",
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
    ] {
        assert_eq!(key_condition(text).expect_err(text).message, why, "{text}");
    }
}
