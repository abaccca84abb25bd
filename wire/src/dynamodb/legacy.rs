//! The parameters that were there before expressions, and that clients still send: they become the same conditions,
//! projections and updates.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::limits::ATTRIBUTE_NAME_BYTES_MAX;
use anabranch_model::table::expression::{
    Comparison, Condition, SetOperand, Update, if_missing, list_append,
};
use anabranch_model::table::{Kind, Projection, RangeCondition, Value, path};
use serde::Deserialize;

use super::attribute::{Attribute, INVALID, type_name};
use crate::fault::Fault;
use crate::validation::Validation;

/// Most attributes of one call. It is more than an expression can name.
const ATTRIBUTES_TO_GET_MAX: usize = 4_096;

const OPERATORS: [&str; 13] = [
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
];

/// What is demanded of an attribute before a write.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename = "ExpectedAttributeValue", rename_all = "PascalCase", default)]
pub(super) struct Expected {
    value: Option<Attribute>,
    exists: Option<bool>,
    comparison_operator: Option<String>,
    attribute_value_list: Option<Vec<Attribute>>,
}

/// What is demanded of an attribute of an item that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename = "Condition", rename_all = "PascalCase", default)]
pub(super) struct Demand {
    comparison_operator: Option<String>,
    attribute_value_list: Option<Vec<Attribute>>,
}

/// What becomes of an attribute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename = "AttributeValueUpdate", rename_all = "PascalCase", default)]
pub(super) struct AttributeUpdate {
    value: Option<Attribute>,
    action: Option<String>,
}

fn invalid(why: impl std::fmt::Display) -> Fault {
    Fault::validation(format!("{INVALID} {why}"))
}

/// The condition of a write.
pub(super) fn expected(
    expected: Option<BTreeMap<String, Expected>>,
    operator: Option<&str>,
) -> Result<Option<Condition>, Fault> {
    let conditions =
        expected.unwrap_or_default().into_iter().map(|(name, expected)| expected.condition(&name));
    joined(conditions.collect::<Result<_, _>>()?, operator)
}

/// The filter of a query or scan.
pub(super) fn filter(
    demands: Option<BTreeMap<String, Demand>>,
    operator: Option<&str>,
) -> Result<Option<Condition>, Fault> {
    let conditions = demands.unwrap_or_default().into_iter().map(|(name, demand)| demand.condition(&name));
    joined(conditions.collect::<Result<_, _>>()?, operator)
}

fn joined(mut conditions: Vec<Condition>, operator: Option<&str>) -> Result<Option<Condition>, Fault> {
    Validation::default().one_of("conditionalOperator", operator, &["OR", "AND"]).done()?;
    match (conditions.len(), operator) {
        (0, Some(_)) => {
            Err(Fault::validation("ConditionalOperator cannot be used without Filter or Expected"))
        }
        (1, Some(_)) => Err(Fault::validation(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        )),
        (0 | 1, None) => Ok(conditions.pop()),
        (_, Some("OR")) => Ok(Some(Condition::Or(conditions))),
        _ => Ok(Some(Condition::And(conditions))),
    }
}

impl Expected {
    fn condition(self, name: &str) -> Result<Condition, Fault> {
        let refuse = |why: String| Err(invalid(format_args!("{why} for Attribute: {name}")));
        if self.value.is_some() && self.attribute_value_list.is_some() {
            return refuse("Value and AttributeValueList cannot be used together".to_string());
        }
        if let Some(operator) = self.comparison_operator {
            if self.exists.is_some() {
                return refuse("Exists and ComparisonOperator cannot be used together".to_string());
            }
            let list = self.value.map_or(self.attribute_value_list, |value| Some(vec![value]));
            if list.is_none() && operands_of(&operator) != Some(0) && OPERATORS.contains(&operator.as_str()) {
                let why =
                    format!("Value or AttributeValueList must be used with ComparisonOperator: {operator}");
                return refuse(why);
            }
            return Demand { comparison_operator: Some(operator), attribute_value_list: list }
                .condition(name);
        }
        if self.attribute_value_list.is_some() {
            return refuse("AttributeValueList can only be used with a ComparisonOperator".to_string());
        }
        match (self.exists, self.value) {
            (Some(false), None) => Ok(Condition::Missing(path(name))),
            (Some(false), Some(_)) => refuse("Value cannot be used when Exists is false".to_string()),
            (_, Some(value)) => Ok(path(name).equals(value.value()?)),
            (Some(true), None) => refuse("Value must be provided when Exists is true".to_string()),
            (None, None) => refuse("Value must be provided when Exists is null".to_string()),
        }
    }
}

/// How many values an operator compares with; none if any number above zero.
fn operands_of(operator: &str) -> Option<usize> {
    match operator {
        "NULL" | "NOT_NULL" => Some(0),
        "BETWEEN" => Some(2),
        "IN" => None,
        _ => Some(1),
    }
}

/// Checks the operators of demands, together with whatever else is wrong.
pub(super) fn check_demands(
    validation: &mut Validation,
    parameter: &str,
    demands: &Option<BTreeMap<String, Demand>>,
) {
    for (name, demand) in demands.iter().flatten() {
        demand.check(validation, &format!("{parameter}.{name}"));
    }
}

impl Demand {
    fn check(&self, validation: &mut Validation, field: &str) {
        let field = format!("{field}.member.comparisonOperator");
        validation.required(&field, &self.comparison_operator);
        validation.one_of(&field, self.comparison_operator.as_deref(), &OPERATORS);
    }

    /// The operator and its values, checked.
    fn checked(self, name: &str) -> Result<(String, Vec<Value>), Fault> {
        let mut validation = Validation::default();
        self.check(&mut validation, name);
        validation.done()?;
        let operator = self.comparison_operator.unwrap_or_default();
        let values = self.attribute_value_list.unwrap_or_default().into_iter().map(Attribute::value);
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let fits = match operands_of(&operator) {
            Some(count) => values.len() == count,
            None => !values.is_empty(),
        };
        if !fits {
            let why = format!("Invalid number of argument(s) for the {operator} ComparisonOperator");
            return Err(invalid(why));
        }
        if values.iter().any(|value| value.kind() != values[0].kind()) {
            return Err(invalid("AttributeValues inside AttributeValueList must be of same type"));
        }
        let allowed = |kind: Kind| match operator.as_str() {
            "EQ" | "NE" => true,
            "BEGINS_WITH" => matches!(kind, Kind::Text | Kind::Binary),
            "CONTAINS" | "NOT_CONTAINS" => {
                matches!(kind, Kind::Text | Kind::Number | Kind::Binary | Kind::Bool | Kind::Null)
            }
            _ => matches!(kind, Kind::Text | Kind::Number | Kind::Binary),
        };
        if let Some(kind) = values.first().map(Value::kind).filter(|kind| !allowed(*kind)) {
            let kind = type_name(kind);
            let why = format!("ComparisonOperator {operator} is not valid for {kind} AttributeValue type");
            return Err(invalid(why));
        }
        if operator == "BETWEEN" && !Comparison::AtMost.holds(&values[0], &values[1]) {
            return Err(Fault::validation(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
            ));
        }
        Ok((operator, values))
    }

    fn condition(self, name: &str) -> Result<Condition, Fault> {
        let (operator, mut values) = self.checked(name)?;
        let place = || path(name);
        let compare =
            |how: Comparison, values: &mut Vec<Value>| Condition::compare(place(), how, values.remove(0));
        Ok(match operator.as_str() {
            "EQ" => compare(Comparison::Equal, &mut values),
            "NE" => compare(Comparison::NotEqual, &mut values),
            "LT" => compare(Comparison::Below, &mut values),
            "LE" => compare(Comparison::AtMost, &mut values),
            "GT" => compare(Comparison::Above, &mut values),
            "GE" => compare(Comparison::AtLeast, &mut values),
            "NOT_NULL" => Condition::Exists(place()),
            "NULL" => Condition::Missing(place()),
            "BEGINS_WITH" => place().begins_with(values.remove(0)),
            "CONTAINS" => place().contains(values.remove(0)),
            // Of an attribute that is not there nothing is said.
            "NOT_CONTAINS" => Condition::Exists(place()).and(place().contains(values.remove(0)).negated()),
            "BETWEEN" => {
                let lower = values.remove(0);
                place().between(lower, values.remove(0))
            }
            _ => place().one_of(values),
        })
    }
}

/// What a query asks of the attributes of the key; none where no index can find it.
pub(super) fn key_conditions(
    demands: BTreeMap<String, Demand>,
) -> Result<BTreeMap<String, Option<RangeCondition>>, Fault> {
    let parts = demands.into_iter().map(|(name, demand)| {
        let (operator, mut values) = demand.checked(&name)?;
        let mut compare = |how| RangeCondition::Compare(how, values.remove(0));
        let asked = match operator.as_str() {
            "EQ" => compare(Comparison::Equal),
            "LT" => compare(Comparison::Below),
            "LE" => compare(Comparison::AtMost),
            "GT" => compare(Comparison::Above),
            "GE" => compare(Comparison::AtLeast),
            "BEGINS_WITH" => RangeCondition::BeginsWith(values.remove(0)),
            "BETWEEN" => {
                let lower = values.remove(0);
                RangeCondition::Between(lower, values.remove(0))
            }
            _ => return Ok((name, None)),
        };
        Ok((name, Some(asked)))
    });
    parts.collect()
}

/// Checks how many attributes are wanted, together with whatever else is wrong.
pub(super) fn check_attributes_to_get(validation: &mut Validation, names: &Option<Vec<String>>) {
    if let Some(names) = names {
        validation.size("attributesToGet", "[]", names.len(), 1..=ATTRIBUTES_TO_GET_MAX);
    }
}

/// The wanted attributes.
pub(super) fn attributes_to_get(names: Vec<String>) -> Result<Projection, Fault> {
    Validation::default().size("attributesToGet", "[]", names.len(), 1..=ATTRIBUTES_TO_GET_MAX).done()?;
    check_names(&names)?;
    let mut seen = BTreeSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(invalid(format_args!("Duplicate value in attribute name: {name}")));
    }
    Ok(Projection(names.into_iter().map(path).collect()))
}

/// Names that an attribute can have.
fn check_names<'a>(names: impl IntoIterator<Item = &'a String> + Clone) -> Result<(), Fault> {
    if names.clone().into_iter().any(String::is_empty) {
        return Err(invalid("Empty attribute name"));
    }
    match names.into_iter().map(String::len).find(|size| *size > ATTRIBUTE_NAME_BYTES_MAX) {
        Some(size) => Err(invalid(format_args!(
            "Attribute name is too large, must be at most {ATTRIBUTE_NAME_BYTES_MAX} bytes: {size}"
        ))),
        None => Ok(()),
    }
}

/// Changes to an item.
pub(super) fn attribute_updates(updates: BTreeMap<String, AttributeUpdate>) -> Result<Update, Fault> {
    check_names(updates.keys())?;
    let mut update = Update::new();
    for (name, AttributeUpdate { value, action }) in updates {
        let field = format!("attributeUpdates.{name}.member.action");
        Validation::default().one_of(&field, action.as_deref(), &["ADD", "DELETE", "PUT"]).done()?;
        let unfit = |action: &str, value: &Value| {
            let kind = type_name(value.kind());
            invalid(format_args!("{action} is not supported for the type {kind}"))
        };
        let value = value.map(Attribute::value).transpose()?;
        let is_set =
            |value: &Value| matches!(value.kind(), Kind::TextSet | Kind::NumberSet | Kind::BinarySet);
        update = match (action.as_deref().unwrap_or("PUT"), value) {
            ("DELETE", None) => update.remove(path(name)),
            (_, None) => {
                return Err(invalid("Only DELETE action is allowed when no attribute value is specified"));
            }
            ("DELETE", Some(value)) if is_set(&value) => update.delete(path(name), value),
            ("DELETE", Some(value)) => return Err(unfit("DELETE action with value", &value)),
            ("ADD", Some(Value::List(list))) => {
                let old = if_missing(path(name.as_str()), Value::List(Vec::new()));
                let longer: SetOperand = list_append(old, Value::List(list));
                update.set(path(name), longer)
            }
            ("ADD", Some(value)) if is_set(&value) || value.kind() == Kind::Number => {
                update.add(path(name), value)
            }
            ("ADD", Some(value)) => return Err(unfit("ADD action", &value)),
            (_, Some(value)) => update.set(path(name), value),
        };
    }
    Ok(update)
}

#[cfg(test)]
mod tests {
    use anabranch_model::table::Item;

    use super::*;

    fn condition(json: &str, operator: Option<&str>) -> Result<Option<Condition>, String> {
        expected(Some(serde_json::from_str(json).unwrap()), operator).map_err(|fault| fault.message)
    }

    fn refused(json: &str) -> String {
        condition(json, None).unwrap_err()
    }

    #[test]
    fn expectations_are_conditions() {
        let one = |json: &str| condition(&format!(r#"{{"a":{json}}}"#), None).unwrap().unwrap();
        let list = |operator: &str, values: &str| {
            one(&format!(r#"{{"ComparisonOperator":"{operator}","AttributeValueList":{values}}}"#))
        };
        assert_eq!(one(r#"{"Value":{"N":"1"}}"#), path("a").equals(1));
        assert_eq!(one(r#"{"Exists":true,"Value":{"N":"1"}}"#), path("a").equals(1));
        assert_eq!(one(r#"{"Exists":false}"#), Condition::Missing(path("a")));
        assert_eq!(one(r#"{"ComparisonOperator":"NE","Value":{"N":"1"}}"#), path("a").differs(1));
        assert_eq!(one(r#"{"ComparisonOperator":"NULL"}"#), Condition::Missing(path("a")));
        assert_eq!(list("NOT_NULL", "[]"), Condition::Exists(path("a")));
        assert_eq!(list("LT", r#"[{"N":"1"}]"#), path("a").below(1));
        assert_eq!(list("LE", r#"[{"N":"1"}]"#), path("a").at_most(1));
        assert_eq!(list("GT", r#"[{"N":"1"}]"#), path("a").above(1));
        assert_eq!(list("GE", r#"[{"N":"1"}]"#), path("a").at_least(1));
        assert_eq!(list("BETWEEN", r#"[{"N":"1"},{"N":"2"}]"#), path("a").between(1, 2));
        assert_eq!(list("IN", r#"[{"N":"1"},{"N":"2"}]"#), path("a").one_of([1, 2]));
        assert_eq!(list("BEGINS_WITH", r#"[{"S":"x"}]"#), path("a").begins_with("x"));
        assert_eq!(list("CONTAINS", r#"[{"S":"x"}]"#), path("a").contains("x"));
        let not = list("NOT_CONTAINS", r#"[{"S":"x"}]"#);
        assert!(!not.holds(&Item::new()) && not.holds(&Item::new().with("a", "y")));
        assert!(!not.holds(&Item::new().with("a", "xy")));
    }

    #[test]
    fn several_expectations_are_joined() {
        let two = r#"{"a":{"Exists":false},"b":{"Value":{"N":"1"}}}"#;
        let parts = || vec![Condition::Missing(path("a")), path("b").equals(1)];
        assert_eq!(condition(two, None), Ok(Some(Condition::And(parts()))));
        assert_eq!(condition(two, Some("AND")), Ok(Some(Condition::And(parts()))));
        assert_eq!(condition(two, Some("OR")), Ok(Some(Condition::Or(parts()))));
        assert!(condition(two, Some("XOR")).unwrap_err().contains("enum value set: [OR, AND]"));
        assert_eq!(condition("{}", None), Ok(None));
        assert!(condition("{}", Some("OR")).unwrap_err().ends_with("without Filter or Expected"));
        assert!(
            condition(r#"{"a":{"Exists":false}}"#, Some("OR")).unwrap_err().contains("two or more elements")
        );
    }

    #[test]
    fn expectations_that_cannot_be_are_refused() {
        for (json, why) in [
            (r#"{"a":{}}"#, "Value must be provided when Exists is null for Attribute: a"),
            (r#"{"a":{"Exists":true}}"#, "Value must be provided when Exists is true for Attribute: a"),
            (
                r#"{"a":{"Exists":false,"Value":{"S":"x"}}}"#,
                "Value cannot be used when Exists is false for Attribute: a",
            ),
            (
                r#"{"a":{"AttributeValueList":[{"S":"x"}]}}"#,
                "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
            ),
            (
                r#"{"a":{"ComparisonOperator":"EQ"}}"#,
                "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
            ),
            (
                r#"{"a":{"Exists":false,"ComparisonOperator":"NULL"}}"#,
                "Exists and ComparisonOperator cannot be used together for Attribute: a",
            ),
            (
                r#"{"a":{"ComparisonOperator":"EQ","AttributeValueList":[]}}"#,
                "Invalid number of argument(s) for the EQ ComparisonOperator",
            ),
            (
                r#"{"a":{"ComparisonOperator":"NULL","AttributeValueList":[{"S":"x"}]}}"#,
                "Invalid number of argument(s) for the NULL ComparisonOperator",
            ),
            (
                r#"{"a":{"ComparisonOperator":"LT","AttributeValueList":[{"SS":["x"]}]}}"#,
                "ComparisonOperator LT is not valid for SS AttributeValue type",
            ),
            (
                r#"{"a":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"N":"1"}]}}"#,
                "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
            ),
            (
                r#"{"a":{"ComparisonOperator":"IN","AttributeValueList":[{"S":"1"},{"N":"1"}]}}"#,
                "AttributeValues inside AttributeValueList must be of same type",
            ),
        ] {
            assert_eq!(refused(json), format!("{INVALID} {why}"), "{json}");
        }
        assert!(
            refused(r#"{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"S":"b"},{"S":"a"}]}}"#)
                .starts_with("The BETWEEN condition was provided a range")
        );
        assert!(
            refused(r#"{"a":{"ComparisonOperator":"FOO","AttributeValueList":[{"S":"b"}]}}"#)
                .contains("Value 'FOO' at 'a.member.comparisonOperator' failed")
        );
    }

    #[test]
    fn updates_of_attributes_are_updates() {
        let json = r#"{"put":{"Value":{"N":"1"}},"also":{"Action":"PUT","Value":{"S":"x"}},"gone":{"Action":"DELETE"},
            "less":{"Action":"DELETE","Value":{"SS":["x"]}},"sum":{"Action":"ADD","Value":{"N":"1"}},
            "longer":{"Action":"ADD","Value":{"L":[{"N":"1"}]}}}"#;
        let update = attribute_updates(serde_json::from_str(json).unwrap()).unwrap();
        let longer = list_append(if_missing("longer", Value::List(vec![])), Value::List(vec![1.into()]));
        assert_eq!(
            update,
            Update::new()
                .set("also", "x")
                .remove("gone")
                .delete("less", Value::text_set(["x"]).unwrap())
                .set("longer", longer)
                .set("put", 1)
                .add("sum", 1)
        );
        for (json, why) in [
            (
                r#"{"a":{"Action":"PUT"}}"#,
                "Only DELETE action is allowed when no attribute value is specified",
            ),
            (
                r#"{"a":{"Action":"ADD"}}"#,
                "Only DELETE action is allowed when no attribute value is specified",
            ),
            (r#"{"a":{"Action":"ADD","Value":{"S":"x"}}}"#, "ADD action is not supported for the type S"),
            (
                r#"{"a":{"Action":"DELETE","Value":{"N":"1"}}}"#,
                "DELETE action with value is not supported for the type N",
            ),
            (r#"{"":{"Action":"PUT","Value":{"N":"1"}}}"#, "Empty attribute name"),
        ] {
            let fault = attribute_updates(serde_json::from_str(json).unwrap()).unwrap_err();
            assert_eq!(fault.message, format!("{INVALID} {why}"), "{json}");
        }
    }

    #[test]
    fn conditions_on_keys_are_those_of_an_index() {
        let read =
            |json: &str| key_conditions(serde_json::from_str(json).unwrap()).map_err(|fault| fault.message);
        let asked = read(
            r#"{"h":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]},
                "r":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"1"},{"N":"2"}]}}"#,
        )
        .unwrap();
        assert_eq!(asked["h"], Some(RangeCondition::equals("x")));
        assert_eq!(asked["r"], Some(RangeCondition::between(1, 2)));
        let asked = read(r#"{"h":{"ComparisonOperator":"NE","AttributeValueList":[{"S":"x"}]}}"#).unwrap();
        assert_eq!(asked["h"], None);
        assert!(read(r#"{"h":{}}"#).unwrap_err().contains("Member must not be null"));
    }

    #[test]
    fn wanted_attributes_are_named_once() {
        assert_eq!(
            attributes_to_get(vec!["a.b".into(), "c".into()]),
            Ok(Projection::of([path("a.b"), path("c")]))
        );
        assert!(attributes_to_get(vec![]).is_err());
        let fault = attributes_to_get(vec!["a".into(), "a".into()]).unwrap_err();
        assert_eq!(fault.message, format!("{INVALID} Duplicate value in attribute name: a"));
        let many = |count: usize| attributes_to_get((0..count).map(|number| number.to_string()).collect());
        assert_eq!(many(ATTRIBUTES_TO_GET_MAX).unwrap().0.len(), ATTRIBUTES_TO_GET_MAX);
        let why = many(ATTRIBUTES_TO_GET_MAX + 1).unwrap_err().message;
        assert!(why.ends_with("Member must have length less than or equal to 4096"), "{why}");
    }
}
