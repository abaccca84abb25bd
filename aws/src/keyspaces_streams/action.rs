//! Every call that the changes of Keyspaces's tables need.

use crate::action::{Action, Resource, Service, actions};

const fn keyspaces(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::Keyspaces, name, resource)
}

actions! {
    LIST_STREAMS = keyspaces("ListStreams", Resource::Account).control(5).repeatable();
    GET_STREAM = keyspaces("GetStream", Resource::TableStream).control(10).repeatable();
    GET_SHARD_ITERATOR = keyspaces("GetShardIterator", Resource::TableStream).repeatable();
    GET_RECORDS = keyspaces("GetRecords", Resource::TableStream).repeatable();
}
