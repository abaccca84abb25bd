//! Every call that streams make, with the quotas of an account.

use crate::action::{Action, Resource, Service, Use, actions};

const fn kinesis(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::Kinesis, name, need, resource)
}

actions! {
    CREATE_STREAM = kinesis("CreateStream", Use::Manage, Resource::Stream).control(5);
    DELETE_STREAM = kinesis("DeleteStream", Use::Manage, Resource::Stream).control(5);
    LIST_STREAMS = kinesis("ListStreams", Use::Look, Resource::Account).control(5).repeatable();
    DESCRIBE_STREAM_SUMMARY = kinesis("DescribeStreamSummary", Use::Look, Resource::Stream).control(20).repeatable();
    // The quota is for one stream; nobody lists a thousand times a second.
    LIST_SHARDS = kinesis("ListShards", Use::Look, Resource::Stream).control(1_000).repeatable();
    INCREASE_RETENTION = kinesis("IncreaseStreamRetentionPeriod", Use::Manage, Resource::Stream).control(5);
    DECREASE_RETENTION = kinesis("DecreaseStreamRetentionPeriod", Use::Manage, Resource::Stream).control(5);
    SPLIT_SHARD = kinesis("SplitShard", Use::Manage, Resource::Stream).control(5);
    MERGE_SHARDS = kinesis("MergeShards", Use::Manage, Resource::Stream).control(5);
    PUT_RECORDS = kinesis("PutRecords", Use::Write, Resource::Stream);
    GET_SHARD_ITERATOR = kinesis("GetShardIterator", Use::Read, Resource::Stream).repeatable();
    GET_RECORDS = kinesis("GetRecords", Use::Read, Resource::Stream).repeatable();
    REGISTER_STREAM_CONSUMER = kinesis("RegisterStreamConsumer", Use::Read, Resource::Stream).control(5);
    DESCRIBE_STREAM_CONSUMER = kinesis("DescribeStreamConsumer", Use::Read, Resource::Consumer).control(20).repeatable();
    SUBSCRIBE_TO_SHARD = kinesis("SubscribeToShard", Use::Read, Resource::Consumer).repeatable();
}
