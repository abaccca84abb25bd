//! What the texts mean, and the words in which they are refused. The words are those of the service: clients match on
//! some of them, and people search for the others.

use std::collections::BTreeMap;

use anabranch_model::table::expression::{
    Condition, Operand, Update, exists, if_missing, list_append, missing, size,
};
use anabranch_model::table::{Kind, Projection, RangeCondition, Value, path};

use super::*;

/// Placeholders from JSON, of which all may stay unused.
fn with(names: &str, values: &str) -> Expressions {
    let names: BTreeMap<String, String> = serde_json::from_str(names).unwrap();
    let values: BTreeMap<String, Attribute> = serde_json::from_str(values).unwrap();
    let given = [("X", Some("x"))];
    Expressions::new(
        Some(names).filter(|names| !names.is_empty()),
        Some(values).filter(|values| !values.is_empty()),
        &given,
        &[],
    )
    .unwrap()
}

fn usual() -> Expressions {
    with(
        r##"{"#a":"x.y","#b":"name","#_1":"z"}"##,
        r#"{":v":{"S":"x"},":w":{"S":"y"},":n":{"N":"1"},":m":{"N":"0"},":t":{"S":"SS"},":ss":{"SS":["a"]},":l":{"L":[]},
           ":bool":{"BOOL":true},":b":{"B":"YQ=="}}"#,
    )
}

fn condition(text: &str) -> Condition {
    usual().condition(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.message))
}

/// The refusal of a condition, without what all of them begin with.
fn refused(text: &str) -> String {
    message("ConditionExpression", text, usual().condition(text).map(drop))
}

fn refused_update(text: &str) -> String {
    message("UpdateExpression", text, usual().update(text).map(drop))
}

fn message(parameter: &str, text: &str, result: Result<(), Fault>) -> String {
    let fault = result.expect_err(text);
    assert_eq!(fault.code, "ValidationException");
    let begin = format!("Invalid {parameter}: ");
    fault.message.strip_prefix(&begin).unwrap_or(&fault.message).to_string()
}

#[test]
fn conditions_mean_what_they_say() {
    let v = || Value::from("x");
    assert_eq!(condition("a = :v"), path("a").equals(v()));
    assert_eq!(condition("a<>:v"), path("a").differs(v()));
    assert_eq!(condition("a < :n"), path("a").below(1));
    assert_eq!(condition("a <= :n"), path("a").at_most(1));
    assert_eq!(condition("a > :n"), path("a").above(1));
    assert_eq!(condition("a >= :n"), path("a").at_least(1));
    assert_eq!(
        condition(":n >= a"),
        Condition::compare(1, anabranch_model::table::expression::Comparison::AtLeast, path("a"))
    );
    assert_eq!(condition("a between :m and :n"), path("a").between(0, 1));
    assert_eq!(
        condition("a IN (:v, :w , b)"),
        path("a").one_of([v().into(), Value::from("y").into(), Operand::Path(path("b"))])
    );
    assert_eq!(condition("attribute_exists (a)"), exists("a"));
    assert_eq!(condition("attribute_not_exists(a.b[2])"), missing(path("a").name("b").index(2)));
    assert_eq!(condition("attribute_type(a, :t)"), Condition::HasKind(path("a"), Kind::TextSet));
    assert_eq!(condition("begins_with(a, :v)"), path("a").begins_with(v()));
    assert_eq!(condition("contains(a, :n)"), path("a").contains(1));
    assert_eq!(condition("size(a) > size(b)"), size("a").above(size("b")));
    assert_eq!(condition("size(:v) = :n"), Operand::Value(1.into()).equals(1));
    assert_eq!(condition("(a) = (:v)"), path("a").equals(v()));
}

#[test]
fn names_are_looked_up_as_a_whole() {
    assert_eq!(condition("#a.b = :v"), path("x.y").name("b").equals("x"));
    assert_eq!(condition("q.#b[0].#_1 = :v"), path("q").name("name").index(0).name("z").equals("x"));
    assert_eq!(condition("a [ 0 ] . b = :v"), path("a").index(0).name("b").equals("x"));
}

#[test]
fn not_binds_before_and_and_and_before_or() {
    let is = |name: &str| path(name).equals("x");
    assert_eq!(
        condition("a = :v or b = :v and not c = :v or d = :v"),
        Condition::Or(vec![is("a"), Condition::And(vec![is("b"), is("c").negated()]), is("d"),])
    );
    assert_eq!(
        condition("(a = :v OR b = :v) AND NOT (c = :v AND d = :v)"),
        Condition::And(vec![
            Condition::Or(vec![is("a"), is("b")]),
            Condition::And(vec![is("c"), is("d")]).negated(),
        ])
    );
    assert_eq!(condition("not not a = :v"), is("a").negated().negated());
    assert_eq!(
        condition("a between :m and :n and b = :v"),
        Condition::And(vec![path("a").between(0, 1), is("b")])
    );
    assert_eq!(condition("((a = :v) and b = :v) or c = :v"), is("a").and(is("b")).or(is("c")));
}

#[test]
fn syntax_errors_show_where() {
    for (text, token, near) in [
        ("a = = :v", "=", "= = :v"),
        ("a = ", "<EOF>", "= "),
        ("a $ :v", "$", "a $ :v"),
        ("a == :v", "=", "== :v"),
        ("a != :v", "!", "a !="),
        ("a", "<EOF>", "a"),
        ("a = :v)", ")", ":v)"),
        ("(a = :v", "<EOF>", ":v"),
        ("a = :v a = :v", "a", ":v a ="),
        ("attribute_exists()", ")", "()"),
        ("a in ()", ")", "()"),
        ("a in :v", ":v", "in :v"),
        ("a[x] = :v", "x", "[x]"),
        ("a[-1] = :v", "-", "[-1"),
        ("a[1.5] = :v", ".", "1.5"),
        ("a[00] = :v", "0", "00]"),
        ("a[1", "<EOF>", "1"),
        ("a.5 = :v", "5", ".5 ="),
        ("a. = :v", "=", ". = :v"),
        ("1a = :v", "1", "1a"),
        ("_a = :v", "_", "_a"),
        ("a-b = :v", "-", "a-b"),
        ("é = :v", "é", "é ="),
        ("a = 'x'", "'x'", "= 'x'"),
        ("a = 5", "5", "= 5"),
        ("a = :v AND", "<EOF>", "AND"),
        ("AND", "AND", "AND"),
        ("set = :v", "set", "set ="),
        ("a between :v, :v", ",", ":v, :v"),
        ("a = :v,", ",", ":v,"),
        ("a <> :v or", "<EOF>", "or"),
        ("a = (b = :v)", "=", "b = :v"),
        ("(a = :v) = :v", "=", ") = :v"),
    ] {
        assert_eq!(refused(text), format!("Syntax error; token: \"{token}\", near: \"{near}\""), "{text}");
    }
}

#[test]
fn conditions_are_refused_in_the_words_of_the_service() {
    let types = "{S,BOOL,N,NS,BS,SS,B,L,M,NULL}";
    for (text, why) in [
        ("", "The expression can not be empty;"),
        (" \n", "The expression can not be empty;"),
        ("abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort"),
        ("a.Abort = :v", "Attribute name is a reserved keyword; reserved keyword: Abort"),
        ("#z = :q and abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort"),
        ("foo(a) and abort = :v", "Invalid function name; function: foo"),
        ("SIZE(a) = :v", "Invalid function name; function: SIZE"),
        (
            "#q = :v",
            "An expression attribute name used in the document path is not defined; attribute name: #q",
        ),
        ("a = :q", "An expression attribute value used in expression is not defined; attribute value: :q"),
        (
            "attribute_exists(:v)",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "attribute_exists(a) = :v",
            "The function is not allowed to be used this way in an expression; function: attribute_exists",
        ),
        ("size(a)", "The function is not allowed to be used this way in an expression; function: size"),
        (
            "if_not_exists(a, :v)",
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        (
            "list_append(a, :v) = :v",
            "The function is not allowed in a condition expression; function: list_append",
        ),
        (
            "a < :bool",
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
        ),
        (
            "a between :ss and :ss",
            "Incorrect operand type for operator or function; operator or function: BETWEEN, operand type: SS",
        ),
        (
            "begins_with(a, :n)",
            "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "begins_with(size(a), :v)",
            "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "size(:n) > :n",
            "Incorrect operand type for operator or function; operator or function: size, operand type: N",
        ),
        (
            "size(size(a)) = :n",
            "Incorrect operand type for operator or function; operator or function: size, operand type: N",
        ),
        (
            "attribute_type(a, :n)",
            "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N",
        ),
        ("((a = :v))", "The expression has redundant parentheses;"),
        ("((a)) = :v", "The expression has redundant parentheses;"),
        ("a = ((:v))", "The expression has redundant parentheses;"),
        ("a[99999999999] = :v", "List index is not within the allowable range; index: [99999999999]"),
        (
            "a = a",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]",
        ),
        (
            "a.b[1] in (:v, a.b[1])",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: IN, first operand: [a, b, [1]]",
        ),
        (
            "a between :v and a",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: BETWEEN, first operand: [a]",
        ),
        (
            "contains(a, a)",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [a]",
        ),
        (
            "a between :n and :m",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {N:0}",
        ),
        (
            "a between :n and :v",
            "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:x}",
        ),
    ] {
        assert_eq!(refused(text), why, "{text}");
    }
    for function in ["attribute_exists", "attribute_not_exists", "size"] {
        let why = refused(&format!("{function}(a, b) = :v"));
        assert!(
            why.ends_with(&format!("function: {function}, number of operands: 2"))
                || why.contains("used this way"),
            "{why}"
        );
    }
    assert_eq!(
        refused("attribute_type(a, :v)"),
        format!("Invalid attribute type name found; type: x, valid types: {types}")
    );
    assert!(refused("attribute_type(a, b)").ends_with(&format!("operand type: {types}")));
}

#[test]
fn expressions_have_limits() {
    let many = |count: usize| vec!["a = :v"; count].join(" and ");
    assert_eq!(
        refused(&"a ".repeat(3000)),
        "Expression size has exceeded the maximum allowed size; expression size: 6000"
    );
    assert!(usual().condition(&many(150)).is_ok());
    assert_eq!(refused(&many(151)), "The expression contains too many operators; operator count: 301");
    let list = |count: usize| format!("a in ({})", vec![":v"; count].join(","));
    assert!(usual().condition(&list(100)).is_ok());
    assert_eq!(
        refused(&list(101)),
        "The IN operator is provided with too many operands; number of operands: 102"
    );
    let deep = |steps: usize| format!("a{} = :v", ".b".repeat(steps - 1));
    assert!(usual().condition(&deep(32)).is_ok());
    assert_eq!(refused(&deep(33)), "The document path has too many nesting levels; nesting levels: 33");
    let nested = |levels: usize| format!("{}a = :v{}", "not (".repeat(levels), ")".repeat(levels));
    assert!(usual().condition(&nested(50)).is_ok());
    for hostile in ["(".repeat(4_000), nested(600), "size(".repeat(800), "not ".repeat(1_000)] {
        assert!(refused(&hostile).contains("nesting levels"), "{hostile}");
    }
    let parentheses = format!("{}a = :v{}", "(".repeat(90), ")".repeat(90));
    assert_eq!(refused(&parentheses), "The expression has redundant parentheses;");
}

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

#[test]
fn key_conditions_ask_for_single_attributes() {
    let asked =
        |text: &str| usual().key_condition(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.message));
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
        (
            "h.x = :v",
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: h; nested attributes are no keys",
        ),
        (
            "begins_with(r, :n)",
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
    ] {
        assert_eq!(usual().key_condition(text).expect_err(text).message, why, "{text}");
    }
}

#[test]
fn placeholders_must_be_used() {
    let mut expressions = with(r##"{"#a":"x","#b":"y","#c":"z"}"##, r#"{":v":{"S":"x"},":w":{"S":"x"}}"#);
    expressions.condition("#a = :v").unwrap();
    expressions.projection("#a").unwrap();
    assert_eq!(
        expressions.finish().unwrap_err().message,
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b, #c}"
    );
    let mut expressions = with("{}", r#"{":v":{"S":"x"},":w":{"S":"x"}}"#);
    expressions.condition("a = :v").unwrap();
    assert_eq!(
        expressions.finish().unwrap_err().message,
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"
    );
    let mut expressions = with(r##"{"#a":"x"}"##, r#"{":v":{"S":"x"}}"#);
    expressions.filter("#a = :v").unwrap();
    assert!(expressions.finish().is_ok());
}

#[test]
fn placeholders_are_checked() {
    let read = |names: Option<&str>, values: Option<&str>, text: Option<&str>| {
        let result = Expressions::new(
            names.map(|json| serde_json::from_str(json).unwrap()),
            values.map(|json| serde_json::from_str(json).unwrap()),
            &[("UpdateExpression", text), ("ConditionExpression", None)],
            &[("ProjectionExpression", None)],
        );
        result.map(drop).unwrap_err().message
    };
    let some = Some("x");
    assert_eq!(read(Some("{}"), None, some), "ExpressionAttributeNames must not be empty");
    assert_eq!(read(None, Some("{}"), some), "ExpressionAttributeValues must not be empty");
    for key in ["a", "#", "#a-b", "#é", "", ":a"] {
        let names = format!(r#"{{"{key}":"b"}}"#);
        let why = format!("ExpressionAttributeNames contains invalid key: Syntax error; key: \"{key}\"");
        assert_eq!(read(Some(&names), None, some), why);
    }
    assert_eq!(
        read(None, Some(r#"{"v":{"S":"x"}}"#), some),
        "ExpressionAttributeValues contains invalid key: Syntax error; key: \"v\""
    );
    assert_eq!(
        read(Some(&format!(r##"{{"#{}":"b"}}"##, "x".repeat(255))), None, some),
        "ExpressionAttributeNames contains invalid key: The expression attribute map contains a key that is too long; size of key: 256"
    );
    assert_eq!(
        read(Some(r##"{"#a":""}"##), None, some),
        "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a"
    );
    assert_eq!(
        read(None, Some(r#"{":v":{"N":"x"}}"#), some),
        "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric value: x for key :v"
    );
    assert_eq!(
        read(Some(r##"{"#a":"b"}"##), None, None),
        "ExpressionAttributeNames can only be specified when using expressions"
    );
    assert_eq!(
        read(None, Some(r#"{":v":{"N":"1"}}"#), None),
        "ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null"
    );
}

#[test]
fn expressions_and_what_was_before_them_do_not_mix() {
    let fault = one_style(
        &[("ProjectionExpression", true), ("FilterExpression", true)],
        &[("AttributesToGet", false), ("QueryFilter", true)],
    );
    assert_eq!(
        fault.unwrap_err().message,
        "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: \
         {QueryFilter} Expression parameters: {ProjectionExpression, FilterExpression}"
    );
    assert!(one_style(&[("ProjectionExpression", true)], &[("AttributesToGet", false)]).is_ok());
}

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
        let _ = usual().key_condition(&text);
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

#[test]
fn what_placeholders_stand_for_has_limits() {
    let half = SUBSTITUTED_BYTES_MAX / 2;
    let large = format!(r#"{{":v":{{"S":"{}"}}}}"#, "x".repeat(half));
    let uses = |count: usize| vec!["a = :v"; count].join(" OR ");
    let often = "Invalid ConditionExpression: The expression uses large values or names of its placeholders too often";
    with("{}", &large).condition(&uses(COPIES_MAX)).unwrap();
    let fault = with("{}", &large).condition(&uses(COPIES_MAX + 1)).unwrap_err();
    assert_eq!(fault.message, often);
    // What other parts of a call have used counts too, and so does what they brought.
    let spent = Copied { bytes: COPIED_BYTES_FREE, bytes_max: COPIED_BYTES_FREE };
    with("{}", &large).behind(spent).condition(&uses(COPIES_MAX)).unwrap();
    let brought = Copied { bytes_max: COPIED_BYTES_FREE + half + ELEMENT_BYTES, ..spent };
    with("{}", &large).behind(brought).condition(&uses(COPIES_MAX + 1)).unwrap();
    let overdrawn = Copied { bytes: COPIED_BYTES_FREE + 1, ..spent };
    let fault = with("{}", &large).behind(overdrawn).condition(&uses(COPIES_MAX)).unwrap_err();
    assert_eq!(fault.message, often);
    // A small value may be used as often as the text has room for it.
    with("{}", r#"{":v":{"S":"x"}}"#).condition(&uses(150)).unwrap();
    // Elements take memory though they have no size.
    let empty = format!(r#"{{":v":{{"L":[{}{{"S":""}}]}}}}"#, r#"{"S":""},"#.repeat(10_000));
    assert_eq!(with("{}", &empty).condition(&uses(COPIES_MAX + 1)).unwrap_err().message, often);
    let twice = format!(r#"{{":v":{{"S":"{}"}},":w":{{"S":"{}"}}}}"#, "x".repeat(half), "y".repeat(half + 1));
    let values = serde_json::from_str(&twice).unwrap();
    let fault = Expressions::new(None, Some(values), &[("X", Some("x"))], &[]).unwrap_err();
    assert!(fault.message.ends_with("exceed the maximum size of 2097152 bytes"), "{}", fault.message);
    let names = format!(r##"{{"#n":"{}"}}"##, "n".repeat(60_000));
    let fault = with(&names, "{}").condition(&vec!["attribute_exists(#n)"; 20].join(" OR ")).unwrap_err();
    assert_eq!(fault.message, often);
}
