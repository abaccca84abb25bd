//! What placeholders stand for, and whether they are used.

use super::*;

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
