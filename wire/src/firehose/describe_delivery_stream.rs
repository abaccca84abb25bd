//! DescribeDeliveryStream.

use anabranch_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::definition::{self, Definition};
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    delivery_stream_description: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    delivery_stream_name: String,
    #[serde(rename = "DeliveryStreamARN")]
    delivery_stream_arn: String,
    delivery_stream_status: &'static str,
    delivery_stream_type: &'static str,
    version_id: &'static str,
    create_timestamp: Time,
    destinations: [Destination; 1],
    has_more_destinations: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Destination {
    destination_id: &'static str,
    s3_destination_description: S3,
    extended_s3_destination_description: S3,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct S3 {
    #[serde(rename = "RoleARN")]
    role_arn: String,
    #[serde(rename = "BucketARN")]
    bucket_arn: String,
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_output_prefix: Option<String>,
    buffering_hints: Hints,
    compression_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_extension: Option<String>,
    encryption_configuration: Encryption,
}

#[derive(Clone, Debug, Serialize)]
struct Hints {
    #[serde(rename = "SizeInMBs")]
    size: u64,
    #[serde(rename = "IntervalInSeconds")]
    interval: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Encryption {
    no_encryption_config: &'static str,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let found = definition::find(context, request.delivery_stream_name).await?;
    let s3 = s3(&found);
    Ok(Response {
        delivery_stream_description: Description {
            delivery_stream_arn: context.arn("firehose", &format!("deliverystream/{}", found.name)),
            delivery_stream_name: found.name,
            delivery_stream_status: "ACTIVE",
            delivery_stream_type: "DirectPut",
            version_id: "1",
            create_timestamp: Time(Timestamp::from_millis(found.created_at)),
            destinations: [Destination {
                destination_id: "destinationId-000000000001",
                s3_destination_description: s3.clone(),
                extended_s3_destination_description: s3,
            }],
            has_more_destinations: false,
        },
    })
}

fn s3(definition: &Definition) -> S3 {
    S3 {
        role_arn: definition.role.clone(),
        bucket_arn: format!("arn:aws:s3:::{}", definition.bucket),
        prefix: definition.prefix.clone(),
        error_output_prefix: definition.error_prefix.clone(),
        buffering_hints: Hints { size: definition.size_mib, interval: definition.interval_seconds },
        compression_format: if definition.gzip { "GZIP" } else { "UNCOMPRESSED" },
        file_extension: definition.extension.clone(),
        encryption_configuration: Encryption { no_encryption_config: "NoEncryption" },
    }
}
