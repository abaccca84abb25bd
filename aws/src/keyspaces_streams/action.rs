//! Every call that the changes of Keyspaces's tables need.

use crate::action::{Action, Resource, Service, Use, actions};

const fn keyspaces(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::Keyspaces, name, need, resource)
}

actions! {
    LIST_STREAMS = keyspaces("ListStreams", Use::Read, Resource::Account).control(5).repeatable();
    GET_STREAM = keyspaces("GetStream", Use::Read, Resource::TableStream).control(10).repeatable();
    GET_SHARD_ITERATOR = keyspaces("GetShardIterator", Use::Read, Resource::TableStream).repeatable();
    GET_RECORDS = keyspaces("GetRecords", Use::Read, Resource::TableStream).repeatable();
}
