//! A client of SQS in either of its languages: the same calls, spelled in JSON or as forms.

#![allow(dead_code, reason = "each suite uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Map, Value, json};

use crate::harness::Harness;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a POST with these headers.
pub async fn post(server: &Harness, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let (status, headers, body) = server.exchange(request).await;
    Answer { status: status.as_u16(), headers, body: String::from_utf8(body.to_vec()).unwrap() }
}

/// Sends a call in JSON.
pub async fn post_json(server: &Harness, operation: &str, body: &str) -> Answer {
    let target = format!("AmazonSQS.{operation}");
    let headers = [("x-amz-target", &*target), ("content-type", "application/x-amz-json-1.0")];
    post(server, "/", &headers, body.as_bytes()).await
}

/// Sends a form.
pub async fn post_form(server: &Harness, path: &str, fields: &[(String, String)]) -> Answer {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    let content_type = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
    post(server, path, &[content_type], body.finish().as_bytes()).await
}

/// The language of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Json,
    Forms,
}

pub const BOTH: [Speaks; 2] = [Speaks::Json, Speaks::Forms];

pub struct Client<'a> {
    pub server: &'a Harness,
    pub speaks: Speaks,
}

/// The members of an answer, wherever they stand.
#[derive(Debug)]
pub enum Reply {
    Json(Value),
    Xml(String),
}

impl Reply {
    /// The values of all members of this name.
    pub fn all(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self {
            Reply::Json(value) => find(value, name, &mut found),
            Reply::Xml(text) => {
                for rest in text.split(&format!("<{name}>")).skip(1) {
                    let inner = rest.split(&format!("</{name}>")).next().unwrap();
                    found.push(quick_xml::escape::unescape(inner).unwrap().into_owned());
                }
            }
        }
        found
    }

    /// The first of them.
    #[track_caller]
    pub fn get(&self, name: &str) -> String {
        self.all(name).into_iter().next().unwrap_or_else(|| panic!("{name} is missing: {self:?}"))
    }

    /// The value of an entry of a map of texts.
    #[track_caller]
    pub fn entry(&self, name: &str) -> String {
        self.entries()
            .into_iter()
            .find(|(found, _)| found == name)
            .unwrap_or_else(|| panic!("no {name}: {self:?}"))
            .1
    }

    /// Maps of texts: attributes and tags.
    pub fn entries(&self) -> Vec<(String, String)> {
        match self {
            Reply::Json(value) => {
                let mut found = Vec::new();
                texts(value, &mut found);
                found
            }
            Reply::Xml(_) => {
                let names = [self.all("Name"), self.all("Key")].concat();
                names.into_iter().zip(self.all("Value")).collect()
            }
        }
    }
}

fn find(value: &Value, name: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::Array(values)
                        if matches!((key.as_str(), name), ("QueueUrls" | "queueUrls", "QueueUrl")) =>
                    {
                        found.extend(values.iter().map(|value| value.as_str().unwrap().to_owned()));
                    }
                    Value::String(text) if key == name => found.push(text.clone()),
                    Value::Number(_) | Value::Bool(_) if key == name => found.push(value.to_string()),
                    _ => find(value, name, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| find(value, name, found)),
        _ => {}
    }
}

fn texts(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) => found.push((key.clone(), text.clone())),
                    _ => texts(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        _ => {}
    }
}

impl Client<'_> {
    /// Calls, and gives the code of a refusal in its old spelling, which both languages tell.
    pub async fn call(&self, operation: &str, request: Value) -> Result<Reply, String> {
        let answer = self.send(operation, &request).await;
        match (self.speaks, answer.status) {
            (Speaks::Json, 200) => Ok(Reply::Json(serde_json::from_str(&answer.body).unwrap())),
            (Speaks::Json, _) => {
                let body: Value = serde_json::from_str(&answer.body).unwrap();
                assert!(body["__type"].as_str().unwrap().starts_with("com.amazonaws.sqs#"), "{body}");
                assert!(!body["message"].as_str().unwrap().is_empty(), "{body}");
                let header = answer.header("x-amzn-query-error").unwrap_or_else(|| panic!("{answer:?}"));
                Err(header.split(';').next().unwrap().to_owned())
            }
            (Speaks::Forms, 200) => {
                assert!(answer.body.starts_with(&format!("<{operation}Response")), "{answer:?}");
                assert!(answer.body.contains("<RequestId>"), "{answer:?}");
                // Clients look for the result of every operation that has one, even if it is empty.
                let verbs = ["Create", "Get", "List", "Receive", "Send", "Start", "Cancel"];
                let result =
                    verbs.iter().any(|verb| operation.starts_with(verb)) || operation.ends_with("Batch");
                assert_eq!(answer.body.contains(&format!("<{operation}Result>")), result, "{answer:?}");
                Ok(Reply::Xml(answer.body))
            }
            (Speaks::Forms, _) => Err(Reply::Xml(answer.body).get("Code")),
        }
    }

    /// Calls, and expects to be answered.
    #[track_caller]
    pub fn ok(&self, operation: &str, request: Value) -> impl Future<Output = Reply> {
        let caller = std::panic::Location::caller();
        let operation = operation.to_owned();
        async move {
            let answered = self.call(&operation, request).await;
            answered.unwrap_or_else(|code| panic!("{operation} at {caller}, {:?}: {code}", self.speaks))
        }
    }

    /// Calls, and expects to be refused.
    #[track_caller]
    pub fn refused(&self, operation: &str, request: Value) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let operation = operation.to_owned();
        async move {
            let answered = self.call(&operation, request.clone()).await;
            match answered {
                Err(code) => code,
                Ok(reply) => panic!("{operation} of {request} at {caller}, {:?}: {reply:?}", self.speaks),
            }
        }
    }

    pub async fn send(&self, operation: &str, request: &Value) -> Answer {
        match self.speaks {
            Speaks::Json => post_json(self.server, operation, &request.to_string()).await,
            Speaks::Forms => {
                let mut fields = vec![
                    ("Action".to_owned(), operation.to_owned()),
                    ("Version".to_owned(), "2012-11-05".to_owned()),
                ];
                spell(operation, "", request.as_object().unwrap(), &mut fields);
                post_form(self.server, "/", &fields).await
            }
        }
    }

    /// Makes a queue and gives its address.
    pub async fn queue(&self, name: &str, attributes: Value) -> String {
        let reply = self.ok("CreateQueue", json!({"QueueName": name, "Attributes": attributes})).await;
        reply.get("QueueUrl")
    }
}

/// The fields of a form, as old clients name them.
fn spell(operation: &str, prefix: &str, members: &Map<String, Value>, fields: &mut Vec<(String, String)>) {
    for (name, value) in members {
        let listed = match name.as_str() {
            "Entries" => format!("{operation}RequestEntry"),
            "tags" | "Tags" => "Tag".to_owned(),
            "AWSAccountIds" => "AWSAccountId".to_owned(),
            "Actions" => "ActionName".to_owned(),
            name => name.trim_end_matches('s').to_owned(),
        };
        match value {
            Value::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    let name = format!("{prefix}{listed}.{}", number + 1);
                    match value {
                        Value::Object(entry) => spell(operation, &format!("{name}."), entry, fields),
                        value => fields.push((name, plain(value))),
                    }
                }
            }
            Value::Object(entries) => {
                let key = if listed == "Tag" { "Key" } else { "Name" };
                for (number, (entry, value)) in entries.iter().enumerate() {
                    let name = format!("{prefix}{listed}.{}", number + 1);
                    fields.push((format!("{name}.{key}"), entry.clone()));
                    match value {
                        Value::Object(inner) => spell(operation, &format!("{name}.Value."), inner, fields),
                        value => fields.push((format!("{name}.Value"), plain(value))),
                    }
                }
            }
            value => fields.push((format!("{prefix}{name}"), plain(value))),
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Everything there is, without waiting and hidden for `visibility` seconds.
pub async fn receive(sqs: &Client<'_>, url: &str, visibility: u32) -> Reply {
    let request = json!({
        "QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": visibility,
        "AttributeNames": ["All"], "MessageAttributeNames": ["All"],
    });
    sqs.ok("ReceiveMessage", request).await
}
