//! SQS: a file for each operation, and what they share. The same typed requests and answers are spelled in JSON, and as
//! forms and XML.

mod errors;
mod state;

mod queue;

mod attributes;
mod redrive;
mod settings;

mod batch;
mod digest;
mod message_attributes;
mod outgoing;
mod text;

mod create_queue;
mod delete_queue;
mod get_queue_attributes;
mod get_queue_url;
mod list_queues;
mod set_queue_attributes;

mod receive_message;
mod send_message;
mod send_message_batch;

mod change_message_visibility;
mod change_message_visibility_batch;
mod delete_message;
mod delete_message_batch;
mod purge_queue;

mod task_handle;

mod cancel_message_move_task;
mod list_dead_letter_source_queues;
mod list_message_move_tasks;
mod start_message_move_task;

mod list_queue_tags;
mod tag_queue;
mod untag_queue;

mod add_permission;
mod remove_permission;

use http::{Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::fault::Fault;
use crate::protocol::{Protocol, Spelling, document, members, parse_form};
use crate::receive::Body;
use crate::wire::Call;

pub(crate) use create_queue::finish_making;
pub(crate) use state::State;

const NAMESPACE: &str = "http://queue.amazonaws.com/doc/2012-11-05/";

/// The table of a service: which operations it has, and who does them.
macro_rules! operations {
    ($($name:literal => $module:ident,)*) => {
        /// The names of the operations.
        pub(crate) const OPERATIONS: &[&str] = &[$($name),*];

        async fn answer(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
            match call.operation.as_str() {
                $($name => {
                    let request = parse(call)?;
                    // The futures of the operations differ much in size; only the one that runs is made.
                    let answer = Box::pin($module::handle(context, request)).await?;
                    render(context, call, &answer)
                })*
                other => Err(unknown_operation(other)),
            }
        }
    };
}

operations! {
    "AddPermission" => add_permission,
    "CancelMessageMoveTask" => cancel_message_move_task,
    "ChangeMessageVisibility" => change_message_visibility,
    "ChangeMessageVisibilityBatch" => change_message_visibility_batch,
    "CreateQueue" => create_queue,
    "DeleteMessage" => delete_message,
    "DeleteMessageBatch" => delete_message_batch,
    "DeleteQueue" => delete_queue,
    "GetQueueAttributes" => get_queue_attributes,
    "GetQueueUrl" => get_queue_url,
    "ListDeadLetterSourceQueues" => list_dead_letter_source_queues,
    "ListMessageMoveTasks" => list_message_move_tasks,
    "ListQueueTags" => list_queue_tags,
    "ListQueues" => list_queues,
    "PurgeQueue" => purge_queue,
    "ReceiveMessage" => receive_message,
    "RemovePermission" => remove_permission,
    "SendMessage" => send_message,
    "SendMessageBatch" => send_message_batch,
    "SetQueueAttributes" => set_queue_attributes,
    "StartMessageMoveTask" => start_message_move_task,
    "TagQueue" => tag_queue,
    "UntagQueue" => untag_queue,
}

/// Answers a call.
pub(crate) async fn call(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
    let answered = match is_astray(context, call) {
        true => Err(unknown_operation(&call.operation)),
        false => answer(context, call).await,
    };
    answered.map_err(|fault| match call.protocol {
        Protocol::Query if fault == errors::no_queue() => {
            let message = "The specified queue does not exist for this wsdl version.".to_owned();
            Fault { message, ..fault }
        }
        _ => fault,
    })
}

/// Operations about all queues are none of the address of one, which old clients call.
fn is_astray(context: &Context, call: &Call) -> bool {
    let at_queue = context.path.trim_end_matches('/').matches('/').count() > 1;
    call.protocol == Protocol::Query && at_queue && ["CreateQueue", "ListQueues"].contains(&&*call.operation)
}

/// Operations whose answers have no result in XML, not even an empty one: those that answer [`Nothing`].
const WITHOUT_RESULT: [&str; 9] = [
    "AddPermission",
    "ChangeMessageVisibility",
    "DeleteMessage",
    "DeleteQueue",
    "PurgeQueue",
    "RemovePermission",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
];

/// The answer of an operation that has nothing to say.
#[derive(Debug, Serialize)]
struct Nothing {}

fn parse<T: DeserializeOwned>(call: &Call) -> Result<T, Fault> {
    match call.protocol {
        Protocol::Query => parse_form(&call.form),
        protocol => protocol.parse(&call.body),
    }
}

fn render<T: Serialize>(context: &Context, call: &Call, answer: &T) -> Result<Response<Body>, Fault> {
    let body = match call.protocol {
        Protocol::Query => {
            let result = members(answer, &|member| spelling(&call.operation, member))?;
            let result = Some(&*result).filter(|_| !WITHOUT_RESULT.contains(&&*call.operation));
            document(&call.operation, NAMESPACE, result, &context.request_id).into_bytes()
        }
        protocol => protocol.encode(answer)?,
    };
    Ok(call.protocol.response(StatusCode::OK, body))
}

/// How lists and maps are spelled in XML.
fn spelling(operation: &str, member: &str) -> Spelling {
    match (member, operation) {
        ("Attributes", _) => Spelling::Map("Attribute", "Name", "Value"),
        ("MessageAttributes", _) => Spelling::Map("MessageAttribute", "Name", "Value"),
        ("Tags", _) => Spelling::Map("Tag", "Key", "Value"),
        ("Messages", _) => Spelling::List("Message"),
        ("QueueUrls" | "queueUrls", _) => Spelling::List("QueueUrl"),
        ("Results", _) => Spelling::List("ListMessageMoveTasksResultEntry"),
        ("Failed", _) => Spelling::List("BatchResultErrorEntry"),
        ("Successful", "SendMessageBatch") => Spelling::List("SendMessageBatchResultEntry"),
        ("Successful", "DeleteMessageBatch") => Spelling::List("DeleteMessageBatchResultEntry"),
        ("Successful", _) => Spelling::List("ChangeMessageVisibilityBatchResultEntry"),
        _ => Spelling::Plain,
    }
}

fn unknown_operation(operation: &str) -> Fault {
    let message = format!("The action {operation} is not valid for this endpoint.");
    Fault { query_code: Some("InvalidAction"), message, ..Fault::unknown_operation(operation) }
}
