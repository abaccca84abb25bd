//! The operations on blobs, on the server's side. Bodies pass through in pieces ([`transfer`](super::transfer)).

use std::sync::Arc;

use anabranch_model::Result;
use anabranch_model::blob::{BlobKey, BlobMeta, Part};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::StreamBody;

use super::meter;
use super::receive::{Refusal, receive};
use super::serve::{Answer, Api};
use super::transfer::{FAILED, HEAD, Incoming, decode, encode, frames};
use super::wire::{
    BlobMetaBody, BlobsReply, Empty, GetBlobReply, GetBlobRequest, PageReply, PartBody, PutBlobRequest,
    PutPartRequest, ResultsReply, UploadBody,
};
use super::{
    AbortUpload, BeginUpload, Blobs, Bucket, Buckets, CompleteUpload, CopyBlob, CreateBucket, DeleteBlob,
    DeleteBlobs, DeleteBucket, GetBlob, HeadBlob, Operation, Parts, PutBlob, PutPart, Uploads,
};

/// All operations on blobs.
pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route(Buckets::PATH, post(answer::<Buckets>))
        .route(Bucket::PATH, post(answer::<Bucket>))
        .route(CreateBucket::PATH, post(answer::<CreateBucket>))
        .route(DeleteBucket::PATH, post(answer::<DeleteBucket>))
        .route(PutBlob::PATH, post(put_blob))
        .route(GetBlob::PATH, post(get_blob))
        .route(HeadBlob::PATH, post(answer::<HeadBlob>))
        .route(DeleteBlob::PATH, post(answer::<DeleteBlob>))
        .route(DeleteBlobs::PATH, post(answer::<DeleteBlobs>))
        .route(CopyBlob::PATH, post(answer::<CopyBlob>))
        .route(Blobs::PATH, post(answer::<Blobs>))
        .route(BeginUpload::PATH, post(answer::<BeginUpload>))
        .route(PutPart::PATH, post(put_part))
        .route(Parts::PATH, post(answer::<Parts>))
        .route(Uploads::PATH, post(answer::<Uploads>))
        .route(CompleteUpload::PATH, post(answer::<CompleteUpload>))
        .route(AbortUpload::PATH, post(answer::<AbortUpload>))
}

async fn answer<O: Answer>(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<O::Reply>, Refusal> {
    let (request, _admission) = receive::<O::Request>(request, &api.budget).await?;
    let reply = O::ask(&api, request).await;
    meter::blob_call(O::NAME, &reply);
    Ok(Json(reply?))
}

async fn put_blob(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<BlobMetaBody>, Refusal> {
    let (head, body) = request.into_parts();
    let incoming = Incoming::new(body);
    let put: Result<BlobMeta> = async {
        let (place, options) = decode::<PutBlobRequest>(&head.headers, &HEAD)?.options()?;
        api.stores.blobs()?.put(&place.bucket.0, &place.key.0, incoming.body(), options).await
    }
    .await;
    meter::blob_call(PutBlob::NAME, &put);
    if put.is_err() {
        incoming.drain().await;
    }
    Ok(Json(put?.into()))
}

async fn put_part(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<PartBody>, Refusal> {
    let (head, body) = request.into_parts();
    let incoming = Incoming::new(body);
    let put: Result<Part> = async {
        let (upload, number, options) = decode::<PutPartRequest>(&head.headers, &HEAD)?.options()?;
        api.stores.blobs()?.put_part(&upload, number, incoming.body(), options).await
    }
    .await;
    meter::blob_call(PutPart::NAME, &put);
    if put.is_err() {
        incoming.drain().await;
    }
    Ok(Json(put?.into()))
}

async fn get_blob(State(api): State<Arc<Api>>, request: Request) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<GetBlobRequest>(request, &api.budget).await?;
    drop(admission);
    let (place, options) = request.options();
    let opened = async { api.stores.blobs()?.get(&place.bucket.0, &place.key.0, options).await }.await;
    meter::blob_call(GetBlob::NAME, &opened);
    let blob = opened?;
    let reply = GetBlobReply {
        meta: blob.meta.into(),
        first: blob.range.start,
        end: blob.range.end,
        part: blob.part.map(Into::into),
    };
    let headers = [
        (header::CONTENT_TYPE, header::HeaderValue::from_static("application/octet-stream")),
        (header::TRAILER, header::HeaderValue::from_name(FAILED)),
        (HEAD, encode(&reply)?),
    ];
    Ok((headers, Body::new(StreamBody::new(frames(blob.body)))).into_response())
}

impl Answer for Buckets {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        Ok(PageReply::of(api.stores.blobs()?.buckets(after.as_ref(), request.limit).await?))
    }
}

impl Answer for Bucket {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        Ok(api.stores.blobs()?.bucket(&request.bucket.0).await?.into())
    }
}

impl Answer for CreateBucket {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.blobs()?.create_bucket(&request.bucket.0).await?.into())
    }
}

impl Answer for DeleteBucket {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.blobs()?.delete_bucket(&request.bucket.0).await?.into())
    }
}

impl Answer for HeadBlob {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        Ok(api.stores.blobs()?.head(&request.bucket.0, &request.key.0).await?.into())
    }
}

impl Answer for DeleteBlob {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        let if_match = request.if_match.map(|etag| etag.0);
        let place = request.place;
        Ok(api.stores.blobs()?.delete(&place.bucket.0, &place.key.0, if_match.as_ref()).await?.into())
    }
}

impl Answer for DeleteBlobs {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let keys: Vec<BlobKey> = request.keys.into_iter().map(|key| key.0).collect();
        Ok(ResultsReply::of(api.stores.blobs()?.delete_many(&request.bucket.0, &keys).await?))
    }
}

impl Answer for CopyBlob {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let (source, target, options) = request.options();
        let copied = api.stores.blobs()?.copy(
            (&source.bucket.0, &source.key.0),
            (&target.bucket.0, &target.key.0),
            options,
        );
        Ok(copied.await?.into())
    }
}

impl Answer for Blobs {
    async fn ask(api: &Api, request: Self::Request) -> Result<BlobsReply> {
        let (bucket, options) = request.options();
        Ok(api.stores.blobs()?.list(&bucket, options).await?.into())
    }
}

impl Answer for BeginUpload {
    async fn ask(api: &Api, request: Self::Request) -> Result<UploadBody> {
        let (place, options) = request.options();
        Ok(api.stores.blobs()?.begin_upload(&place.bucket.0, &place.key.0, options).await?.into())
    }
}

impl Answer for Parts {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let (upload, after) = (request.upload.into(), request.after.map(|number| number.0));
        Ok(PageReply::of(api.stores.blobs()?.parts(&upload, after, request.limit).await?))
    }
}

impl Answer for Uploads {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let (bucket, options) = request.options();
        Ok(PageReply::of(api.stores.blobs()?.uploads(&bucket, options).await?))
    }
}

impl Answer for CompleteUpload {
    async fn ask(api: &Api, request: Self::Request) -> Result<BlobMetaBody> {
        let (upload, parts, options) = request.options()?;
        Ok(api.stores.blobs()?.complete_upload(&upload, &parts, options).await?.into())
    }
}

impl Answer for AbortUpload {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.blobs()?.abort_upload(&request.into()).await?.into())
    }
}
