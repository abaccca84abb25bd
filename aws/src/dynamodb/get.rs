//! Reading items by their keys.

use std::collections::HashSet;

use anabranch_model::table::{Get, Item, Path, Projection, check_parts, path};
use anabranch_model::{Error, Result, TableName, limits};
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::types::{self, TransactGetItem};

use super::expression::{Expressions, Placeholders};
use super::known::Known;
use super::{Tables, action, built, explain, strange};
use crate::attribute::tables::{attributes, item};
use crate::call::Deadline;

/// What is asked for of an item. The key is always asked for, so that an item of which nothing else is wanted can be told
/// from one that is not there, and the items of a batch from one another.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) projection: Option<String>,
    pub(super) placeholders: Placeholders,
    /// Attributes of the key that nobody wants to see.
    hidden: Vec<String>,
}

impl Wanted {
    pub(super) fn of(projection: Option<&Projection>, key: &Item) -> Result<Wanted> {
        let Some(projection) = projection else {
            return Ok(Wanted {
                projection: None,
                placeholders: Placeholders::default(),
                hidden: Vec::new(),
            });
        };
        projection.check()?;
        let shown = |name: &str| projection.0.iter().any(|path| path.attribute == name);
        let hidden: Vec<_> =
            key.iter().map(|(name, _)| name).filter(|name| !shown(name)).map(str::to_string).collect();
        let keys: Vec<Path> = hidden.iter().map(path).collect();
        let mut expressions = Expressions::default();
        let text = expressions.projection(projection.0.iter().chain(&keys));
        Ok(Wanted { projection: Some(text), placeholders: expressions.placeholders(), hidden })
    }

    /// The item without what was asked for beyond the wish.
    pub(super) fn show(&self, mut item: Item) -> Item {
        for name in &self.hidden {
            item.remove(name);
        }
        item
    }
}

/// Whether a part of a call is about another item than those before.
pub(super) fn check_fresh(fresh: bool) -> Result<()> {
    if fresh { Ok(()) } else { Err(Error::Invalid("two parts of a call are about one item".to_string())) }
}

impl Tables {
    pub(super) async fn get_item(&self, table: &TableName, get: &Get) -> Result<Option<Item>> {
        let deadline = self.soon();
        let wanted = Wanted::of(get.projection.as_ref(), &get.key)?;
        let check = |known: &Known| known.check(table, |options| get.check(options)).map(drop);
        self.check([table], deadline, check).await?;
        let key = attributes(&get.key);
        let request = || {
            self.client
                .get_item()
                .table_name(table.as_str())
                .set_key(Some(key.clone()))
                .consistent_read(get.consistent)
                .set_projection_expression(wanted.projection.clone())
                .set_expression_attribute_names(wanted.placeholders.names.clone())
                .send()
        };
        match self.caller.call(&action::GET_ITEM, deadline, request).await {
            Ok(answer) => Ok(answer.item.map(item).transpose()?.map(|item| wanted.show(item))),
            Err(failure) => Err(self.explained(failure, [table], deadline).await),
        }
    }

    /// Checks reads of which no two may be about one item.
    pub(super) async fn check_gets(&self, gets: &[(TableName, Get)], deadline: Deadline) -> Result<()> {
        let check = |known: &Known| {
            let mut keys = HashSet::new();
            for (table, get) in gets {
                let key = known.check(table, |options| get.check(options))?;
                check_fresh(key.is_none_or(|key| keys.insert((table, key))))?;
            }
            Ok(())
        };
        self.check(gets.iter().map(|(table, _)| table), deadline, check).await
    }

    pub(super) async fn get_at_once(&self, gets: &[(TableName, Get)]) -> Result<Vec<Option<Item>>> {
        check_parts("a transaction", gets.len(), limits::TRANSACTION_ITEMS_MAX)?;
        let deadline = self.soon();
        let wanted = gets.iter().map(|(_, get)| Wanted::of(get.projection.as_ref(), &get.key));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        self.check_gets(gets, deadline).await?;
        let part = |((table, get), wanted): (&(TableName, Get), &Wanted)| {
            let get = types::Get::builder()
                .table_name(table.as_str())
                .set_key(Some(attributes(&get.key)))
                .set_projection_expression(wanted.projection.clone())
                .set_expression_attribute_names(wanted.placeholders.names.clone());
            Ok(TransactGetItem::builder().get(built(get.build())?).build())
        };
        let parts = gets.iter().zip(&wanted).map(part).collect::<Result<Vec<_>>>()?;
        let request = || self.client.transact_get_items().set_transact_items(Some(parts.clone())).send();
        let answer = match self.caller.call(&action::TRANSACT_GET_ITEMS, deadline, request).await {
            Ok(answer) => answer,
            Err(mut failure) => {
                if let Some(TransactGetItemsError::TransactionCanceledException(why)) = failure.detail.take()
                    && let Some(error) =
                        explain::cancelled(why.cancellation_reasons.unwrap_or_default(), gets.len())
                {
                    return Err(error);
                }
                return Err(self.explained(failure, gets.iter().map(|(table, _)| table), deadline).await);
            }
        };
        let found = answer.responses.unwrap_or_default();
        if found.len() != gets.len() {
            return Err(strange("fewer items than were asked for"));
        }
        let show = |(found, wanted): (types::ItemResponse, &Wanted)| {
            // An item has its key, so one without attributes is none.
            let found = found.item.filter(|attributes| !attributes.is_empty());
            Ok(found.map(item).transpose()?.map(|item| wanted.show(item)))
        };
        found.into_iter().zip(&wanted).map(show).collect()
    }
}
