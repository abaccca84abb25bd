//! Every call that queues make.
//!
//! SQS publishes no quotas for making, describing and changing queues; it throttles those who overdo it. The numbers are
//! ours, and keep a process below what one person or one program needs.

use crate::action::{Action, Resource, Service, actions};

const fn sqs(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::Sqs, name, resource)
}

actions! {
    // Made again with the same attributes it gives the same queue.
    CREATE_QUEUE = sqs("CreateQueue", Resource::Queue).control(10).repeatable();
    DELETE_QUEUE = sqs("DeleteQueue", Resource::Queue).control(10);
    LIST_QUEUES = sqs("ListQueues", Resource::Account).control(20).repeatable();
    GET_QUEUE_URL = sqs("GetQueueUrl", Resource::Queue).control(100).repeatable();
    GET_QUEUE_ATTRIBUTES = sqs("GetQueueAttributes", Resource::Queue).control(100).repeatable();
    SET_QUEUE_ATTRIBUTES = sqs("SetQueueAttributes", Resource::Queue).control(10).repeatable();
    PURGE_QUEUE = sqs("PurgeQueue", Resource::Queue).control(10);
    // Calls for several messages are allowed by the permission for one. A queue that keeps an order recognises what is
    // sent twice, and there the call may be repeated: see `send`.
    SEND_MESSAGE_BATCH = sqs("SendMessageBatch", Resource::Queue).allowed_by("SendMessage");
    // What a lost answer held comes back when its visibility is over, as if its receiver had gone away.
    RECEIVE_MESSAGE = sqs("ReceiveMessage", Resource::Queue).waiting().repeatable();
    DELETE_MESSAGE_BATCH = sqs("DeleteMessageBatch", Resource::Queue).allowed_by("DeleteMessage").repeatable();
    CHANGE_MESSAGE_VISIBILITY_BATCH =
        sqs("ChangeMessageVisibilityBatch", Resource::Queue).allowed_by("ChangeMessageVisibility").repeatable();
    START_MESSAGE_MOVE_TASK = sqs("StartMessageMoveTask", Resource::Queue).control(5);
    LIST_MESSAGE_MOVE_TASKS = sqs("ListMessageMoveTasks", Resource::Queue).control(20).repeatable();
    CANCEL_MESSAGE_MOVE_TASK = sqs("CancelMessageMoveTask", Resource::Queue).control(5);
}
