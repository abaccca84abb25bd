//! Writing one item: what is asked for, and what becomes of the item. An implementation adds the storing.

use super::expression::{Condition, Update};
use super::key::Key;
use super::options::TableOptions;
use super::value::Item;
use crate::error::{Error, Result};
use crate::limits::TRANSACTION_BYTES_MAX;

/// A write to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What is done.
    pub action: Action,
    /// What must hold for the item as it is; an item that does not exist has no attributes.
    pub condition: Option<Condition>,
    /// What is returned.
    pub returning: Returning,
    /// Whether a condition that does not hold shows the item.
    pub item_on_failure: bool,
}

/// What is done to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// This is the item from now on.
    Put(Item),
    /// The item with this key is changed, or made.
    Update(Item, Update),
    /// There is no item with this key from now on.
    Delete(Item),
    /// Nothing; the condition on the item with this key is part of a transaction.
    Check(Item),
}

/// What a write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Returning {
    /// Nothing.
    #[default]
    Nothing,
    /// The item as it was.
    Old,
    /// The item as it is; of an update only.
    New,
    /// The changed parts as they were; of an update only.
    UpdatedOld,
    /// The changed parts as they are; of an update only.
    UpdatedNew,
}

/// What a write makes of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The item from now on.
    pub new: Option<Item>,
    /// What the writer gets.
    pub returned: Option<Item>,
}

impl Write {
    /// This is the item from now on.
    pub fn put(item: Item) -> Self {
        Action::Put(item).into()
    }

    /// The item with this key is changed, or made.
    pub fn update(key: Item, update: Update) -> Self {
        Action::Update(key, update).into()
    }

    /// There is no item with this key from now on.
    pub fn delete(key: Item) -> Self {
        Action::Delete(key).into()
    }

    /// A condition on the item with this key, as part of a transaction.
    pub fn check_that(key: Item, condition: Condition) -> Self {
        Write::from(Action::Check(key)).when(condition)
    }

    /// This write, if the condition holds.
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// This write with something in return.
    pub fn returning(mut self, returning: Returning) -> Self {
        self.returning = returning;
        self
    }

    /// This write, showing the item if the condition does not hold.
    pub fn showing_item(mut self) -> Self {
        self.item_on_failure = true;
        self
    }

    /// The item, or the attributes of the key of the item, that the write is about.
    pub fn subject(&self) -> &Item {
        match &self.action {
            Action::Put(item) | Action::Update(item, _) | Action::Delete(item) | Action::Check(item) => item,
        }
    }

    /// Bytes that the write brings: an item, a key, and the values of an update.
    pub fn size(&self) -> usize {
        match &self.action {
            Action::Put(item) => item.size(),
            Action::Update(key, update) => key.size() + update.size(),
            Action::Delete(key) | Action::Check(key) => key.size(),
        }
    }

    /// The key of the item, if a table may be asked for this whatever the item is. Who calls it for a write outside a
    /// transaction refuses [`Action::Check`] before.
    pub fn check(&self, options: &TableOptions) -> Result<Key> {
        if let Some(condition) = &self.condition {
            condition.check()?;
        }
        let for_updates = !matches!(self.returning, Returning::Nothing | Returning::Old);
        if for_updates && !matches!(self.action, Action::Update(..)) {
            let returning = self.returning;
            return Err(Error::Invalid(format!("only an update returns {returning:?}")));
        }
        match &self.action {
            Action::Put(item) => options.check_item(item),
            Action::Update(key, update) => {
                update.check(&options.key)?;
                options.key.exact_key(key)
            }
            Action::Delete(key) => options.key.exact_key(key),
            Action::Check(_) if self.condition.is_none() => {
                Err(Error::Invalid("a check has no condition".to_string()))
            }
            Action::Check(key) => options.key.exact_key(key),
        }
    }

    /// What becomes of an item. The write has passed [`Write::check`].
    pub fn apply(&self, options: &TableOptions, old: Option<&Item>) -> Result<Outcome> {
        let nothing = Item::new();
        let holds = |condition: &Condition| condition.holds(old.unwrap_or(&nothing));
        if !self.condition.as_ref().is_none_or(holds) {
            return Err(Error::ConditionFailed { item: old.filter(|_| self.item_on_failure).cloned() });
        }
        let new = match &self.action {
            Action::Put(item) => Some(item.clone()),
            Action::Update(key, update) => update.apply(old, key)?,
            Action::Delete(_) => None,
            Action::Check(_) => old.cloned(),
        };
        if let (Some(item), Action::Update(..)) = (&new, &self.action) {
            options.check_item(item)?;
        }
        let returned = self.returned(old, new.as_ref())?;
        Ok(Outcome { new, returned })
    }

    fn returned(&self, old: Option<&Item>, new: Option<&Item>) -> Result<Option<Item>> {
        let parts = match (&self.action, self.returning, old, new) {
            (_, Returning::Nothing, ..) => None,
            (_, Returning::Old, old, _) => return Ok(old.cloned()),
            (_, Returning::New, _, new) => return Ok(new.cloned()),
            (Action::Update(_, update), Returning::UpdatedOld, Some(old), _) => {
                Some(update.parts_before(old)?)
            }
            (Action::Update(_, update), Returning::UpdatedNew, _, Some(new)) => {
                Some(update.parts_after(new)?)
            }
            _ => None,
        };
        Ok(parts.filter(|parts| !parts.is_empty()))
    }
}

/// Whether one transaction may bring so much.
pub fn check_transaction_bytes<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Result<()> {
    let (bytes, limit) = (writes.into_iter().map(Write::size).sum::<usize>(), TRANSACTION_BYTES_MAX);
    if bytes > limit {
        return Err(Error::Invalid(format!("a transaction has {bytes} bytes: at most {limit} are allowed")));
    }
    Ok(())
}

impl From<Action> for Write {
    fn from(action: Action) -> Self {
        Write { action, condition: None, returning: Returning::Nothing, item_on_failure: false }
    }
}
