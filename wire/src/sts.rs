//! STS: the one call that clients make to see whether their credentials work.

use http::{Response, StatusCode};

use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::protocol::document;
use crate::receive::Body;
use crate::wire::Call;

const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// The names of the operations.
pub(crate) const OPERATIONS: &[&str] = &["GetCallerIdentity"];

/// Answers a call.
pub(crate) fn call(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
    match call.operation.as_str() {
        "GetCallerIdentity" => {
            let result = format!(
                "<Arn>arn:aws:iam::{ACCOUNT}:root</Arn><UserId>{ACCOUNT}</UserId><Account>{ACCOUNT}</Account>"
            );
            let text = document(&call.operation, NAMESPACE, &result, &context.request_id);
            Ok(call.protocol.response(StatusCode::OK, text.into_bytes()))
        }
        other => Err(Fault::client("InvalidAction", format!("Could not find operation {other:?}"))),
    }
}
