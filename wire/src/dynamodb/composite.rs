//! Queries of global indexes whose hash and range have several attributes each. Every attribute of the hash has a value, those
//! of the range are asked for from the first on, and only the last of them for something else than a value.

use anabranch_model::table::expression::Comparison;
use anabranch_model::table::{KeyCondition, KeySchema, RangeCondition, Value};

use super::query::{Asked, NOT_INDEXABLE, check_kinds};
use crate::fault::Fault;

/// The condition on the key of the index.
pub(super) fn key_condition(mut asked: Asked, schema: &KeySchema) -> Result<KeyCondition, Fault> {
    check_known(&asked, schema)?;
    for part in schema.attributes() {
        match asked.get(&part.name) {
            Some(Some(condition)) => check_kinds(condition, part)?,
            Some(None) => return Err(Fault::validation(NOT_INDEXABLE)),
            None => {}
        }
    }
    let mut values = Vec::new();
    for part in schema.hash_attributes() {
        match asked.remove(&part.name).flatten() {
            Some(RangeCondition::Compare(Comparison::Equal, value)) => {
                values.push((part.name.clone(), value))
            }
            Some(_) => return Err(of_hash("Query key condition not supported", &part.name)),
            None => return Err(of_hash("Query condition missed key schema element", &part.name)),
        }
    }
    let mut range = None;
    for part in schema.range_attributes() {
        match asked.remove(&part.name).flatten() {
            None if asked.is_empty() => break,
            None => return Err(of_range("Query condition missed key schema element", &part.name)),
            Some(RangeCondition::Compare(Comparison::Equal, value)) => {
                values.push((part.name.clone(), value))
            }
            Some(_) if !asked.is_empty() => {
                return Err(of_range("Query key condition not supported", &part.name));
            }
            Some(condition) => range = Some((part.name.clone(), condition)),
        }
    }
    whole(values, range)
}

fn whole(
    values: Vec<(String, Value)>,
    range: Option<(String, RangeCondition)>,
) -> Result<KeyCondition, Fault> {
    let mut others = values.into_iter();
    match others.next() {
        Some((attribute, value)) => Ok(KeyCondition { attribute, value, range, others: others.collect() }),
        None => Err(Fault::validation("Query key condition not supported")),
    }
}

/// What is asked for is about the key.
fn check_known(asked: &Asked, schema: &KeySchema) -> Result<(), Fault> {
    match asked.keys().find(|name| !schema.names(name)) {
        Some(_) => Err(Fault::validation("Query key condition not supported")),
        None => Ok(()),
    }
}

fn of_hash(what: &str, name: &str) -> Fault {
    Fault::validation(format!("{what}: {name}: every HASH key attribute must have an equality condition"))
}

fn of_range(what: &str, name: &str) -> Fault {
    Fault::validation(format!(
        "{what}: {name}: RANGE key attributes must be asked for in their order, with an equality condition on each \
         but the last"
    ))
}
