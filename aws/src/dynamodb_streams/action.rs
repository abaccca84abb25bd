//! Every call that the changes of tables need, with the quotas of an account.

use crate::action::{Action, Resource, Service, actions};

const fn streams(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::DynamodbStreams, name, resource)
}

actions! {
    LIST_STREAMS = streams("ListStreams", Resource::Account).control(5).repeatable();
    DESCRIBE_STREAM = streams("DescribeStream", Resource::TableStream).control(10).repeatable();
    GET_SHARD_ITERATOR = streams("GetShardIterator", Resource::TableStream).repeatable();
    GET_RECORDS = streams("GetRecords", Resource::TableStream).repeatable();
}
