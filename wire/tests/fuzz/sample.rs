//! A request, and how the services spell one.

use std::convert::Infallible;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minicbor::Encoder;
use minicbor::encode::Error;
use serde_json::Value;

/// A request, and what it is for.
#[derive(Clone)]
pub struct Sample {
    pub service: &'static str,
    pub operation: &'static str,
    pub method: String,
    pub uri: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// What the body says, as long as it is whole, where it says so in CBOR.
    pub cbor: Option<Value>,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from {} {}:\n{} {}", self.service, self.operation, self.method, self.uri)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", value.escape_ascii())?;
        }
        write!(f, "\n{}", self.body.escape_ascii())
    }
}

/// A sample of a service that speaks JSON.
pub fn sample(service: &'static str, operation: &'static str, body: &Value) -> Sample {
    let (target, version) = match service {
        "kinesis" => ("Kinesis_20131202", "1.1"),
        "sqs" => ("AmazonSQS", "1.0"),
        "dynamodb" => ("DynamoDB_20120810", "1.0"),
        "dynamodbstreams" => ("DynamoDBStreams_20120810", "1.0"),
        "keyspacesstreams" => ("KeyspacesStreams", "1.0"),
        "firehose" => ("Firehose_20150804", "1.1"),
        "secretsmanager" => ("secretsmanager", "1.1"),
        other => panic!("{other} has no target"),
    };
    let header = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    Sample {
        service,
        operation,
        method: "POST".to_owned(),
        uri: "/".to_owned(),
        headers: vec![
            header("host", "localhost:4566".to_owned()),
            header("x-amz-target", format!("{target}.{operation}")),
            header("content-type", format!("application/x-amz-json-{version}")),
            header(
                "authorization",
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/us-east-1/{service}/aws4_request, \
                     SignedHeaders=host;x-amz-date;x-amz-target, Signature={}",
                    "0".repeat(64)
                ),
            ),
            header("x-amz-date", "20261115T181500Z".to_owned()),
        ],
        body: body.to_string().into_bytes(),
        cbor: None,
    }
}

/// The same in CBOR.
pub fn in_cbor(sample: &Sample) -> Sample {
    let value: Value = serde_json::from_slice(&sample.body).expect("JSON");
    let mut sample = sample.clone();
    sample.headers[2].1 = b"application/x-amz-cbor-1.1".to_vec();
    Sample { body: cbor(&value), cbor: Some(value), ..sample }
}

/// A value in CBOR. What is bytes stands in JSON as base64, always under this name.
pub fn cbor(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Only a writer that can fail makes this fail, and a vector cannot.
    let _ = put(&mut Encoder::new(&mut bytes), "", value);
    bytes
}

fn put(encoder: &mut Encoder<&mut Vec<u8>>, name: &str, value: &Value) -> Result<(), Error<Infallible>> {
    match value {
        Value::Null => drop(encoder.null()?),
        Value::Bool(value) => drop(encoder.bool(*value)?),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => drop(encoder.u64(number)?),
            (_, Some(number)) => drop(encoder.i64(number)?),
            _ => drop(encoder.f64(number.as_f64().unwrap_or_default())?),
        },
        Value::String(text) => match BASE64_STANDARD.decode(text) {
            Ok(bytes) if name == "Data" => drop(encoder.bytes(&bytes)?),
            _ => drop(encoder.str(text)?),
        },
        Value::Array(entries) => {
            encoder.array(entries.len() as u64)?;
            entries.iter().try_for_each(|entry| put(encoder, "", entry))?;
        }
        Value::Object(members) => {
            encoder.map(members.len() as u64)?;
            for (name, member) in members {
                encoder.str(name)?;
                put(encoder, name, member)?;
            }
        }
    }
    Ok(())
}

/// A form, as older clients send it.
pub fn form(service: &'static str, operation: &'static str, version: &str, fields: &str) -> Sample {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Sample {
        service,
        operation,
        method: "POST".to_owned(),
        uri: "/".to_owned(),
        headers: vec![
            header("host", "localhost:4566"),
            header("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
        ],
        body: format!("Action={operation}&Version={version}{fields}").into_bytes(),
        cbor: None,
    }
}

/// Samples of one service.
pub fn of(service: &'static str, calls: Vec<(&'static str, Value)>) -> Vec<Sample> {
    calls.into_iter().map(|(operation, body)| sample(service, operation, &body)).collect()
}
