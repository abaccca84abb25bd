//! Keys of tables and indexes, in calls as in answers.

use std::collections::BTreeSet;

use anabranch_model::limits::KEY_ATTRIBUTES_MAX;
use anabranch_model::table::{KeyAttribute, KeyKind, KeySchema};
use serde::{Deserialize, Serialize};

use super::schema::{Kinds, invalid};
use crate::fault::Fault;
use crate::validation::Validation;

/// Most parts of the key of a table, and of an index within one hash value.
pub(super) const PARTS_MAX: usize = 2;

/// A part of a key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename = "KeySchemaElement", rename_all = "PascalCase", default)]
pub(crate) struct Element {
    attribute_name: Option<String>,
    key_type: Option<String>,
}

impl Element {
    /// As refusals repeat it.
    fn shown(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
        let (name, kind) = (text(&self.attribute_name), text(&self.key_type));
        format!("KeySchemaElement(attributeName={name}, keyType={kind})")
    }
}

/// Checks the shape of a key of at most so many parts before what it says.
pub(super) fn check_elements(
    validation: &mut Validation,
    field: &str,
    elements: &Option<Vec<Element>>,
    most: usize,
) {
    validation.required(field, elements);
    let Some(elements) = elements else { return };
    let shown: Vec<String> = elements.iter().map(Element::shown).collect();
    validation.size(field, format_args!("[{}]", shown.join(", ")), elements.len(), 1..=most);
    for (at, element) in elements.iter().enumerate() {
        let field = |member: &str| format!("{field}.{}.member.{member}", at + 1);
        validation.required(&field("attributeName"), &element.attribute_name);
        validation.length(&field("attributeName"), element.attribute_name.as_deref(), 1..=255);
        validation.required(&field("keyType"), &element.key_type);
        validation.one_of(&field("keyType"), element.key_type.as_deref(), &["HASH", "RANGE"]);
    }
}

/// The key of a table.
pub(super) fn table_key(elements: &[Element], kinds: &Kinds) -> Result<KeySchema, Fault> {
    if elements.len() > kinds.len() {
        return Err(Fault::validation("Invalid KeySchema: Some index key attribute have no definition"));
    }
    key_schema(elements, kinds)
}

/// The key of a table or of an index within one hash value.
pub(super) fn key_schema(elements: &[Element], kinds: &Kinds) -> Result<KeySchema, Fault> {
    check_names(elements, kinds)?;
    check_first(elements)?;
    if let [_, range, ..] = elements
        && !is(range, "RANGE")
    {
        return Err(Fault::validation(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        ));
    }
    described(elements, kinds)
}

/// The key of an index across all items, whose hash and range may have several attributes each.
pub(super) fn global_key_schema(elements: &[Element], kinds: &Kinds) -> Result<KeySchema, Fault> {
    check_names(elements, kinds)?;
    check_first(elements)?;
    let hashes = elements.iter().take_while(|element| is(element, "HASH")).count();
    if elements[hashes..].iter().any(|element| is(element, "HASH")) {
        return Err(Fault::validation(
            "Invalid KeySchema: All HASH key attributes must precede RANGE key attributes in the KeySchema",
        ));
    }
    for (kind, count) in [("HASH", hashes), ("RANGE", elements.len() - hashes)] {
        if count > KEY_ATTRIBUTES_MAX {
            return Err(Fault::validation(format!(
                "Invalid KeySchema: The KeySchema exceeds the maximum allowed number of {kind} key attributes"
            )));
        }
    }
    described(elements, kinds)
}

fn is(element: &Element, kind: &str) -> bool {
    element.key_type.as_deref() == Some(kind)
}

/// Names are looked at first, then what the elements are.
fn check_names(elements: &[Element], kinds: &Kinds) -> Result<(), Fault> {
    let names: Vec<_> = elements.iter().filter_map(|element| element.attribute_name.clone()).collect();
    if names.iter().any(|name| !kinds.contains_key(name)) {
        let defined: Vec<_> = kinds.keys().map(String::as_str).collect();
        return Err(invalid(format_args!(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], AttributeDefinitions: [{}]",
            names.join(", "),
            defined.join(", ")
        )));
    }
    let mut distinct = BTreeSet::new();
    match names.iter().find(|name| !distinct.insert(*name)) {
        Some(_) if names.len() == 2 => Err(Fault::validation(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        )),
        Some(name) => Err(Fault::validation(format!(
            "Invalid KeySchema: Several KeySchemaElements have the same name: {name}"
        ))),
        None => Ok(()),
    }
}

fn check_first(elements: &[Element]) -> Result<(), Fault> {
    match elements.first() {
        None => Err(Fault::validation("Invalid KeySchema: Some index key attribute have no definition")),
        Some(first) if !is(first, "HASH") => {
            Err(Fault::validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type"))
        }
        Some(_) => Ok(()),
    }
}

/// The key that elements describe which were checked.
fn described(elements: &[Element], kinds: &Kinds) -> Result<KeySchema, Fault> {
    // Every name has been found to be defined.
    let attribute = |element: &Element| {
        let name = element.attribute_name.clone().unwrap_or_default();
        KeyAttribute { kind: kinds.get(&name).copied().unwrap_or(KeyKind::Text), name }
    };
    let of = |kind: &str| elements.iter().filter(|element| is(element, kind)).map(attribute).collect();
    let key = KeySchema::several(of("HASH"), of("RANGE"));
    key.ok_or_else(|| Fault::validation("Invalid KeySchema: Some index key attribute have no definition"))
}

/// A key as an answer shows it.
pub(crate) fn elements(schema: &KeySchema) -> Vec<Element> {
    let element = |attribute: &KeyAttribute, kind: &str| Element {
        attribute_name: Some(attribute.name.clone()),
        key_type: Some(kind.to_owned()),
    };
    let hash = schema.hash_attributes().map(|part| element(part, "HASH"));
    hash.chain(schema.range_attributes().map(|part| element(part, "RANGE"))).collect()
}
