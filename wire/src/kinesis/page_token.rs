//! Where a listing by names goes on: a token that says the last name of the page before, for a while.

use super::errors::{fault, invalid};
use super::list_shards::TOKEN_LIFE;
use crate::context::Context;
use crate::fault::Fault;

/// A token that leads to what comes behind a name.
pub(super) async fn seal(context: &Context, purpose: &str, name: &str) -> Result<String, Fault> {
    let (admin, clock) = (&*context.ports.admin, &*context.clock);
    context.tokens.seal(admin, clock, purpose, name.as_bytes()).await.map_err(fault)
}

/// The name behind which a listing goes on.
pub(super) async fn open(context: &Context, purpose: &str, token: &str) -> Result<String, Fault> {
    let opened = context.tokens.open(&*context.ports.admin, purpose, token).await.map_err(fault)?;
    let opened = opened.ok_or_else(|| invalid("NextToken is invalid."))?;
    if context.clock.now().since(opened.made_at) > TOKEN_LIFE {
        return Err(Fault::client("ExpiredNextTokenException", "The pagination token has expired."));
    }
    String::from_utf8(opened.content.to_vec()).map_err(|_| invalid("NextToken is invalid."))
}
