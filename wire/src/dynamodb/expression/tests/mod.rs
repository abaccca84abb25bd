//! What the texts mean, and the words in which they are refused. The words are those of the service: clients match on
//! some of them, and people search for the others.

mod any_text;
mod clauses;
mod conditions;
mod placeholders;

use std::collections::BTreeMap;

use anabranch_model::table::expression::Condition;

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
