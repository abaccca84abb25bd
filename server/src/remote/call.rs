//! One request and its answer over HTTP.

use std::net::SocketAddr;

use anabranch_model::blob::Body;
use anabranch_model::{Error, Result};
use axum::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;

use super::transfer::{Sending, fetched};
use crate::api::Operation;
use crate::api::transfer::{HEAD, decode, encode};
use crate::api::wire::FailedReply;
use crate::limits::{ANSWER_WAIT_MAX, BODY_BYTES_MAX, CLIENT_IDLE_MAX, CONNECT_WAIT_MAX, LINE_BYTES_MAX};

/// Bytes that a connection reads ahead. It keeps them as long as it is open, and a reader of many shards has many.
const BUFFER_BYTES_MAX: usize = 16 << 10;

/// Connections to one server, kept open between calls.
pub(super) struct Caller {
    client: Client<HttpConnector, UnsyncBoxBody<Bytes, Error>>,
    address: SocketAddr,
}

impl Caller {
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WAIT_MAX));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(CLIENT_IDLE_MAX)
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(BUFFER_BYTES_MAX)
            .build(connector);
        Caller { client, address }
    }

    /// Calls an operation and waits for all of its answer.
    pub(super) async fn call<O: Operation>(&self, request: &O::Request) -> Result<O::Reply> {
        let call = async {
            let body = self.open(O::PATH, request).await?;
            self.reply::<O>(body).await
        };
        tokio::time::timeout(ANSWER_WAIT_MAX, call).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Calls an operation whose body is a blob. It may take any time as long as the body goes on.
    pub(super) async fn send<O: Operation>(&self, request: &O::Request, body: Body) -> Result<O::Reply> {
        let sending = Sending::default();
        let request = self
            .post(O::PATH)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(HEAD, encode(request)?)
            .body(sending.body(body))
            .map_err(unfit)?;
        let mut answer = std::pin::pin!(self.client.request(request));
        let response = loop {
            let before = sending.pieces();
            match tokio::time::timeout(ANSWER_WAIT_MAX, &mut answer).await {
                Ok(response) => break response,
                Err(_) if sending.pieces() == before => return Err(self.silent()),
                Err(_) => {}
            }
        };
        if let Some(error) = sending.failure() {
            return Err(error);
        }
        let response = response.map_err(|error| self.unavailable(reason(&error)))?;
        self.reply::<O>(self.success(response).await?.into_body()).await
    }

    /// Calls an operation that is answered with a blob. Its length stands in the reply.
    pub(super) async fn fetch<O: Operation>(
        &self,
        request: &O::Request,
        length_bytes: fn(&O::Reply) -> u64,
    ) -> Result<(O::Reply, Body)> {
        let response = self.request(O::PATH, request).await?;
        let reply: O::Reply = decode(response.headers(), &HEAD).map_err(|error| self.unavailable(error))?;
        let length = length_bytes(&reply);
        Ok((reply, fetched(response.into_body(), length)))
    }

    async fn reply<O: Operation>(&self, body: Incoming) -> Result<O::Reply> {
        let bytes = self.collect(body).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.unavailable(format_args!("an answer that is not understood: {error}")))
    }

    fn post(&self, path: &str) -> axum::http::request::Builder {
        Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}{path}", self.address))
            // The error that ends a blob stands behind it.
            .header(header::TE, "trailers")
    }

    /// Sends a request and returns the body of the answer as it comes, if the answer is a success.
    pub(super) async fn open(&self, path: &str, request: &impl Serialize) -> Result<Incoming> {
        Ok(self.request(path, request).await?.into_body())
    }

    async fn request(&self, path: &str, request: &impl Serialize) -> Result<Response<Incoming>> {
        let body = serde_json::to_vec(request)
            .map_err(|error| Error::Invalid(format!("the request cannot be written as JSON: {error}")))?;
        if body.len() > BODY_BYTES_MAX {
            let message = format!("the request is too large: {} bytes of {BODY_BYTES_MAX}", body.len());
            return Err(Error::Invalid(message));
        }
        let request = self
            .post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(UnsyncBoxBody::new(Full::new(Bytes::from(body)).map_err(|never| match never {})))
            .map_err(unfit)?;
        let response = tokio::time::timeout(ANSWER_WAIT_MAX, self.client.request(request))
            .await
            .map_err(|_| self.silent())?
            .map_err(|error| self.unavailable(reason(&error)))?;
        self.success(response).await
    }

    async fn success(&self, response: Response<Incoming>) -> Result<Response<Incoming>> {
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// The error that the server sent.
    async fn refused(&self, response: Response<Incoming>) -> Error {
        let status = response.status();
        let bytes = match tokio::time::timeout(ANSWER_WAIT_MAX, self.collect(response.into_body())).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return error,
            Err(_) => return self.silent(),
        };
        match serde_json::from_slice::<FailedReply>(&bytes) {
            Ok(reply) => reply.error.into(),
            Err(_) => self.unavailable(format_args!("status {status}")),
        }
    }

    async fn collect(&self, body: Incoming) -> Result<Bytes> {
        match Limited::new(body, LINE_BYTES_MAX).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) => Err(self.unavailable(format_args!("an answer that breaks off: {error}"))),
        }
    }

    fn unavailable(&self, what: impl std::fmt::Display) -> Error {
        Error::Unavailable(format!("the server at {} gave no answer: {what}", self.address))
    }

    fn silent(&self) -> Error {
        self.unavailable(format_args!("{} seconds have passed", ANSWER_WAIT_MAX.as_secs()))
    }
}

fn unfit(error: axum::http::Error) -> Error {
    Error::Invalid(format!("the request cannot be made: {error}"))
}

/// The innermost cause: the outer ones say only that a request failed.
fn reason(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
