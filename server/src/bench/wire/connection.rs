//! A connection that is kept, and calls whose bytes are ready before they are made.
//!
//! The client has to cost less than what it measures, so there is no SDK here: no signature is computed, no answer is parsed
//! beyond what the next call needs.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::failure::Failure;

/// A service as its calls name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Kinesis,
    Sqs,
    DynamoDb,
}

impl Service {
    /// By the word of the command line.
    pub(super) fn named(word: &str) -> Option<Service> {
        match word {
            "kinesis" => Some(Service::Kinesis),
            "sqs" => Some(Service::Sqs),
            "dynamodb" => Some(Service::DynamoDb),
            _ => None,
        }
    }

    fn target(self) -> &'static str {
        match self {
            Service::Kinesis => "Kinesis_20131202",
            Service::Sqs => "AmazonSQS",
            Service::DynamoDb => "DynamoDB_20120810",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Service::Kinesis => "application/x-amz-json-1.1",
            Service::Sqs | Service::DynamoDb => "application/x-amz-json-1.0",
        }
    }

    fn scope(self) -> &'static str {
        match self {
            Service::Kinesis => "kinesis",
            Service::Sqs => "sqs",
            Service::DynamoDb => "dynamodb",
        }
    }
}

/// An operation with the headers that all of its calls have.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    name: &'static str,
    target: HeaderValue,
    content_type: HeaderValue,
    authorization: HeaderValue,
}

impl Operation {
    /// An operation of a service.
    pub(super) fn of(service: Service, name: &'static str) -> Operation {
        let header =
            |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        // In the form of a signature, which is all that a server without keys looks at.
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{}/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-target, Signature={}",
            service.scope(),
            "0".repeat(64)
        );
        Operation {
            name,
            target: header(format!("{}.{name}", service.target())),
            content_type: HeaderValue::from_static(service.content_type()),
            authorization: header(authorization),
        }
    }
}

/// A connection to one server; one call at a time. A server that ends it after each answer is connected to again.
pub(super) struct Connection {
    address: String,
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects to `host:port`.
    pub(super) async fn to(address: &str) -> Result<Connection, Failure> {
        let sender = connect(address).await?;
        let host = HeaderValue::from_str(address).map_err(|error| unreachable_at(address, &error))?;
        Ok(Connection { address: address.to_owned(), host, sender })
    }

    /// Connections for as many tasks.
    pub(super) async fn many(address: &str, count: usize) -> Result<Vec<Connection>, Failure> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(Connection::to(address).await?);
        }
        Ok(connections)
    }

    /// Makes a call and returns the body of the answer, which must be a success.
    pub(super) async fn call(&mut self, operation: &Operation, body: Bytes) -> Result<Bytes, Failure> {
        let failed = |what: String| {
            Failure::new("bench", format!("{}: {what}", operation.name), "look at the log of the server")
        };
        let request = Request::builder()
            .method(Method::POST)
            .uri("/")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, &operation.content_type)
            .header(AUTHORIZATION, &operation.authorization)
            .header("x-amz-date", "20260101T000000Z")
            .header("x-amz-target", &operation.target)
            .body(Full::new(body))
            .map_err(|error| failed(error.to_string()))?;
        let answer = self.send(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        Err(failed(format!("{status}: {text}")))
    }

    /// Sends a request, over a new connection if the last answer ended the old one.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let lost = |error: hyper::Error| unreachable_at(&self.address, &error);
        let request = match self.sender.ready().await {
            Err(_) => request,
            Ok(()) => match self.sender.try_send_request(request).await {
                Ok(answer) => return Ok(answer),
                Err(mut error) => error.take_message().ok_or_else(|| lost(error.into_error()))?,
            },
        };
        self.sender = connect(&self.address).await?;
        self.sender.send_request(request).await.map_err(lost)
    }

    /// A call that is made once, outside of what is measured.
    pub(super) async fn ask(&mut self, operation: &Operation, request: &Value) -> Result<Value, Failure> {
        let body = self.call(operation, request.to_string().into()).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body)
            .map_err(|error| Failure::new("bench", format!("{}: {error}", operation.name), "report this"))
    }
}

async fn connect(address: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await.map_err(|error| unreachable_at(address, &error))?;
    stream.set_nodelay(true).map_err(|error| unreachable_at(address, &error))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable_at(address, &error))?;
    // It ends with the sender, or when the server closes it; the next call notices.
    tokio::spawn(connection);
    Ok(sender)
}

fn unreachable_at(address: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new("bench", format!("{address}: {error}"), "is the server there?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_says_which_service_it_is_of() {
        let operation = Operation::of(Service::DynamoDb, "PutItem");
        assert_eq!(operation.target, "DynamoDB_20120810.PutItem");
        assert!(operation.authorization.to_str().unwrap().contains("/us-east-1/dynamodb/aws4_request"));
        assert_eq!(Service::named("sqs"), Some(Service::Sqs));
        assert_eq!(Service::named("s3"), None);
    }
}
