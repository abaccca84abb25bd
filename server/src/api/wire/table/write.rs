//! Writes of items, and why one was in the way of a transaction.

use anabranch_model::Cancelled;
use anabranch_model::table::{Action, Returning, Write};
use serde::{Deserialize, Serialize};

use super::expression::{ConditionBody, UpdateBody};
use super::mirror::{Mirror, mirrored};
use super::value::ItemBody;

mirrored! {
    /// A write to one item.
    struct WriteBody = Write {
        action: ActionBody,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        condition: Option<ConditionBody>,
        returning: ReturningBody,
        #[serde(default)]
        item_on_failure: bool,
    }
}

mirrored! {
    /// What is done to an item.
    enum ActionBody = Action {
        Put(item: ItemBody),
        Update(key: ItemBody, update: UpdateBody),
        Delete(key: ItemBody),
        Check(key: ItemBody),
    }
}

mirrored! {
    /// What a write returns.
    enum ReturningBody = Returning { Nothing, Old, New, UpdatedOld, UpdatedNew, }
}

/// Why a part of a transaction was in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants are those of the model's type")]
pub enum CancelledBody {
    ConditionFailed { item: Option<ItemBody> },
    Invalid(String),
    Conflict,
    Throttled,
}

impl Mirror<Cancelled> for CancelledBody {
    fn of(model: Cancelled) -> Self {
        match model {
            Cancelled::ConditionFailed { item } => CancelledBody::ConditionFailed { item: Mirror::of(item) },
            Cancelled::Invalid(why) => CancelledBody::Invalid(why),
            Cancelled::Conflict => CancelledBody::Conflict,
            Cancelled::Throttled => CancelledBody::Throttled,
        }
    }

    fn back(self) -> Cancelled {
        match self {
            CancelledBody::ConditionFailed { item } => Cancelled::ConditionFailed { item: item.back() },
            CancelledBody::Invalid(why) => Cancelled::Invalid(why),
            CancelledBody::Conflict => Cancelled::Conflict,
            CancelledBody::Throttled => Cancelled::Throttled,
        }
    }
}
