//! BatchWriteItem.

use std::collections::BTreeMap;

use anabranch_model::limits::BATCH_WRITE_ITEMS_MAX;
use anabranch_model::table::{Action, Item};
use anabranch_model::{Error, TableName};
use serde::{Deserialize, Serialize};

use super::attribute::{Attributes, ItemBody, SEVERAL};
use super::batch_get_item::{DUPLICATES, nothing_asked, twice};
use super::capacity::{Consumed, Cost, Detail};
use super::errors::fault;
use super::explain::{check_size, of_action, of_item, of_key};
use super::names::{check_tables, table_name};
use super::state::check_ready;
use super::write::{CollectionMetrics, collection, cost_of, item_of, read_metrics};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::AtMost;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    request_items: Option<Requests>,
    return_consumed_capacity: Option<String>,
    return_item_collection_metrics: Option<String>,
}

/// What is to be written, by the name of its table.
type Requests = BTreeMap<String, AtMost<WriteRequest, BATCH_WRITE_ITEMS_MAX>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WriteRequest {
    put_request: Option<PutRequest>,
    delete_request: Option<DeleteRequest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutRequest {
    item: Option<Attributes>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteRequest {
    key: Option<Attributes>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    unprocessed_items: BTreeMap<String, Vec<Unprocessed>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_collection_metrics: Option<BTreeMap<String, Vec<CollectionMetrics>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Vec<Consumed>>,
}

/// A write that is to be sent again.
#[derive(Debug, Serialize)]
enum Unprocessed {
    #[serde(rename = "PutRequest")]
    Put {
        #[serde(rename = "Item")]
        item: ItemBody,
    },
    #[serde(rename = "DeleteRequest")]
    Delete {
        #[serde(rename = "Key")]
        key: ItemBody,
    },
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let capacity = Detail::read(&mut validation, request.return_consumed_capacity.as_deref());
    let metrics = read_metrics(&mut validation, request.return_item_collection_metrics.as_deref());
    check_requests(&mut validation, &request.request_items);
    validation.done()?;
    let tables = request.request_items.unwrap_or_default();
    if tables.is_empty() {
        return Err(nothing_asked("BatchWriteItem"));
    }
    let mut writes = Vec::new();
    let mut given_as = BTreeMap::new();
    for (given, AtMost(requests)) in tables {
        let table = table_name(Some(&given))?;
        for request in requests {
            let action = request.action()?;
            check_size(item_of(&action))?;
            writes.push((table.clone(), action));
        }
        given_as.insert(table, given);
    }
    if writes.len() > BATCH_WRITE_ITEMS_MAX {
        return Err(Fault::validation("Too many items requested for the BatchWriteItem call"));
    }
    for table in given_as.keys() {
        check_ready(context, table).await?;
    }
    let mut costs = Vec::new();
    let mut collections: BTreeMap<String, Vec<CollectionMetrics>> = BTreeMap::new();
    for (table, action) in &writes {
        let item = item_of(action);
        if capacity.is_asked() {
            costs.push(cost_of(context, table, action.clone().into()).await);
        }
        if metrics && let Some(found) = collection(context, table, item).await {
            collections.entry(table.to_string()).or_default().push(found);
        }
    }
    let left = match context.ports.tables.batch_write(writes.clone()).await {
        Ok(left) => left,
        Err(error) => return Err(refused(context, &writes, error).await),
    };
    let mut done: BTreeMap<TableName, Cost> = BTreeMap::new();
    for (write, cost) in writes.iter().zip(costs).filter(|(write, _)| !left.contains(write)) {
        done.entry(write.0.clone()).or_default().add(cost);
    }
    let mut unprocessed: BTreeMap<String, Vec<Unprocessed>> = BTreeMap::new();
    for (table, action) in left {
        let given = given_as.get(&table).cloned().unwrap_or_else(|| table.to_string());
        unprocessed.entry(given).or_default().push(match action {
            Action::Put(item) => Unprocessed::Put { item: ItemBody(item) },
            Action::Update(key, _) | Action::Delete(key) | Action::Check(key) => {
                Unprocessed::Delete { key: ItemBody(key) }
            }
        });
    }
    Ok(Response {
        unprocessed_items: unprocessed,
        item_collection_metrics: Some(collections).filter(|collections| !collections.is_empty()),
        consumed_capacity: capacity.consumed_by(&done),
    })
}

/// Checks the shape of what is to be written.
fn check_requests(validation: &mut Validation, tables: &Option<Requests>) {
    const FIELD: &str = "requestItems";
    validation.required(FIELD, tables);
    let Some(tables) = tables else { return };
    let shown: Vec<String> = tables
        .iter()
        .map(|(given, AtMost(requests))| {
            format!("{given}=[{}]", if requests.is_empty() { "" } else { "..." })
        })
        .collect();
    check_tables(validation, tables.keys());
    validation.map_values(
        FIELD,
        format_args!("{{{}}}", shown.join(", ")),
        tables.values().all(|AtMost(requests)| (1..=BATCH_WRITE_ITEMS_MAX).contains(&requests.len())),
        format_args!(
            "Member must have length less than or equal to {BATCH_WRITE_ITEMS_MAX}, Member must have length greater than \
             or equal to 1"
        ),
    );
    for (given, AtMost(requests)) in tables {
        for (at, request) in requests.iter().enumerate() {
            let field = format!("{FIELD}.{given}.member.{}.member", at + 1);
            if let Some(delete) = &request.delete_request {
                validation.required(&format!("{field}.deleteRequest.key"), &delete.key);
            }
            if let Some(put) = &request.put_request {
                validation.required(&format!("{field}.putRequest.item"), &put.item);
            }
        }
    }
}

impl WriteRequest {
    /// What is written. That it is there has been checked.
    fn action(self) -> Result<Action, Fault> {
        let given =
            |attributes: Option<Attributes>| attributes.map_or_else(|| Ok(Item::new()), Attributes::item);
        match (self.put_request, self.delete_request) {
            (Some(put), None) => Ok(Action::Put(given(put.item)?)),
            (None, Some(delete)) => Ok(Action::Delete(given(delete.key)?)),
            // The service says the same of none as of both.
            (None, None) | (Some(_), Some(_)) => Err(Fault::validation(SEVERAL)),
        }
    }
}

async fn refused(context: &Context, writes: &[(TableName, Action)], error: Error) -> Fault {
    let Error::Invalid(why) = &error else { return fault(error) };
    let mut keys = Vec::new();
    for (table, action) in writes {
        let Ok(summary) = context.ports.tables.table(table).await else { continue };
        let key = summary.options.place_attributes(None, item_of(action));
        // Unlike in a put alone it is all the same what is wrong with the key of an item.
        let of_key = of_key(&key, &summary.options.key).filter(|_| matches!(action, Action::Put(_)));
        if let Some(wrong) = of_key.or_else(|| of_action(action, &summary.options)) {
            return Fault::validation(wrong.words);
        }
        keys.push((table, key));
    }
    if twice(keys.iter().map(|(table, key)| (*table, key))) {
        return Fault::validation(DUPLICATES);
    }
    match of_item(why) {
        Some(words) => Fault::validation(words),
        None => fault(error),
    }
}
