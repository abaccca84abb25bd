//! Faults as each protocol spells them.

use http::{HeaderValue, Response};
use serde_json::{Map, Value};

use super::Protocol;
use super::xml::text as escape;
use crate::dispatch::Service;
use crate::fault::Fault;
use crate::receive::Body;

/// The header by which S3 names who answered.
pub(crate) const HOST_ID: &str = "x-amz-id-2";
/// Who answers.
pub(crate) const HOST_NAME: &str = "anabranch";

/// A fault as an answer.
pub(crate) fn render(
    fault: &Fault,
    service: Service,
    protocol: Protocol,
    request_id: &str,
) -> Response<Body> {
    match protocol {
        Protocol::Query => {
            let code = fault.query_code.unwrap_or(&fault.code);
            let text = format!(
                "<?xml version=\"1.0\"?><ErrorResponse><Error><Type>{}</Type><Code>{}</Code><Message>{}</Message>\
                 </Error><RequestId>{request_id}</RequestId></ErrorResponse>",
                fault.blames(),
                escape(code),
                escape(&fault.message),
            );
            protocol.response(fault.query_status.unwrap_or(fault.status), text.into_bytes())
        }
        Protocol::Xml => {
            let text = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message>{}\
                 <RequestId>{request_id}</RequestId><HostId>{HOST_NAME}</HostId></Error>",
                escape(&fault.code),
                escape(&fault.message),
                elements(fault),
            );
            protocol.response(fault.status, text.into_bytes())
        }
        Protocol::Json10 | Protocol::Json11 | Protocol::Cbor | Protocol::RpcCbor => {
            members(fault, service, protocol)
        }
    }
}

/// What a fault has beside code and message, as elements.
fn elements(fault: &Fault) -> String {
    let element = |(name, value): (&String, &Value)| match value {
        // Characters that a document cannot hold are left out.
        Value::String(text) => {
            let text = text.replace(|c: char| c.is_control(), "");
            format!("<{name}>{}</{name}>", escape(&text))
        }
        other => format!("<{name}>{}</{name}>", escape(&other.to_string())),
    };
    fault.members.iter().map(element).collect()
}

fn members(fault: &Fault, service: Service, protocol: Protocol) -> Response<Body> {
    let mut body = Map::new();
    let code = format!("{}{}", namespace(fault, service), fault.code);
    body.insert("__type".to_owned(), Value::String(code));
    if !fault.message.is_empty() {
        let name = if is_capital(fault, service) { "Message" } else { "message" };
        body.insert(name.to_owned(), Value::String(fault.message.clone()));
    }
    body.extend(fault.members.clone());
    // Only texts and what operations put beside them: there is nothing that cannot be spelled.
    let body = protocol.encode(&body).unwrap_or_default();
    let mut response = protocol.response(fault.status, body);
    let headers = response.headers_mut();
    if let Ok(code) = HeaderValue::from_str(&fault.code) {
        headers.insert("x-amzn-errortype", code);
    }
    // Services that began with Query repeat its codes for clients that know no others.
    if let Some(code) = fault.query_code.filter(|_| matches!(service, Service::Sqs | Service::CloudWatch)) {
        let value = format!("{code};{}", fault.blames());
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert("x-amzn-query-error", value);
        }
    }
    response
}

/// Whether the message has a capital. What stands before the services spells its faults in its own way, and so do Secrets
/// Manager with its own and the transactions of DynamoDB; some clients look for that name only.
fn is_capital(fault: &Fault, service: Service) -> bool {
    match &*fault.code {
        "SerializationException" => true,
        "IdempotentParameterMismatchException" | "TransactionCanceledException" => {
            service == Service::DynamoDb
        }
        code => service == Service::SecretsManager && code != "ValidationException",
    }
}

/// What stands before the code. Faults that do not belong to a service alone have namespaces of their own in DynamoDB, and
/// some of its clients match on them.
fn namespace(fault: &Fault, service: Service) -> &'static str {
    if !matches!(service, Service::DynamoDb | Service::DynamoDbStreams) {
        return service.namespace();
    }
    match &*fault.code {
        "ValidationException" => "com.amazon.coral.validate#",
        "AccessDeniedException"
        | "IncompleteSignatureException"
        | "InvalidSignatureException"
        | "MissingAuthenticationTokenException"
        | "SerializationException"
        | "UnknownOperationException"
        | "UnrecognizedClientException" => "com.amazon.coral.service#",
        _ => service.namespace(),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn rendered(fault: &Fault, service: Service, protocol: Protocol) -> String {
        let body = render(fault, service, protocol, "id").into_body();
        String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned()
    }

    #[tokio::test]
    async fn each_protocol_has_its_spelling() {
        let fault = Fault {
            query_code: Some("AWS.SimpleQueueService.NonExistentQueue"),
            ..Fault::client("QueueDoesNotExist", "a < b")
        };
        assert_eq!(
            rendered(&fault, Service::Sqs, Protocol::Json10).await,
            r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"a < b"}"#
        );
        assert_eq!(
            rendered(&fault, Service::Kinesis, Protocol::Json11).await,
            r#"{"__type":"QueueDoesNotExist","message":"a < b"}"#
        );
        let query = rendered(&fault, Service::Sqs, Protocol::Query).await;
        assert!(query.contains("<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"), "{query}");
        assert!(query.contains("<Type>Sender</Type>") && query.contains("a &lt; b"), "{query}");
        let response = render(&fault, Service::Sqs, Protocol::Json10, "id");
        let header = &response.headers()["x-amzn-query-error"];
        assert_eq!(header, "AWS.SimpleQueueService.NonExistentQueue;Sender");
        let kinesis = render(&fault, Service::Kinesis, Protocol::Json11, "id");
        assert!(!kinesis.headers().contains_key("x-amzn-query-error"));
        let cbor = render(&fault, Service::Kinesis, Protocol::Cbor, "id").into_body();
        let cbor = cbor.collect().await.unwrap().to_bytes();
        let value: Map<String, Value> = minicbor_serde::from_slice(&cbor).unwrap();
        assert_eq!(value["__type"], "QueueDoesNotExist");
    }

    #[tokio::test]
    async fn faults_of_all_services_have_their_own_spelling() {
        let not_found = Fault::client("ResourceNotFoundException", "no");
        let shapes = [
            (Service::Kinesis, Fault::serialization("no"), "SerializationException", "Message"),
            (Service::Kinesis, Fault::validation("no"), "ValidationException", "message"),
            (
                Service::DynamoDb,
                Fault::serialization("no"),
                "com.amazon.coral.service#SerializationException",
                "Message",
            ),
            (
                Service::DynamoDb,
                Fault::validation("no"),
                "com.amazon.coral.validate#ValidationException",
                "message",
            ),
            (
                Service::DynamoDb,
                Fault::client("TransactionCanceledException", "no"),
                "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "Message",
            ),
            (
                Service::DynamoDb,
                Fault::client("IdempotentParameterMismatchException", "no"),
                "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException",
                "Message",
            ),
            (
                Service::DynamoDbStreams,
                not_found,
                "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
                "message",
            ),
        ];
        for (service, fault, code, member) in shapes {
            let body = rendered(&fault, service, Protocol::Json10).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body, serde_json::json!({ "__type": code, member: "no" }));
        }
    }
}
