//! Which queue a call means: by the address that it was told, by the path that it came to, by ARN or by name.

use anabranch_model::QueueName;

use super::errors::{invalid_value, missing, no_queue};
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;

/// The address of a queue, under the name by which the caller knows this server.
pub(super) fn url(context: &Context, queue: &QueueName) -> String {
    format!("{}/{ACCOUNT}/{queue}", context.origin)
}

/// The ARN of a queue.
pub(super) fn arn(context: &Context, queue: &QueueName) -> String {
    context.arn("sqs", queue.as_str())
}

/// The queue that a call means. Old clients call the address of the queue and do not repeat it.
pub(super) fn resolve(context: &Context, url: Option<&str>) -> Result<QueueName, Fault> {
    match url.filter(|url| !url.is_empty()) {
        Some(url) => named(url).ok_or_else(no_queue),
        None => of_path(&context.path).ok_or_else(|| missing("QueueUrl")),
    }
}

/// The queue of an address, an ARN or a name.
fn named(text: &str) -> Option<QueueName> {
    let name = match text.split_once("://") {
        Some((_, rest)) => return of_path(rest.split_once('/')?.1),
        None if text.starts_with("arn:") => return of_arn(text),
        None => text.trim_end_matches('/').rsplit('/').next()?,
    };
    QueueName::new(name).ok()
}

/// The queue at the end of a path.
fn of_path(path: &str) -> Option<QueueName> {
    let path = path.split(['?', '#']).next()?.trim_end_matches('/');
    QueueName::new(path.rsplit('/').next()?).ok()
}

/// The queue of an ARN: `arn:aws:sqs:us-east-1:000000000000:orders`.
pub(super) fn of_arn(arn: &str) -> Option<QueueName> {
    let mut parts = arn.split(':');
    let (scheme, _, service) = (parts.next()?, parts.next()?, parts.next()?);
    let name = parts.nth(2)?;
    let whole = scheme == "arn" && service == "sqs" && parts.next().is_none();
    if whole { QueueName::new(name).ok() } else { None }
}

/// The queue of an ARN that is the value of a parameter.
pub(super) fn of_parameter(parameter: &str, arn: &str) -> Result<QueueName, Fault> {
    of_arn(arn).ok_or_else(|| invalid_value(parameter, arn, "Please use an ARN of a queue."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_found_by_whatever_clients_send() {
        for text in [
            "http://127.0.0.1:4566/000000000000/orders.fifo",
            "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo",
            "http://localhost:4566/queue/us-east-1/000000000000/orders.fifo/",
            "http://localhost/000000000000/orders.fifo?Action=SendMessage",
            "http://localhost/orders.fifo",
            "/000000000000/orders.fifo",
            "000000000000/orders.fifo",
            "orders.fifo",
            "arn:aws:sqs:eu-west-1:000000000000:orders.fifo",
        ] {
            assert_eq!(named(text).expect(text).as_str(), "orders.fifo");
        }
    }

    #[test]
    fn other_texts_name_no_queue() {
        for text in [
            "",
            "/",
            "http://localhost:4566",
            "http://localhost:4566/",
            "http://localhost/0/a b",
            "http://localhost/0/..",
            "arn:aws:sns:us-east-1:000000000000:orders",
            "arn:aws:sqs:us-east-1:000000000000",
            "arn:aws:sqs:us-east-1:000000000000:orders:more",
            "arn:aws:sqs:us-east-1:000000000000:",
            &"x".repeat(81),
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
