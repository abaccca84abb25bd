//! Secrets in the store: a document for each secret, and one for each value. A value is written before the secret that
//! names it, so a secret never names a value that is not there.
//!
//! ```text
//!   deleted ─▶ over, once its time has come ─▶ values removed ─▶ secret removed
//! ```
//!
//! A secret that is over is nobody's any more. It goes with its values as soon as somebody comes across it, and its own
//! document goes last, so that no value is left behind whatever happens in between.

use anabranch_model::{Document, Error, Owner};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, MutexGuard};

use super::errors::{fault, no_secret};
use super::name::candidates;
use super::secret::{Deletion, Secret};
use super::value::Value;
use crate::context::Context;
use crate::fault::Fault;

/// The kind of the documents of secrets, named like them.
const SECRETS: &str = "secret";
/// The kind of the documents of values.
const VALUES: &str = "secret-value";

/// What the service remembers between calls.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever reads a secret to change it.
    changing: Mutex<()>,
}

impl State {
    /// Keeps others from changing secrets.
    pub(super) async fn changing(&self) -> Changing<'_> {
        Changing { _held: self.changing.lock().await }
    }
}

/// Held by whoever looks at secrets, because those that are over go when they are seen.
pub(super) struct Changing<'a> {
    _held: MutexGuard<'a, ()>,
}

/// The secret that a caller means.
pub(super) async fn find(
    context: &Context,
    changing: &Changing<'_>,
    id: Option<&str>,
) -> Result<Secret, Fault> {
    look_for(context, changing, id).await?.ok_or_else(no_secret)
}

/// The secret that a caller means, if there is one.
pub(super) async fn look_for(
    context: &Context,
    changing: &Changing<'_>,
    id: Option<&str>,
) -> Result<Option<Secret>, Fault> {
    for (name, suffix) in candidates(id.unwrap_or(""))? {
        if let Some(secret) = get(context, changing, &name).await?
            && suffix.is_none_or(|suffix| suffix == secret.suffix)
        {
            return Ok(Some(secret));
        }
    }
    Ok(None)
}

/// The secret of a name.
pub(super) async fn get(
    context: &Context,
    _changing: &Changing<'_>,
    name: &str,
) -> Result<Option<Secret>, Fault> {
    if name.len() > anabranch_model::limits::DOCUMENT_NAME_BYTES_MAX {
        return Ok(None);
    }
    let document = context.ports.admin.document(&Owner::Store, SECRETS, name).await.map_err(fault)?;
    match document.map(|text| read(&text)).transpose()? {
        Some(secret) if is_over(context, &secret) => {
            clear_away(context, &secret).await?;
            Ok(None)
        }
        secret => Ok(secret),
    }
}

fn is_over(context: &Context, secret: &Secret) -> bool {
    secret.deletion.is_some_and(|deletion| deletion.due_at <= context.clock.now().as_millis())
}

/// A page of secrets in the order of their names, and where the next one begins.
pub(super) async fn page(
    context: &Context,
    _changing: &Changing<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Secret>, Option<String>), Fault> {
    let page = context.ports.admin.documents(&Owner::Store, SECRETS, after, limit).await.map_err(fault)?;
    let next = page.entries.last().filter(|_| page.more).map(|document| document.name.clone());
    let mut secrets = Vec::with_capacity(page.entries.len());
    for document in &page.entries {
        let secret = read(&document.value)?;
        match is_over(context, &secret) {
            true => clear_away(context, &secret).await?,
            false => secrets.push(secret),
        }
    }
    Ok((secrets, next))
}

/// Keeps a secret.
pub(super) async fn keep(context: &Context, secret: &Secret) -> Result<(), Fault> {
    put(context, SECRETS, secret.name.clone(), secret).await
}

/// Keeps the value of a version.
pub(super) async fn keep_value(
    context: &Context,
    secret: &Secret,
    version: &str,
    value: &Value,
) -> Result<(), Fault> {
    put(context, VALUES, value_name(secret, version), value).await
}

/// The value of a version.
pub(super) async fn value(context: &Context, secret: &Secret, version: &str) -> Result<Value, Fault> {
    let name = value_name(secret, version);
    let document = context.ports.admin.document(&Owner::Store, VALUES, &name).await.map_err(fault)?;
    let missing = || fault(Error::Corrupt(format!("the value of secret `{}` is missing", secret.name)));
    read(&document.ok_or_else(missing)?)
}

/// Removes values of versions that are not named any longer.
pub(super) async fn drop_values(
    context: &Context,
    secret: &Secret,
    versions: &[String],
) -> Result<(), Fault> {
    let names: Vec<String> = versions.iter().map(|version| value_name(secret, version)).collect();
    if names.is_empty() {
        return Ok(());
    }
    context.ports.admin.delete_documents(&Owner::Store, VALUES, names).await.map_err(fault)
}

/// Removes a secret with its values.
pub(super) async fn remove(context: &Context, secret: &mut Secret) -> Result<(), Fault> {
    let now = context.clock.now().as_millis();
    // From here on it is over, even if the server ends before all of it is gone.
    secret.deletion = Some(Deletion { said_at: now, due_at: now });
    keep(context, secret).await?;
    clear_away(context, secret).await
}

/// Removes what is left of a secret that is over.
async fn clear_away(context: &Context, secret: &Secret) -> Result<(), Fault> {
    let versions: Vec<String> = secret.versions.iter().map(|version| version.id.clone()).collect();
    drop_values(context, secret, &versions).await?;
    let names = vec![secret.name.clone()];
    context.ports.admin.delete_documents(&Owner::Store, SECRETS, names).await.map_err(fault)
}

/// No other secret has the name and the end of the ARN of this one.
fn value_name(secret: &Secret, version: &str) -> String {
    format!("{}-{}:{version}", secret.name, secret.suffix)
}

async fn put<T: Serialize>(context: &Context, kind: &str, name: String, value: &T) -> Result<(), Fault> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Fault::server("InternalServiceError", error.to_string()))?;
    let documents = vec![Document::new(name, text)];
    context.ports.admin.put_documents(&Owner::Store, kind, documents).await.map_err(fault)
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|error| fault(Error::Corrupt(format!("a secret: {error}"))))
}
