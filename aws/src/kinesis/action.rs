//! Every call that streams make, with the quotas of an account.

use crate::action::{Action, Resource, Service, actions};

const fn kinesis(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::Kinesis, name, resource)
}

actions! {
    CREATE_STREAM = kinesis("CreateStream", Resource::Stream).control(5);
    DELETE_STREAM = kinesis("DeleteStream", Resource::Stream).control(5);
    LIST_STREAMS = kinesis("ListStreams", Resource::Account).control(5).repeatable();
    DESCRIBE_STREAM_SUMMARY = kinesis("DescribeStreamSummary", Resource::Stream).control(20).repeatable();
    // The quota is for one stream; nobody lists a thousand times a second.
    LIST_SHARDS = kinesis("ListShards", Resource::Stream).control(1_000).repeatable();
    INCREASE_RETENTION = kinesis("IncreaseStreamRetentionPeriod", Resource::Stream).control(5);
    DECREASE_RETENTION = kinesis("DecreaseStreamRetentionPeriod", Resource::Stream).control(5);
    SPLIT_SHARD = kinesis("SplitShard", Resource::Stream).control(5);
    MERGE_SHARDS = kinesis("MergeShards", Resource::Stream).control(5);
    PUT_RECORDS = kinesis("PutRecords", Resource::Stream);
    GET_SHARD_ITERATOR = kinesis("GetShardIterator", Resource::Stream).repeatable();
    GET_RECORDS = kinesis("GetRecords", Resource::Stream).repeatable();
    REGISTER_STREAM_CONSUMER = kinesis("RegisterStreamConsumer", Resource::Stream).control(5);
    DESCRIBE_STREAM_CONSUMER = kinesis("DescribeStreamConsumer", Resource::Consumer).control(20).repeatable();
    SUBSCRIBE_TO_SHARD = kinesis("SubscribeToShard", Resource::Consumer).repeatable();
}
