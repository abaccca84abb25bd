//! Requests to streams of records and of changes.

use serde_json::json;

use crate::made::Made;
use crate::sample::{Sample, of};

pub fn kinesis(made: &Made) -> Vec<Sample> {
    let (arn, consumer) = (&made.stream_arn, &made.consumer_arn);
    let policy = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    of(
        "kinesis",
        vec![
            ("AddTagsToStream", json!({"StreamName": "s", "Tags": {"a": "b"}})),
            ("CreateStream", json!({"StreamName": "other", "ShardCount": 1, "Tags": {"a": "b"}})),
            ("DecreaseStreamRetentionPeriod", json!({"StreamName": "s", "RetentionPeriodHours": 24})),
            ("DeleteResourcePolicy", json!({"ResourceARN": arn})),
            ("DeleteStream", json!({"StreamName": "other", "EnforceConsumerDeletion": true})),
            ("DeregisterStreamConsumer", json!({"StreamARN": arn, "ConsumerName": "d"})),
            ("DescribeAccountSettings", json!({})),
            ("DescribeLimits", json!({})),
            ("DescribeStream", json!({"StreamName": "s", "Limit": 2})),
            ("DescribeStreamConsumer", json!({"ConsumerARN": consumer})),
            ("DescribeStreamSummary", json!({"StreamARN": arn})),
            ("DisableEnhancedMonitoring", json!({"StreamName": "s", "ShardLevelMetrics": ["ALL"]})),
            ("EnableEnhancedMonitoring", json!({"StreamName": "s", "ShardLevelMetrics": ["IncomingBytes"]})),
            ("GetRecords", json!({"ShardIterator": made.iterator, "Limit": 10})),
            ("GetResourcePolicy", json!({"ResourceARN": arn})),
            (
                "GetShardIterator",
                json!({"StreamName": "s", "ShardId": "shardId-000000000001",
                    "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1_700_000_000.5}),
            ),
            ("IncreaseStreamRetentionPeriod", json!({"StreamName": "s", "RetentionPeriodHours": 48})),
            ("ListShards", json!({"StreamName": "s", "ShardFilter": {"Type": "AT_LATEST"}, "MaxResults": 3})),
            ("ListStreamConsumers", json!({"StreamARN": arn, "MaxResults": 1})),
            ("ListStreams", json!({"Limit": 1, "ExclusiveStartStreamName": "a"})),
            ("ListTagsForResource", json!({"ResourceARN": arn})),
            ("ListTagsForStream", json!({"StreamName": "s", "Limit": 1})),
            (
                "MergeShards",
                json!({"StreamName": "s", "ShardToMerge": "shardId-000000000000",
                    "AdjacentShardToMerge": "shardId-000000000001"}),
            ),
            (
                "PutRecord",
                json!({"StreamName": "s", "Data": "AAECAw==", "PartitionKey": "k", "ExplicitHashKey": "0",
                    "SequenceNumberForOrdering": "1"}),
            ),
            (
                "PutRecords",
                json!({"StreamName": "s", "Records": [{"Data": "eA==", "PartitionKey": "a"},
                    {"Data": "", "PartitionKey": "b", "ExplicitHashKey": "5"}]}),
            ),
            ("PutResourcePolicy", json!({"ResourceARN": arn, "Policy": policy})),
            ("RegisterStreamConsumer", json!({"StreamARN": arn, "ConsumerName": "d"})),
            ("RemoveTagsFromStream", json!({"StreamName": "s", "TagKeys": ["a"]})),
            (
                "SplitShard",
                json!({"StreamName": "s", "ShardToSplit": "shardId-000000000002",
                    "NewStartingHashKey": "200000000000000000000000000000000000000"}),
            ),
            ("StartStreamEncryption", json!({"StreamName": "s", "EncryptionType": "KMS", "KeyId": "k"})),
            ("StopStreamEncryption", json!({"StreamName": "s", "EncryptionType": "KMS", "KeyId": "k"})),
            (
                "SubscribeToShard",
                json!({"ConsumerARN": consumer, "ShardId": "shardId-000000000003",
                    "StartingPosition": {"Type": "TRIM_HORIZON"}}),
            ),
            ("TagResource", json!({"ResourceARN": arn, "Tags": {"c": "d"}})),
            ("UntagResource", json!({"ResourceARN": arn, "TagKeys": ["c"]})),
            ("UpdateAccountSettings", json!({"MinimumThroughputBillingCommitment": {"Status": "DISABLED"}})),
            ("UpdateMaxRecordSize", json!({"StreamARN": arn, "MaxRecordSizeInKiB": 2048})),
            (
                "UpdateShardCount",
                json!({"StreamName": "s", "TargetShardCount": 4, "ScalingType": "UNIFORM_SCALING"}),
            ),
            (
                "UpdateStreamMode",
                json!({"StreamARN": arn, "StreamModeDetails": {"StreamMode": "PROVISIONED"}}),
            ),
            ("UpdateStreamWarmThroughput", json!({"StreamARN": arn, "WarmThroughputMiBps": 1})),
        ],
    )
}

pub fn changes(made: &Made) -> Vec<Sample> {
    let (arn, shard) = (&made.changes_arn, &made.changes_shard);
    let mut samples = of(
        "dynamodbstreams",
        vec![
            ("DescribeStream", json!({"StreamArn": arn, "Limit": 1})),
            ("GetRecords", json!({"ShardIterator": made.changes_iterator, "Limit": 5})),
            (
                "GetShardIterator",
                json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                    "SequenceNumber": "100000000000000000000"}),
            ),
            ("ListStreams", json!({"TableName": "items", "Limit": 1})),
        ],
    );
    let (arn, shard) = (&made.keyspaces_arn, &made.keyspaces_shard);
    samples.extend(of(
        "keyspacesstreams",
        vec![
            ("GetRecords", json!({"shardIterator": made.keyspaces_iterator, "maxResults": 5})),
            ("GetShardIterator", json!({"streamArn": arn, "shardId": shard, "shardIteratorType": "LATEST"})),
            ("GetStream", json!({"streamArn": arn, "maxResults": 1})),
            ("ListStreams", json!({"keyspaceName": "shop", "tableName": "cells", "maxResults": 1})),
        ],
    ));
    samples
}
