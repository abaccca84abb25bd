//! Writing many items, all or none.
//!
//! Every transaction has a token, the caller's or one of our own: sent again within ten minutes it happens once.

use anabranch_model::table::{Action, Item, Token, Write, check_parts, check_transaction_bytes};
use anabranch_model::{Error, Result, TableName, limits};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;

use super::write::{Texts, with_texts};
use super::{Tables, action, built, explain};
use crate::attribute::tables::attributes;

impl Tables {
    pub(super) async fn write_at_once(
        &self,
        writes: &[(TableName, Write)],
        token: Option<Token>,
    ) -> Result<()> {
        check_parts("a transaction", writes.len(), limits::TRANSACTION_ITEMS_MAX)?;
        check_transaction_bytes(writes.iter().map(|(_, write)| write))?;
        let deadline = self.soon();
        self.check_writes(writes, deadline).await?;
        let parts = writes.iter().map(|(table, write)| part(table, write)).collect::<Result<Vec<_>>>()?;
        let repeatable = token.is_some();
        let token = token.map_or_else(|| self.caller.token(), |token| token.as_str().to_string());
        let mut rounds = 0;
        loop {
            let request = || {
                let request = self.client.transact_write_items().client_request_token(&token);
                let request = request.set_transact_items(Some(parts.clone()));
                request.customize().mutate_request(in_order).send()
            };
            let mut failure = match self.caller.call(&action::TRANSACT_WRITE_ITEMS, deadline, request).await {
                Ok(_) => return Ok(()),
                Err(failure) => failure,
            };
            match failure.detail.take() {
                Some(TransactWriteItemsError::TransactionCanceledException(why)) => {
                    let reasons = why.cancellation_reasons.unwrap_or_default();
                    if let Some(error) = explain::cancelled(reasons, writes.len()) {
                        return Err(error);
                    }
                }
                Some(TransactWriteItemsError::IdempotentParameterMismatchException(_)) => {
                    return Err(Error::TokenReused);
                }
                // An earlier attempt is still at work; what came of it is told when it has ended.
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => {
                    rounds += 1;
                    if self.caller.back_off(rounds, deadline).await {
                        continue;
                    }
                    return Err(Error::Unavailable(format!(
                        "DynamoDB is still at work on the transaction ({}); whether it was carried out is not known",
                        failure.message
                    )));
                }
                _ => {}
            }
            // Whoever calls again without a token makes another transaction.
            failure.action.repeatable = repeatable;
            return Err(self.explained(failure, writes.iter().map(|(table, _)| table), deadline).await);
        }
    }
}

/// Puts the names and values of a request in order. The SDK writes them in an order of chance, and DynamoDB may take a
/// transaction that is written in another order than the one that its token came with for another transaction.
fn in_order(request: &mut HttpRequest) {
    let body = request.body().bytes().and_then(|body| serde_json::from_slice(body).ok());
    let Some(mut body): Option<serde_json::Value> = body else { return };
    body.sort_all_objects();
    let text = body.to_string();
    request.headers_mut().insert("content-length", text.len().to_string());
    *request.body_mut() = SdkBody::from(text);
}

/// A part as DynamoDB takes it.
fn part(table: &TableName, write: &Write) -> Result<TransactWriteItem> {
    let texts = Texts::of(write);
    let key = |key: &Item| Some(attributes(key));
    let part = TransactWriteItem::builder();
    Ok(match &write.action {
        Action::Put(item) => {
            let put = Put::builder().set_item(Some(attributes(item)));
            part.put(built(with_texts!(put, table, texts).build())?)
        }
        Action::Update(..) if texts.update.is_none() => {
            return Err(Error::Invalid(
                "an update that changes nothing cannot be part of a transaction on DynamoDB: put the item"
                    .to_string(),
            ));
        }
        Action::Update(of, _) => {
            let update = Update::builder().set_key(key(of)).set_update_expression(texts.update.clone());
            part.update(built(with_texts!(update, table, texts).build())?)
        }
        Action::Delete(of) => {
            let delete = Delete::builder().set_key(key(of));
            part.delete(built(with_texts!(delete, table, texts).build())?)
        }
        Action::Check(of) => {
            let check = ConditionCheck::builder().set_key(key(of));
            part.condition_check(built(with_texts!(check, table, texts).build())?)
        }
    }
    .build())
}
