//! Secrets in the store: a document for each secret, and one for each value. A value is written before the secret that
//! names it, and removed after it, so a secret never names a value that is not there.

use anabranch_model::{Document, Error, Owner};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, MutexGuard};

use super::errors::{fault, no_secret};
use super::name::candidates;
use super::secret::Secret;
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
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }
}

/// The secret that a caller means.
pub(super) async fn find(context: &Context, id: Option<&str>) -> Result<Secret, Fault> {
    for (name, suffix) in candidates(id.unwrap_or(""))? {
        if let Some(secret) = get(context, &name).await?
            && suffix.is_none_or(|suffix| suffix == secret.suffix)
        {
            return Ok(secret);
        }
    }
    Err(no_secret())
}

/// The secret of a name. One whose time is over is not there.
pub(super) async fn get(context: &Context, name: &str) -> Result<Option<Secret>, Fault> {
    if name.len() > anabranch_model::limits::DOCUMENT_NAME_BYTES_MAX {
        return Ok(None);
    }
    let document = context.ports.admin.document(&Owner::Store, SECRETS, name).await.map_err(fault)?;
    let secret: Option<Secret> = document.map(|text| read(&text)).transpose()?;
    Ok(secret.filter(|secret| !is_over(context, secret)))
}

fn is_over(context: &Context, secret: &Secret) -> bool {
    secret.deletion.is_some_and(|deletion| deletion.due_at <= context.clock.now().as_millis())
}

/// A page of secrets in the order of their names, and where the next one begins.
pub(super) async fn page(
    context: &Context,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Secret>, Option<String>), Fault> {
    let page = context.ports.admin.documents(&Owner::Store, SECRETS, after, limit).await.map_err(fault)?;
    let next = page.entries.last().filter(|_| page.more).map(|document| document.name.clone());
    let secrets =
        page.entries.iter().map(|document| read(&document.value)).collect::<Result<Vec<Secret>, _>>()?;
    Ok((secrets.into_iter().filter(|secret| !is_over(context, secret)).collect(), next))
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
pub(super) async fn remove(context: &Context, secret: &Secret) -> Result<(), Fault> {
    let names = vec![secret.name.clone()];
    context.ports.admin.delete_documents(&Owner::Store, SECRETS, names).await.map_err(fault)?;
    let versions: Vec<String> = secret.versions.iter().map(|version| version.id.clone()).collect();
    drop_values(context, secret, &versions).await
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
