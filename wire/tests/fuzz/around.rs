//! Requests to the services around them.

use serde_json::json;

use crate::sample::{Sample, of};

pub fn samples() -> Vec<Sample> {
    let destination = json!({
        "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "CompressionFormat": "GZIP",
        "Prefix": "y=!{timestamp:yyyy}/!{firehose:random-string}/", "ErrorOutputPrefix": "e/!{firehose:error-output-type}/",
        "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 60}});
    let mut samples = of(
        "firehose",
        vec![
            (
                "CreateDeliveryStream",
                json!({"DeliveryStreamName": "f", "ExtendedS3DestinationConfiguration": destination,
                    "Tags": [{"Key": "a", "Value": "b"}]}),
            ),
            ("DescribeDeliveryStream", json!({"DeliveryStreamName": "f"})),
            ("ListDeliveryStreams", json!({"Limit": 1, "ExclusiveStartDeliveryStreamName": "a"})),
            ("ListTagsForDeliveryStream", json!({"DeliveryStreamName": "f", "Limit": 1})),
            ("PutRecord", json!({"DeliveryStreamName": "f", "Record": {"Data": "eA=="}})),
            (
                "PutRecordBatch",
                json!({"DeliveryStreamName": "f", "Records": [{"Data": "eA=="}, {"Data": ""}]}),
            ),
            ("TagDeliveryStream", json!({"DeliveryStreamName": "f", "Tags": [{"Key": "a", "Value": "b"}]})),
            ("UntagDeliveryStream", json!({"DeliveryStreamName": "f", "TagKeys": ["a"]})),
            ("DeleteDeliveryStream", json!({"DeliveryStreamName": "other"})),
        ],
    );
    samples.extend(of(
        "secretsmanager",
        vec![
            (
                "CreateSecret",
                json!({"Name": "other", "SecretString": "x", "ClientRequestToken": "0".repeat(32)}),
            ),
            ("DeleteSecret", json!({"SecretId": "other", "RecoveryWindowInDays": 7})),
            ("DescribeSecret", json!({"SecretId": "secret"})),
            ("GetSecretValue", json!({"SecretId": "secret", "VersionStage": "AWSCURRENT"})),
            ("ListSecrets", json!({"MaxResults": 1, "Filters": [{"Key": "name", "Values": ["s"]}]})),
            ("PutSecretValue", json!({"SecretId": "secret", "SecretBinary": "AAE=", "VersionStages": ["A"]})),
            ("RestoreSecret", json!({"SecretId": "other"})),
        ],
    ));
    samples
}
