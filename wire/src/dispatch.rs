//! Which service and which operation a request is for.
//!
//! ```text
//!   X-Amz-Target: Kinesis_20131202.PutRecord      JSON or CBOR, by the content type
//!   /service/…/operation/PutMetricData            CBOR, as newer clients send it
//!   a form with Action=…                          Query; the version or the signature tells the service
//!   JSON that is posted to / and names nothing    nobody: the signature or the content type tells who says so
//!   anything else                                 S3
//! ```

use http::request::Parts;
use http::{HeaderMap, Method, header};

use crate::auth::{Scope, is_address};
use crate::fault::Fault;
use crate::protocol::{Form, Protocol};

/// The services that share the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    CloudWatch,
    DynamoDb,
    DynamoDbStreams,
    Firehose,
    KeyspacesStreams,
    Kinesis,
    S3,
    SecretsManager,
    Sqs,
    Sts,
}

/// How a service is addressed, and how it spells the codes of its faults.
struct Row {
    service: Service,
    /// The label in metrics.
    name: &'static str,
    /// What stands before the operation in `X-Amz-Target`.
    target: Option<&'static str>,
    /// The service in the scope of a signature.
    scope: &'static str,
    /// The version in a form.
    version: Option<&'static str>,
    /// What stands before the code of a fault in JSON.
    namespace: &'static str,
    json: Protocol,
}

const ROWS: &[Row] = &[
    Row {
        service: Service::CloudWatch,
        name: "cloudwatch",
        target: Some("GraniteServiceVersion20100801"),
        scope: "monitoring",
        version: Some("2010-08-01"),
        namespace: "com.amazonaws.cloudwatch#",
        json: Protocol::Json10,
    },
    Row {
        service: Service::DynamoDb,
        name: "dynamodb",
        target: Some("DynamoDB_20120810"),
        scope: "dynamodb",
        version: None,
        namespace: "com.amazonaws.dynamodb.v20120810#",
        json: Protocol::Json10,
    },
    Row {
        service: Service::DynamoDbStreams,
        name: "dynamodbstreams",
        target: Some("DynamoDBStreams_20120810"),
        scope: "dynamodb",
        version: None,
        namespace: "com.amazonaws.dynamodb.v20120810#",
        json: Protocol::Json10,
    },
    Row {
        service: Service::Firehose,
        name: "firehose",
        target: Some("Firehose_20150804"),
        scope: "firehose",
        version: None,
        namespace: "",
        json: Protocol::Json11,
    },
    Row {
        service: Service::KeyspacesStreams,
        name: "keyspacesstreams",
        target: Some("KeyspacesStreams"),
        scope: "cassandra",
        version: None,
        namespace: "com.amazonaws.cassandra.streams#",
        json: Protocol::Json10,
    },
    Row {
        service: Service::Kinesis,
        name: "kinesis",
        target: Some("Kinesis_20131202"),
        scope: "kinesis",
        version: None,
        namespace: "",
        json: Protocol::Json11,
    },
    Row {
        service: Service::SecretsManager,
        name: "secretsmanager",
        target: Some("secretsmanager"),
        scope: "secretsmanager",
        version: None,
        namespace: "",
        json: Protocol::Json11,
    },
    Row {
        service: Service::Sqs,
        name: "sqs",
        target: Some("AmazonSQS"),
        scope: "sqs",
        version: Some("2012-11-05"),
        namespace: "com.amazonaws.sqs#",
        json: Protocol::Json10,
    },
    Row {
        service: Service::Sts,
        name: "sts",
        target: None,
        scope: "sts",
        version: Some("2011-06-15"),
        namespace: "",
        json: Protocol::Json11,
    },
    Row {
        service: Service::S3,
        name: "s3",
        target: None,
        scope: "s3",
        version: None,
        namespace: "",
        json: Protocol::Xml,
    },
];

impl Service {
    /// All services.
    pub(crate) fn all() -> impl Iterator<Item = Service> {
        ROWS.iter().map(|row| row.service)
    }

    fn row(self) -> &'static Row {
        // Every service has a row; a test checks it.
        ROWS.iter().find(|row| row.service == self).unwrap_or(&ROWS[0])
    }

    /// The label in metrics.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// The service in the scope of a signature.
    pub(crate) fn scope(self) -> &'static str {
        self.row().scope
    }

    /// What stands before the code of a fault in JSON.
    pub(crate) fn namespace(self) -> &'static str {
        self.row().namespace
    }

    /// Where a service keeps the classes of its structures, as far as its refusals name them to anybody.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Service::DynamoDb | Service::DynamoDbStreams => "com.amazonaws.dynamodb.v20120810.",
            Service::Kinesis => "com.amazonaws.kinesis.v20131202.",
            _ => "",
        }
    }

    /// The service that a form is for: by its version, or by the signature.
    fn of_form(version: Option<&str>, scope: Option<&str>) -> Option<Service> {
        let by_version = ROWS.iter().find(|row| version.is_some() && row.version == version);
        by_version
            .or_else(|| ROWS.iter().find(|row| row.version.is_some() && Some(row.scope) == scope))
            .map(|row| row.service)
    }
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// An operation that the head of the request names.
    Operation(Service, Protocol, String),
    /// A form, whose fields name the operation.
    Form,
    /// S3, which has no operations but methods and paths.
    Rest,
}

/// A route that leads nowhere: the fault, and how to spell it.
pub(crate) type Astray = (Service, Protocol, Fault);

/// Finds the way by the head of a request.
pub(crate) fn route(parts: &Parts) -> Result<Route, Astray> {
    if let Some(target) = parts.headers.get("x-amz-target") {
        let target = String::from_utf8_lossy(target.as_bytes());
        return by_target(&target, parts);
    }
    if let Some(route) = by_rpc_path(parts) {
        return route;
    }
    if let Some(astray) = without_target(parts) {
        return Err(astray);
    }
    let form = content_type(&parts.headers) == "application/x-www-form-urlencoded";
    // Some clients of S3 call every body a form.
    let signed_for_s3 = || {
        let query = parts.uri.query().unwrap_or("");
        is_address(query) || Scope::of(parts).is_some_and(|scope| scope.service == Service::S3.scope())
    };
    let queried = || parts.uri.query().is_some_and(|query| Form::parse(query).get("Action").is_some());
    if (form && parts.method == Method::POST && !signed_for_s3()) || queried() {
        return Ok(Route::Form);
    }
    Ok(Route::Rest)
}

/// The service and operation of a form.
pub(crate) fn form_operation(form: &Form, scope: Option<&str>) -> Result<(Service, String), Astray> {
    let service = Service::of_form(form.get("Version"), scope);
    form.check().map_err(|fault| (service.unwrap_or(Service::Sts), Protocol::Query, fault))?;
    match (service, form.get("Action")) {
        (Some(service), Some(action)) => Ok((service, action.to_owned())),
        (service, _) => {
            let message = "the form has no Action and Version of a service that is served here";
            let fault = Fault::client("MissingAction", message);
            Err((service.unwrap_or(Service::Sts), Protocol::Query, fault))
        }
    }
}

/// JSON that is posted to the root and names no operation. S3 has nothing there that takes JSON.
fn without_target(parts: &Parts) -> Option<Astray> {
    let json = matches!(
        content_type(&parts.headers),
        "application/json" | "application/x-amz-json-1.0" | "application/x-amz-json-1.1"
    );
    let at_root = parts.method == Method::POST && parts.uri.path() == "/" && parts.uri.query().is_none();
    if !json || !at_root || Scope::of(parts).is_some_and(|scope| scope.service == Service::S3.scope()) {
        return None;
    }
    let (service, protocol) = unnamed(parts);
    Some((service, protocol, Fault::unknown_operation("")))
}

/// Who answers a call that names no service: whoever it is signed for, or who speaks its language.
fn unnamed(parts: &Parts) -> (Service, Protocol) {
    let scope = Scope::of(parts);
    let signed =
        |row: &&Row| row.target.is_some() && scope.as_ref().is_some_and(|scope| scope.service == row.scope);
    match (ROWS.iter().find(signed), content_type(&parts.headers)) {
        (Some(row), _) => (row.service, row.json),
        (None, "application/json" | "application/x-amz-json-1.0") => (Service::DynamoDb, Protocol::Json10),
        (None, _) => (Service::Kinesis, Protocol::Json11),
    }
}

fn by_target(target: &str, parts: &Parts) -> Result<Route, Astray> {
    let (prefix, operation) = target.split_once('.').unwrap_or((target, ""));
    let row = ROWS.iter().find(|row| row.target == Some(prefix));
    let (service, json) = row.map_or_else(|| unnamed(parts), |row| (row.service, row.json));
    let is_cbor = content_type(&parts.headers) == "application/x-amz-cbor-1.1";
    let protocol = if is_cbor { Protocol::Cbor } else { json };
    match row {
        Some(_) => Ok(Route::Operation(service, protocol, operation.to_owned())),
        None => Err((service, protocol, Fault::unknown_operation(target))),
    }
}

fn by_rpc_path(parts: &Parts) -> Option<Result<Route, Astray>> {
    if parts.headers.get("smithy-protocol")? != "rpc-v2-cbor" {
        return None;
    }
    let rest = parts.uri.path().strip_prefix("/service/")?;
    let (name, operation) = rest.split_once("/operation/")?;
    let row = ROWS.iter().find(|row| row.target == Some(name));
    Some(match row {
        Some(row) => Ok(Route::Operation(row.service, Protocol::RpcCbor, operation.to_owned())),
        None => Err((Service::CloudWatch, Protocol::RpcCbor, Fault::unknown_operation(operation))),
    })
}

/// The content type without its parameters; empty if there is none.
fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn operation(service: Service, protocol: Protocol, name: &str) -> Result<Route, Astray> {
        Ok(Route::Operation(service, protocol, name.to_owned()))
    }

    #[test]
    fn every_service_has_one_row() {
        for row in ROWS {
            assert_eq!(row.service.row().name, row.name);
        }
        assert_eq!(ROWS.len(), 10);
    }

    #[test]
    fn the_target_names_the_service_and_the_content_type_the_protocol() {
        let target = ("x-amz-target", "Kinesis_20131202.PutRecord");
        let json = parts("POST", "/", &[target, ("content-type", "application/x-amz-json-1.1")]);
        assert_eq!(route(&json), operation(Service::Kinesis, Protocol::Json11, "PutRecord"));
        let cbor = parts("POST", "/", &[target, ("content-type", "application/x-amz-cbor-1.1")]);
        assert_eq!(route(&cbor), operation(Service::Kinesis, Protocol::Cbor, "PutRecord"));
        let sqs = parts("POST", "/", &[("x-amz-target", "AmazonSQS.SendMessage")]);
        assert_eq!(route(&sqs), operation(Service::Sqs, Protocol::Json10, "SendMessage"));
    }

    #[test]
    fn unknown_targets_are_refused() {
        for target in ["Kinesis_20131202", "", "Nothing.PutRecord", ".", "kinesis_20131202.PutRecord"] {
            let parts = parts("POST", "/", &[("x-amz-target", target)]);
            match route(&parts) {
                Err((_, _, fault)) => assert_eq!(fault.code, "UnknownOperationException"),
                Ok(Route::Operation(Service::Kinesis, _, operation)) => assert_eq!(operation, ""),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    #[test]
    fn json_without_a_target_belongs_to_whom_it_is_signed_for_or_whose_language_it_is() {
        let signed = |service: &str| {
            format!(
                "AWS4-HMAC-SHA256 Credential=AK/20261115/us-east-1/{service}/aws4_request, SignedHeaders=, Signature="
            )
        };
        let astray = |headers: &[(&str, &str)]| match route(&parts("POST", "/", headers)) {
            Err((service, protocol, fault)) => {
                assert_eq!(fault.code, "UnknownOperationException");
                Some((service, protocol))
            }
            Ok(_) => None,
        };
        let json = "application/x-amz-json-1.0";
        for (content_type, scope, who) in [
            (json, None, Some((Service::DynamoDb, Protocol::Json10))),
            ("application/json; charset=utf-8", None, Some((Service::DynamoDb, Protocol::Json10))),
            ("application/x-amz-json-1.1", None, Some((Service::Kinesis, Protocol::Json11))),
            (json, Some("sqs"), Some((Service::Sqs, Protocol::Json10))),
            ("application/x-amz-json-1.1", Some("dynamodb"), Some((Service::DynamoDb, Protocol::Json10))),
            (json, Some("s3"), None),
            ("application/xml", Some("dynamodb"), None),
            ("multipart/form-data", None, None),
        ] {
            let mut headers = vec![("content-type", content_type)];
            let authorization = scope.map(signed);
            headers.extend(authorization.as_deref().map(|text| ("authorization", text)));
            assert_eq!(astray(&headers), who, "{content_type} {scope:?}");
            headers.push(("x-amz-target", "Nothing.Here"));
            if who.is_some() {
                assert_eq!(astray(&headers), who, "{content_type} {scope:?}");
            }
        }
        for (method, uri) in [("PUT", "/"), ("POST", "/b"), ("POST", "/b/k?uploads"), ("POST", "/?delete")] {
            let parts = parts(method, uri, &[("content-type", json)]);
            assert_eq!(route(&parts), Ok(Route::Rest), "{method} {uri}");
        }
    }

    #[test]
    fn paths_forms_and_the_rest() {
        let path = "/service/GraniteServiceVersion20100801/operation/PutMetricData";
        let rpc = parts("POST", path, &[("smithy-protocol", "rpc-v2-cbor")]);
        assert_eq!(route(&rpc), operation(Service::CloudWatch, Protocol::RpcCbor, "PutMetricData"));
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(route(&parts("POST", "/", &[("content-type", form)])), Ok(Route::Form));
        assert_eq!(route(&parts("GET", "/?Action=GetCallerIdentity", &[])), Ok(Route::Form));
        for (method, uri) in
            [("GET", "/"), ("PUT", "/bucket/key"), ("GET", "/b/Action"), ("POST", "/b?delete")]
        {
            assert_eq!(route(&parts(method, uri, &[])), Ok(Route::Rest), "{method} {uri}");
        }
        let put = parts("PUT", "/bucket/key", &[("content-type", form)]);
        assert_eq!(route(&put), Ok(Route::Rest), "an object may be a form");
        let signed =
            "AWS4-HMAC-SHA256 Credential=AK/20261115/us-east-1/s3/aws4_request, SignedHeaders=, Signature=";
        let delete = parts("POST", "/b?delete", &[("content-type", form), ("authorization", signed)]);
        assert_eq!(route(&delete), Ok(Route::Rest), "the signature tells that it is no form");
        let older = "/b/k?uploadId=x&AWSAccessKeyId=AK&Signature=s&Expires=1";
        let complete = parts("POST", older, &[("content-type", form)]);
        assert_eq!(route(&complete), Ok(Route::Rest), "nor is an address that is signed in the older way");
    }

    #[test]
    fn a_form_names_its_service_by_version_or_by_signature() {
        let form = Form::parse("Action=ListQueues&Version=2012-11-05");
        assert_eq!(form_operation(&form, None), Ok((Service::Sqs, "ListQueues".into())));
        let form = Form::parse("Action=ListQueues");
        assert_eq!(form_operation(&form, Some("sqs")), Ok((Service::Sqs, "ListQueues".into())));
        assert!(form_operation(&form, None).is_err());
        assert!(form_operation(&form, Some("s3")).is_err());
        assert!(form_operation(&Form::parse("Version=2012-11-05"), None).is_err());
    }
}
