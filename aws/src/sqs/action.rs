//! Every call that queues make.
//!
//! SQS publishes no quotas for making, describing and changing queues; it throttles those who overdo it. The numbers are
//! ours, and keep a process below what one person or one program needs.

use crate::action::{Action, Resource, Service, Use, actions};

const fn sqs(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::Sqs, name, need, resource)
}

actions! {
    // Made again with the same attributes it gives the same queue.
    CREATE_QUEUE = sqs("CreateQueue", Use::Manage, Resource::Queue).control(10).repeatable();
    DELETE_QUEUE = sqs("DeleteQueue", Use::Manage, Resource::Queue).control(10);
    LIST_QUEUES = sqs("ListQueues", Use::Look, Resource::Account).control(20).repeatable();
    GET_QUEUE_URL = sqs("GetQueueUrl", Use::Look, Resource::Queue).control(100).repeatable();
    GET_QUEUE_ATTRIBUTES = sqs("GetQueueAttributes", Use::Look, Resource::Queue).control(100).repeatable();
    SET_QUEUE_ATTRIBUTES = sqs("SetQueueAttributes", Use::Manage, Resource::Queue).control(10).repeatable();
    PURGE_QUEUE = sqs("PurgeQueue", Use::Manage, Resource::Queue).control(10);
    // Calls for several messages are allowed by the permission for one. A queue that keeps an order recognises what is
    // sent twice, and there the call may be repeated: see `send`.
    SEND_MESSAGE_BATCH = sqs("SendMessageBatch", Use::Write, Resource::Queue).allowed_by("SendMessage");
    // What a lost answer held comes back when its visibility is over, as if its receiver had gone away.
    RECEIVE_MESSAGE = sqs("ReceiveMessage", Use::Read, Resource::Queue).waiting().repeatable();
    DELETE_MESSAGE_BATCH = sqs("DeleteMessageBatch", Use::Read, Resource::Queue).allowed_by("DeleteMessage").repeatable();
    CHANGE_MESSAGE_VISIBILITY_BATCH =
        sqs("ChangeMessageVisibilityBatch", Use::Read, Resource::Queue).allowed_by("ChangeMessageVisibility").repeatable();
    // The service moves messages in the name of who asked for it.
    START_MESSAGE_MOVE_TASK = sqs("StartMessageMoveTask", Use::Manage, Resource::Queue)
        .needing_also(&["ReceiveMessage", "DeleteMessage", "SendMessage"])
        .control(5);
    LIST_MESSAGE_MOVE_TASKS = sqs("ListMessageMoveTasks", Use::Manage, Resource::Queue).control(20).repeatable();
    CANCEL_MESSAGE_MOVE_TASK = sqs("CancelMessageMoveTask", Use::Manage, Resource::Queue).control(5);
}
