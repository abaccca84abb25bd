//! The handle of a task that moves messages: the task and the queue that it takes them from, as SQS spells them.

use anabranch_model::QueueName;
use anabranch_model::queue::MoveId;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::errors::invalid;
use super::queue::{arn, of_arn};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handle {
    task_id: String,
    source_arn: String,
}

/// The handle of a task.
pub(super) fn spell(context: &Context, from: &QueueName, task: &MoveId) -> Result<String, Fault> {
    let handle = Handle { task_id: task.to_string(), source_arn: arn(context, from) };
    let text =
        serde_json::to_vec(&handle).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    Ok(BASE64_STANDARD.encode(text))
}

/// The queue and the task of a handle.
pub(super) fn parse(handle: &str) -> Result<(QueueName, MoveId), Fault> {
    let text = BASE64_STANDARD.decode(handle).ok();
    let handle: Option<Handle> = text.and_then(|text| serde_json::from_slice(&text).ok());
    let parts =
        handle.and_then(|handle| Some((of_arn(&handle.source_arn)?, MoveId::new(&handle.task_id).ok()?)));
    parts.ok_or_else(|| invalid("Value for parameter TaskHandle is invalid."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_no_handles() {
        let spelled = |text: &str| BASE64_STANDARD.encode(text);
        let good = spelled(r#"{"taskId":"t","sourceArn":"arn:aws:sqs:us-east-1:000000000000:dead"}"#);
        let (queue, task) = parse(&good).unwrap();
        assert_eq!((queue.as_str(), task.as_str()), ("dead", "t"));
        for text in [
            "foobared".to_owned(),
            String::new(),
            spelled("{}"),
            spelled(r#"{"taskId":"","sourceArn":"arn:aws:sqs:us-east-1:000000000000:dead"}"#),
            spelled(r#"{"taskId":"t","sourceArn":"dead"}"#),
        ] {
            assert_eq!(parse(&text).unwrap_err().query_code, Some("InvalidParameterValue"), "{text}");
        }
    }
}
