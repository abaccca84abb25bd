//! Things that are made in two steps: the thing itself, then its settings.
//!
//! A server may die between the two. So the settings are noted before the thing is made. Whoever asks for the same thing
//! again finds the note and finishes the work, or the server does when it has started again:
//!
//! ```text
//!   note ─▶ make ─▶ keep the settings ─▶ no note any more
//! ```

use std::future::Future;

use anabranch_model::{Document, Owner, Result};
use bytes::Bytes;

use crate::context::Context;
use crate::fault::Fault;

/// Notes that are read at once.
const PAGE: usize = 100;

/// The notes of one kind of things.
pub(crate) struct Notes(pub(crate) &'static str);

impl Notes {
    /// What was noted about a thing that was not finished.
    pub(crate) async fn unfinished(&self, context: &Context, name: &str) -> Result<Option<Bytes>> {
        context.ports.admin.document(&Owner::Store, self.0, name).await
    }

    /// All that was noted, by name.
    pub(crate) async fn all(&self, context: &Context) -> Result<Vec<(String, Bytes)>> {
        let mut all: Vec<(String, Bytes)> = Vec::new();
        loop {
            let after = all.last().map(|(name, _)| name.as_str());
            let page = context.ports.admin.documents(&Owner::Store, self.0, after, PAGE).await?;
            all.extend(page.entries.into_iter().map(|document| (document.name, document.value)));
            if !page.more {
                return Ok(all);
            }
        }
    }

    /// Notes the settings of a thing that is about to be made.
    pub(crate) async fn begin(&self, context: &Context, name: &str, settings: Vec<u8>) -> Result<()> {
        let note = vec![Document::new(name, settings)];
        context.ports.admin.put_documents(&Owner::Store, self.0, note).await
    }

    /// Forgets a thing that is finished.
    pub(crate) async fn end(&self, context: &Context, name: &str) -> Result<()> {
        context.ports.admin.delete_documents(&Owner::Store, self.0, vec![name.to_owned()]).await
    }
}

/// Does something to its end, whether or not its caller is still there to hear about it.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = std::result::Result<T, Fault>> + Send + 'static,
) -> std::result::Result<T, Fault> {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            Err(Fault::server("InternalFailure", format!("the call did not come to its end: {error}")))
        }
    }
}
