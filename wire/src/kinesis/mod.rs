//! Kinesis Data Streams: a file for each operation, and what they share.

mod errors;
mod state;

mod stream;

mod iterator;
mod page_token;
mod pieces;
mod position;
mod records;
mod settings;
mod shard_numbers;
mod shards;

mod consumer;
mod events;
mod resource;
mod subscriptions;
mod tags;

mod create_stream;
mod delete_stream;
mod describe_stream;
mod describe_stream_summary;
mod list_streams;

mod put_record;
mod put_records;

mod get_records;
mod get_shard_iterator;
mod list_shards;

mod merge_shards;
mod split_shard;
mod update_shard_count;

mod decrease_stream_retention_period;
mod increase_stream_retention_period;

mod deregister_stream_consumer;
mod describe_stream_consumer;
mod list_stream_consumers;
mod register_stream_consumer;
mod subscribe_to_shard;

mod add_tags_to_stream;
mod list_tags_for_resource;
mod list_tags_for_stream;
mod remove_tags_from_stream;
mod tag_resource;
mod untag_resource;

mod delete_resource_policy;
mod get_resource_policy;
mod put_resource_policy;

mod disable_enhanced_monitoring;
mod enable_enhanced_monitoring;
mod start_stream_encryption;
mod stop_stream_encryption;
mod update_max_record_size;
mod update_stream_mode;
mod update_stream_warm_throughput;

mod describe_account_settings;
mod describe_limits;
mod update_account_settings;

use crate::operations::operations;

pub(crate) use create_stream::finish_making;
pub(crate) use state::State;

operations! {
    "AddTagsToStream" => add_tags_to_stream,
    "CreateStream" => create_stream,
    "DecreaseStreamRetentionPeriod" => decrease_stream_retention_period,
    "DeleteResourcePolicy" => delete_resource_policy,
    "DeleteStream" => delete_stream,
    "DeregisterStreamConsumer" => deregister_stream_consumer,
    "DescribeAccountSettings" => describe_account_settings,
    "DescribeLimits" => describe_limits,
    "DescribeStream" => describe_stream,
    "DescribeStreamConsumer" => describe_stream_consumer,
    "DescribeStreamSummary" => describe_stream_summary,
    "DisableEnhancedMonitoring" => disable_enhanced_monitoring,
    "EnableEnhancedMonitoring" => enable_enhanced_monitoring,
    "GetRecords" => get_records,
    "GetResourcePolicy" => get_resource_policy,
    "GetShardIterator" => get_shard_iterator,
    "IncreaseStreamRetentionPeriod" => increase_stream_retention_period,
    "ListShards" => list_shards,
    "ListStreamConsumers" => list_stream_consumers,
    "ListStreams" => list_streams,
    "ListTagsForResource" => list_tags_for_resource,
    "ListTagsForStream" => list_tags_for_stream,
    "MergeShards" => merge_shards,
    "PutRecord" => put_record,
    "PutRecords" => put_records,
    "PutResourcePolicy" => put_resource_policy,
    "RegisterStreamConsumer" => register_stream_consumer,
    "RemoveTagsFromStream" => remove_tags_from_stream,
    "SplitShard" => split_shard,
    "StartStreamEncryption" => start_stream_encryption,
    "StopStreamEncryption" => stop_stream_encryption,
    "SubscribeToShard" => subscribe_to_shard,
    "TagResource" => tag_resource,
    "UntagResource" => untag_resource,
    "UpdateAccountSettings" => update_account_settings,
    "UpdateMaxRecordSize" => update_max_record_size,
    "UpdateShardCount" => update_shard_count,
    "UpdateStreamMode" => update_stream_mode,
    "UpdateStreamWarmThroughput" => update_stream_warm_throughput,
}
