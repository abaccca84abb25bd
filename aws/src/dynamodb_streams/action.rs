//! Every call that the changes of tables need, with the quotas of an account.

use crate::action::{Action, Resource, Service, Use, actions};

const fn streams(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::DynamodbStreams, name, need, resource)
}

actions! {
    LIST_STREAMS = streams("ListStreams", Use::Read, Resource::Account).control(5).repeatable();
    DESCRIBE_STREAM = streams("DescribeStream", Use::Read, Resource::TableStream).control(10).repeatable();
    GET_SHARD_ITERATOR = streams("GetShardIterator", Use::Read, Resource::TableStream).repeatable();
    GET_RECORDS = streams("GetRecords", Use::Read, Resource::TableStream).repeatable();
}
