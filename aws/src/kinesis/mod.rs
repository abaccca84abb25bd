//! Streams on Kinesis.

pub(crate) mod action;
mod describe;

use std::time::Duration;

use aws_sdk_kinesis::Client;

use crate::call::{Caller, Deadline};
use crate::config::Aws;

/// How long a call that moves records may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);

/// Streams on Kinesis. Cheap to clone: the clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Streams {
    client: Client,
    caller: Caller,
}

impl Streams {
    /// The streams of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Self {
        Streams { client: Client::new(&aws.config), caller: aws.caller.clone() }
    }

    fn soon(&self) -> Deadline {
        self.caller.deadline(PATIENCE)
    }
}

/// What the answer of Kinesis cannot be.
fn strange(what: &str) -> anabranch_model::Error {
    anabranch_model::Error::Misconfigured(format!(
        "Kinesis answers with {what}: check whether the endpoint (AWS_ENDPOINT_URL) is Kinesis"
    ))
}
