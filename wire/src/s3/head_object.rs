//! HeadObject.

use anabranch_model::blob::GetOptions;
use http::{Response, StatusCode};

use super::answer::{empty, head};
use super::errors::fault;
use super::get_object::{describe, piece, refused};
use super::headers::read_conditions;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let conditions = read_conditions(&rest.headers, "", context.clock.now())?;
    let options = GetOptions { range: piece(rest)?, conditions };
    let partial = options.range.is_some();
    let found = if partial {
        // Where a part stands tells only who opens it.
        context.ports.blobs.get(bucket, key, options).await.map(|blob| (blob.meta, blob.range, blob.part))
    } else {
        let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
        options.conditions.check(key, &meta).map(|()| {
            let bytes = 0..meta.size;
            (meta, bytes, None)
        })
    };
    let (meta, bytes, part) = match found {
        Ok(found) => found,
        Err(error) => return refused(context, rest, error).await,
    };
    let mut response = empty(if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    let headers = response.headers_mut();
    head(headers, &meta, bytes.end - bytes.start, &rest.query)?;
    describe(headers, rest, &meta, (partial, &bytes), part.as_ref())?;
    Ok(response)
}
