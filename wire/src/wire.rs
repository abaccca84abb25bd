//! A request from its arrival to its answer.
//!
//! ```text
//!   head ─▶ route ─▶ body, within limits ─▶ operation of the service ─▶ answer or fault, in the language of the call
//! ```

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::watch;

use crate::auth::Scope;
use crate::context::{Context, Memory, Ports, REGION_DEFAULT, Shared};
use crate::dispatch::{self, Route, Service};
use crate::fault::Fault;
use crate::protocol::{Form, Protocol, render_fault};
use crate::receive::{Body, BodyError, BoxError, receive};
use crate::request_id::RequestIds;
use crate::{dynamodb, dynamodb_streams, keyspaces_streams, kinesis, sts};

/// How the protocols are served.
pub struct Options {
    /// The stores that calls are answered from.
    pub ports: Ports,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Memory for the bodies of calls.
    pub memory: Arc<dyn Memory>,
    /// Becomes true, or closes, when the server stops.
    pub stop: watch::Receiver<bool>,
    /// How long something that was made or changed says that it is not ready yet, as the services do.
    pub transition: Duration,
}

/// The AWS protocols.
pub struct Wire {
    shared: Arc<Shared>,
    request_ids: RequestIds,
}

/// What a request turned out to be.
pub(crate) struct Call {
    /// The service.
    pub(crate) service: Service,
    /// The language of request and answer.
    pub(crate) protocol: Protocol,
    /// The operation as the caller spells it.
    pub(crate) operation: String,
    /// The body.
    pub(crate) body: Bytes,
    /// The fields, where the language is Query.
    pub(crate) form: Form,
}

impl Wire {
    /// Serves these stores.
    pub fn new(options: Options) -> Self {
        let run = options.clock.now().as_millis();
        let Options { ports, clock, memory, stop, transition } = options;
        let (tokens, kinesis) = Default::default();
        let shared = Shared { ports, clock, memory, stop, transition, tokens, kinesis };
        Wire { shared: Arc::new(shared), request_ids: RequestIds::new(run) }
    }

    /// Answers a request.
    pub fn handle<B>(&self, request: Request<B>) -> BoxFuture<'_, Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let body = body.map_err(|error| BodyError(error.into())).boxed_unsync();
        Box::pin(self.identified(parts, body))
    }

    async fn identified(&self, parts: Parts, body: Body) -> Response<Body> {
        let request_id = self.request_ids.next();
        let mut response = self.respond(&request_id, parts, body).await;
        if let Ok(id) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert("x-amzn-requestid", id.clone());
            response.headers_mut().insert("x-amz-request-id", id);
        }
        response
    }

    async fn respond(&self, request_id: &str, parts: Parts, body: Body) -> Response<Body> {
        let (service, protocol, operation) = match dispatch::route(&parts) {
            Ok(Route::Operation(service, protocol, operation)) => (service, protocol, Some(operation)),
            Ok(Route::Form) => (Service::Sts, Protocol::Query, None),
            Ok(Route::Rest) => return self.rest(request_id, &parts),
            Err((service, protocol, fault)) => return render_fault(&fault, service, protocol, request_id),
        };
        let memory = &*self.shared.memory;
        let (body, _reservation) = match receive(&parts.headers, body, memory).await {
            Ok(received) => received,
            Err(fault) => return render_fault(&fault, service, protocol, request_id),
        };
        let scope = Scope::of(&parts);
        let call = match operation {
            Some(operation) => Call { service, protocol, operation, body, form: Form::default() },
            None => match form_call(&parts, scope.as_ref(), body) {
                Ok(call) => call,
                Err((service, protocol, fault)) => {
                    return render_fault(&fault, service, protocol, request_id);
                }
            },
        };
        let context = self.context(request_id, scope);
        let answered = answer(&context, &call).await;
        let response =
            answered.unwrap_or_else(|fault| render_fault(&fault, call.service, call.protocol, request_id));
        count(&call, response.status());
        response
    }

    /// S3 has methods and paths instead of operations.
    fn rest(&self, request_id: &str, parts: &Parts) -> Response<Body> {
        let message = format!("{} of {} is not implemented", parts.method, parts.uri.path());
        let fault = Fault::client("NotImplemented", message).with_status(StatusCode::NOT_IMPLEMENTED);
        render_fault(&fault, Service::S3, Protocol::Xml, request_id)
    }

    fn context(&self, request_id: &str, scope: Option<Scope>) -> Context {
        Context {
            shared: self.shared.clone(),
            region: scope.map_or_else(|| REGION_DEFAULT.to_owned(), |scope| scope.region),
            request_id: request_id.to_owned(),
        }
    }
}

/// A form names its operation in the body or, if there is none, in the query.
fn form_call(parts: &Parts, scope: Option<&Scope>, body: Bytes) -> Result<Call, dispatch::Astray> {
    let text =
        if body.is_empty() { parts.uri.query().unwrap_or("").into() } else { String::from_utf8_lossy(&body) };
    let form = Form::parse(&text);
    let (service, operation) = dispatch::form_operation(&form, scope.map(|scope| scope.service.as_str()))?;
    Ok(Call { service, protocol: Protocol::Query, operation, body: Bytes::new(), form })
}

/// The services. One that is not served here knows no operation.
async fn answer(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
    match (call.service, call.protocol) {
        (Service::DynamoDb, Protocol::Json10) => dynamodb::call(context, call).await,
        (Service::DynamoDbStreams, Protocol::Json10) => dynamodb_streams::call(context, call).await,
        (Service::KeyspacesStreams, Protocol::Json10) => keyspaces_streams::call(context, call).await,
        (Service::Kinesis, _) => kinesis::call(context, call).await,
        (Service::Sts, Protocol::Query) => sts::call(context, call),
        _ => Err(Fault::unknown_operation(&call.operation)),
    }
}

/// There are few labels, whatever clients ask for.
fn count(call: &Call, status: StatusCode) {
    let operations = match call.service {
        Service::DynamoDb => dynamodb::OPERATIONS,
        Service::DynamoDbStreams => dynamodb_streams::OPERATIONS,
        Service::KeyspacesStreams => keyspaces_streams::OPERATIONS,
        Service::Kinesis => kinesis::OPERATIONS,
        _ => &[],
    };
    let known = operations.iter().find(|name| **name == call.operation);
    let operation = known.copied().unwrap_or("other");
    let labels = [
        ("service", call.service.name().to_owned()),
        ("operation", operation.to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("anabranch_wire_calls_total", &labels).increment(1);
}
