//! Conditions.

use anabranch_model::table::expression::{Condition, Operand, exists, missing, size};
use anabranch_model::table::{Kind, Value, path};

use super::*;

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
    assert!(usual().condition(&nested(299)).is_ok());
    assert_eq!(refused(&nested(300)), "The expression contains too many operators; operator count: 301");
    let parentheses = |levels: usize| format!("{}a = :v{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(refused(&parentheses(2)), "The expression has redundant parentheses;");
}

/// As much stack as a server's thread has.
const STACK_BYTES: usize = 2 << 20;

#[test]
fn no_depth_overflows_a_stack() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!("{}a = :v{}", open.repeat(levels), close.repeat(levels))
    };
    let deepest = move || {
        // A condition as deep as there are operators is read, checked, asked and dropped.
        let mut deep = vec![nested("not ", "", 299), nested("not (", ")", 299)];
        deep.push(nested("a = :v and (", " or b = :v)", 74));
        for text in deep {
            let condition = condition(&text);
            assert!(condition.check().is_ok(), "{text}");
            condition.holds(&anabranch_model::table::Item::new().with("a", "x"));
            assert_eq!(condition.clone(), condition);
        }
        for (hostile, why) in [
            ("(".repeat(4_000), "Syntax error"),
            ("not ".repeat(1_000), "Syntax error"),
            (nested("(", ")", 2_000), "redundant parentheses"),
            (nested("not (", ")", 600), "too many operators"),
            (nested("a = :v and (", " )", 250), "too many operators"),
            ("size(".repeat(800), "nesting levels"),
            (format!("a = {}:v{}", "(".repeat(2_000), ")".repeat(2_000)), "nesting levels"),
        ] {
            let words = refused(&hostile);
            assert!(words.contains(why), "{words}: {hostile}");
        }
        let update = format!("set a = {}b{}", "if_not_exists(a, ".repeat(200), ")".repeat(200));
        let _ = usual().update(&update);
        assert!(refused_update(&format!("set a = {}", "(".repeat(4_000))).contains("nesting levels"));
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(deepest).unwrap().join().unwrap();
}
