//! A request from its arrival to its answer.
//!
//! ```text
//!   head ─▶ route ─▶ body, within limits ─▶ operation of the service ─▶ answer or fault, in the language of the call
//! ```

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;
use anabranch_model::limits::TRACE_CHARS_MAX;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::auth::{Keys, Scope, check_head, verify};
use crate::context::{Context, Memory, Ports, REGION_DEFAULT, Shared};
use crate::deflate::deflated;
use crate::dispatch::{self, Route, Service};
use crate::fault::Fault;
use crate::inflate::Inflation;
use crate::protocol::{Form, HOST_ID, Protocol, render_fault};
use crate::receive::{Body, BodyError, BoxError, receive};
use crate::request_id::RequestIds;
use crate::{
    cloudwatch, dynamodb, dynamodb_streams, firehose, keyspaces_streams, kinesis, making, s3, secrets, sqs,
    sts,
};

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

/// An extension of requests that came over TLS: addresses in their answers lead back the same way.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;

/// The name of a server that nobody has given another one.
const HOST_DEFAULT: &str = "localhost";

/// The AWS protocols.
pub struct Wire {
    shared: Arc<Shared>,
    request_ids: RequestIds,
    keys: Keys,
    hosts: Vec<String>,
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
        let shared = Shared {
            ports,
            clock,
            memory,
            stop,
            transition,
            tokens: Default::default(),
            kinesis: Default::default(),
            dynamodb: Default::default(),
            sqs: Default::default(),
            cloudwatch: Default::default(),
            firehose: Default::default(),
            secrets: Default::default(),
        };
        let shared = Arc::new(shared);
        // What was begun is carried to its end, and deliveries go on by themselves, wherever there is somebody who runs tasks.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(dynamodb::settle_at_start(shared.clone()));
            runtime.spawn(making::settle_at_start(shared.clone()));
            runtime.spawn(firehose::deliver(Arc::downgrade(&shared)));
        }
        let hosts = vec![HOST_DEFAULT.to_owned()];
        Wire { shared, request_ids: RequestIds::new(run), keys: Keys::default(), hosts }
    }

    /// Lets in only what is signed with one of these keys. Without any, everything is let in.
    pub fn with_keys(self, keys: Keys) -> Self {
        Wire { keys, ..self }
    }

    /// The names of this server. What stands before one of them in the host of a request is a bucket.
    pub fn with_hosts(self, hosts: Vec<String>) -> Self {
        Wire { hosts, ..self }
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
            let headers = response.headers_mut();
            // S3 names a request in two halves, the others by one name.
            if headers.get(HOST_ID).is_none() {
                headers.insert("x-amzn-requestid", id.clone());
            }
            headers.insert("x-amz-request-id", id);
        }
        response
    }

    async fn respond(&self, request_id: &str, parts: Parts, body: Body) -> Response<Body> {
        let (service, protocol, operation) = match dispatch::route(&parts) {
            Ok(Route::Operation(service, protocol, operation)) => (service, protocol, Some(operation)),
            Ok(Route::Form) => (Service::Sts, Protocol::Query, None),
            Ok(Route::Rest) => return self.rest(request_id, parts, body).await,
            Err((service, protocol, fault)) => return render_fault(&fault, service, protocol, request_id),
        };
        // Strangers get no memory.
        if let Err(refusal) = check_head(&self.keys, self.shared.clock.now(), &parts) {
            return render_fault(&refusal.fault(service), service, protocol, request_id);
        }
        let arrived = match Inflation::of(&parts.headers, service) {
            Ok(inflation) => {
                let received = receive(&parts.headers, body, inflation, &*self.shared.memory).await;
                received.and_then(|(sent, held)| Ok((inflation.inflated(sent.clone())?, sent, held)))
            }
            Err(fault) => Err(fault),
        };
        let (body, sent, _reservation) = match arrived {
            Ok(arrived) => arrived,
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
        let context = self.context(request_id, &parts, scope);
        let answered = match self.admit(&parts, call.service, &sent) {
            Ok(()) => answer(&context, &call).await,
            Err(fault) => Err(fault),
        };
        let response =
            answered.unwrap_or_else(|fault| render_fault(&fault, call.service, call.protocol, request_id));
        let known = operations_of(call.service).iter().find(|name| **name == call.operation);
        count(call.service, known.copied(), response.status());
        match call.service {
            Service::DynamoDb => deflated(&parts.headers, response).await,
            _ => response,
        }
    }

    /// S3 has methods and paths instead of operations.
    async fn rest(&self, request_id: &str, parts: Parts, body: Body) -> Response<Body> {
        let context = self.context(request_id, &parts, Scope::of(&parts));
        let entrance = s3::Entrance { keys: &self.keys, hosts: &self.hosts };
        let (operation, response) = s3::respond(&context, &entrance, parts, body).await;
        count(Service::S3, operation, response.status());
        response
    }

    /// Lets a call in that is signed by somebody who holds a key.
    fn admit(&self, parts: &Parts, service: Service, body: &[u8]) -> Result<(), Fault> {
        let payload = if self.keys.is_empty() { String::new() } else { hex::encode(Sha256::digest(body)) };
        let verified = verify(&self.keys, self.shared.clock.now(), parts, service.scope(), &payload);
        verified.map(drop).map_err(|refusal| refusal.fault(service))
    }

    fn context(&self, request_id: &str, parts: &Parts, scope: Option<Scope>) -> Context {
        Context {
            shared: self.shared.clone(),
            region: scope.map_or_else(|| REGION_DEFAULT.to_owned(), |scope| scope.region),
            origin: origin(parts),
            path: parts.uri.path().to_owned(),
            trace: trace(parts),
            request_id: request_id.to_owned(),
        }
    }
}

/// The trace that a call belongs to. What no message could keep is none: nobody asked for it to be kept.
fn trace(parts: &Parts) -> Option<String> {
    let trace = parts.headers.get("x-amzn-trace-id")?.to_str().ok()?;
    (1..=TRACE_CHARS_MAX).contains(&trace.len()).then(|| trace.to_owned())
}

/// How the caller addresses this server: addresses in answers begin like this, so that they lead back here.
fn origin(parts: &Parts) -> String {
    let header = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = header.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    let scheme = if parts.extensions.get::<OverTls>().is_some() { "https" } else { "http" };
    format!("{scheme}://{}", host.unwrap_or(HOST_DEFAULT))
}

/// A form names its operation in the body or, if there is none, in the query.
fn form_call(parts: &Parts, scope: Option<&Scope>, body: Bytes) -> Result<Call, dispatch::Astray> {
    let text =
        if body.is_empty() { parts.uri.query().unwrap_or("").into() } else { String::from_utf8_lossy(&body) };
    let form = Form::parse(&text);
    let (service, operation) = dispatch::form_operation(&form, scope.map(|scope| scope.service.as_str()))?;
    Ok(Call { service, protocol: Protocol::Query, operation, body: Bytes::new(), form })
}

/// What is served: services with their operations.
pub fn operations() -> Vec<(&'static str, &'static [&'static str])> {
    let services = Service::all().map(|service| (service.name(), operations_of(service)));
    services.filter(|(_, operations)| !operations.is_empty()).collect()
}

/// The operations of a service. One that is not served here has none.
fn operations_of(service: Service) -> &'static [&'static str] {
    match service {
        Service::CloudWatch => cloudwatch::OPERATIONS,
        Service::DynamoDb => dynamodb::OPERATIONS,
        Service::DynamoDbStreams => dynamodb_streams::OPERATIONS,
        Service::Firehose => firehose::OPERATIONS,
        Service::KeyspacesStreams => keyspaces_streams::OPERATIONS,
        Service::Kinesis => kinesis::OPERATIONS,
        Service::S3 => s3::OPERATIONS,
        Service::SecretsManager => secrets::OPERATIONS,
        Service::Sqs => sqs::OPERATIONS,
        Service::Sts => sts::OPERATIONS,
    }
}

/// The services. One that is not served here knows no operation.
async fn answer(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
    // It was said at the start if that failed.
    let _ = making::settle(context, call.service).await;
    match (call.service, call.protocol) {
        (Service::CloudWatch, _) => cloudwatch::call(context, call).await,
        (Service::DynamoDb, Protocol::Json10) => dynamodb::call(context, call).await,
        (Service::DynamoDbStreams, Protocol::Json10) => dynamodb_streams::call(context, call).await,
        (Service::Firehose, Protocol::Json11) => firehose::call(context, call).await,
        (Service::KeyspacesStreams, Protocol::Json10) => keyspaces_streams::call(context, call).await,
        (Service::Kinesis, _) => kinesis::call(context, call).await,
        (Service::SecretsManager, Protocol::Json11) => secrets::call(context, call).await,
        (Service::Sqs, Protocol::Json10 | Protocol::Query) => sqs::call(context, call).await,
        (Service::Sts, Protocol::Query) => sts::call(context, call),
        _ => Err(Fault::unknown_operation(&call.operation)),
    }
}

/// There are few labels, whatever clients ask for.
fn count(service: Service, operation: Option<&'static str>, status: StatusCode) {
    let labels = [
        ("service", service.name().to_owned()),
        ("operation", operation.unwrap_or("other").to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("anabranch_wire_calls_total", &labels).increment(1);
}
