//! CreateDeliveryStream.

use anabranch_model::{BucketName, Error, StreamName};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::buffer;
use super::definition::{self, Definition, check_name};
use super::errors::{fault, in_use, invalid};
use super::prefix::Prefix;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, bounded};
use crate::making::{Notes, to_its_end};

/// Delivery streams that are being made with tags.
const NOTES: Notes = Notes("firehose-making");
/// Bytes and seconds unless the maker says otherwise.
const SIZE_MIB_DEFAULT: i64 = 5;
const INTERVAL_SECONDS_DEFAULT: i64 = 300;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    delivery_stream_type: Option<String>,
    s3_destination_configuration: Option<Destination>,
    extended_s3_destination_configuration: Option<Destination>,
    delivery_stream_encryption_configuration_input: Option<IgnoredAny>,
    kinesis_stream_source_configuration: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "bounded::<_, _, { ENTRIES_MAX }>")]
    tags: Vec<Tag>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Destination {
    #[serde(rename = "RoleARN")]
    role_arn: Option<String>,
    #[serde(rename = "BucketARN")]
    bucket_arn: Option<String>,
    prefix: Option<String>,
    error_output_prefix: Option<String>,
    buffering_hints: Option<Hints>,
    compression_format: Option<String>,
    file_extension: Option<String>,
    custom_time_zone: Option<String>,
    encryption_configuration: Option<Encryption>,
    processing_configuration: Option<Switch>,
    data_format_conversion_configuration: Option<Switch>,
    dynamic_partitioning_configuration: Option<Switch>,
    s3_backup_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Hints {
    #[serde(rename = "SizeInMBs")]
    size: Option<i64>,
    #[serde(rename = "IntervalInSeconds")]
    interval: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Encryption {
    #[serde(rename = "KMSEncryptionConfig")]
    key: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Switch {
    enabled: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Response {
    #[serde(rename = "DeliveryStreamARN")]
    delivery_stream_arn: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = check_name(request.delivery_stream_name)?;
    if request.delivery_stream_type.is_some_and(|kind| kind != "DirectPut")
        || request.kinesis_stream_source_configuration.is_some()
    {
        return Err(invalid("Only delivery streams of the type DirectPut are served here."));
    }
    if request.delivery_stream_encryption_configuration_input.is_some() {
        return Err(invalid("Records are not encrypted here."));
    }
    tags::check(&request.tags)?;
    let destinations = (request.extended_s3_destination_configuration, request.s3_destination_configuration);
    let destination = match destinations {
        (Some(destination), None) | (None, Some(destination)) => destination,
        (Some(_), Some(_)) => {
            return Err(invalid("Exactly one destination configuration is supported for a Firehose"));
        }
        (None, None) => {
            return Err(invalid("A delivery stream needs a destination in S3; there are no others here."));
        }
    };
    let definition = destination.definition(name, context.clock.now().as_millis())?;
    let delivery_stream_arn = context.arn("firehose", &format!("deliverystream/{}", definition.name));
    let context = context.clone();
    to_its_end(async move { create(&context, &definition, request.tags).await }).await?;
    Ok(Response { delivery_stream_arn })
}

/// The definition comes before the stream: whoever finds one without a stream makes it.
async fn create(context: &Context, definition: &Definition, tags: Vec<Tag>) -> Result<(), Fault> {
    let name = &definition.name;
    let _alone = context.firehose.delivering(name).await;
    if definition::get(&context.ports, name).await.map_err(fault)?.is_some() {
        return Err(in_use(name));
    }
    // A stream of somebody else is found before there is a definition, because a definition without a stream gets the one
    // of its name, and deletes it later.
    let stream = buffer::stream(name).map_err(fault)?;
    match context.ports.streams.stream(&stream).await {
        Ok(_) => return Err(occupied(&stream)),
        Err(Error::StreamNotFound(_)) => {}
        Err(error) => return Err(fault(error)),
    }
    let is_noted = !tags.is_empty() || NOTES.unfinished(context, name).await.map_err(fault)?.is_some();
    if is_noted {
        let note =
            serde_json::to_vec(&tags).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
        NOTES.begin(context, name, note).await.map_err(fault)?;
    }
    make(context, definition, tags).await?;
    if is_noted {
        NOTES.end(context, name).await.map_err(fault)?;
    }
    Ok(())
}

async fn make(context: &Context, definition: &Definition, tags: Vec<Tag>) -> Result<(), Fault> {
    if !definition::keep(context, definition).await? {
        return Err(in_use(&definition.name));
    }
    if let Err(error) = buffer::create(&context.ports, &definition.name).await {
        definition::forget(context, &definition.name).await?;
        return Err(match error {
            Error::StreamExists(stream) => occupied(&stream),
            other => fault(other),
        });
    }
    tags::put(context, &definition.name, tags).await
}

/// Makes the streams and tags of the delivery streams that a server was making when it died.
pub(crate) async fn finish_making(context: &Context) -> Result<(), Fault> {
    for (name, note) in NOTES.all(context).await.map_err(fault)? {
        let _alone = context.firehose.delivering(&name).await;
        // Without a definition it was not made, and nobody was told that it was.
        if definition::get(&context.ports, &name).await.map_err(fault)?.is_some() {
            match buffer::create(&context.ports, &name).await {
                Ok(()) | Err(Error::StreamExists(_)) => {}
                Err(error) => return Err(fault(error)),
            }
            // Tags that somebody put since count.
            if tags::list(context, &name).await?.is_empty() {
                let tags = serde_json::from_slice(&note).map_err(|error| {
                    fault(Error::Corrupt(format!("the tags of delivery stream `{name}`: {error}")))
                })?;
                tags::put(context, &name, tags).await?;
            }
        }
        NOTES.end(context, &name).await.map_err(fault)?;
    }
    Ok(())
}

fn occupied(stream: &StreamName) -> Fault {
    let message = format!("The stream {stream}, which records would wait in, exists already.");
    Fault::client("ResourceInUseException", message)
}

impl Destination {
    fn definition(self, name: String, created_at: u64) -> Result<Definition, Fault> {
        let on =
            |switch: &Option<Switch>| switch.as_ref().is_some_and(|switch| switch.enabled != Some(false));
        if on(&self.processing_configuration)
            || on(&self.data_format_conversion_configuration)
            || on(&self.dynamic_partitioning_configuration)
            || self.s3_backup_mode.is_some_and(|mode| mode != "Disabled")
        {
            return Err(invalid(
                "Records are delivered as they are: nothing can be done to them on their way.",
            ));
        }
        let arn = self.bucket_arn.unwrap_or_default();
        let bucket = arn.strip_prefix("arn:aws:s3:::").and_then(|name| BucketName::new(name).ok());
        let bucket = bucket.ok_or_else(|| invalid(format!("{arn:?} is not the ARN of a bucket.")))?;
        let prefix = self.prefix.unwrap_or_default();
        Prefix::of_objects(&prefix)?;
        Prefix::check_errors(self.error_output_prefix.as_deref(), &prefix)?;
        if self.custom_time_zone.is_some_and(|zone| zone != "UTC") {
            return Err(invalid("Keys tell the time in UTC here."));
        }
        if self.encryption_configuration.is_some_and(|encryption| encryption.key.is_some()) {
            return Err(invalid("Objects are not encrypted here."));
        }
        let extension = self.file_extension.filter(|extension| !extension.is_empty());
        if extension.as_deref().is_some_and(|extension| !is_extension(extension)) {
            return Err(invalid("FileExtension must be a dot and up to 127 of a-z, 0-9 and !-_.*'()."));
        }
        let gzip = match self.compression_format.as_deref() {
            None | Some("UNCOMPRESSED") => false,
            Some("GZIP") => true,
            Some(other) => return Err(invalid(format!("CompressionFormat {other} is not supported here."))),
        };
        let hints = self.buffering_hints.unwrap_or_default();
        let size = hints.size.unwrap_or(SIZE_MIB_DEFAULT);
        let interval = hints.interval.unwrap_or(INTERVAL_SECONDS_DEFAULT);
        if !(1..=128).contains(&size) || !(0..=900).contains(&interval) {
            return Err(invalid("SizeInMBs must be 1 to 128, and IntervalInSeconds 0 to 900."));
        }
        Ok(Definition {
            name,
            bucket: bucket.to_string(),
            prefix,
            error_prefix: self.error_output_prefix,
            extension,
            role: self.role_arn.unwrap_or_default(),
            size_mib: size as u64,
            interval_seconds: interval as u64,
            gzip,
            created_at,
        })
    }
}

fn is_extension(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!-_.*'()".contains(&byte);
    (2..=128).contains(&text.len()) && text.starts_with('.') && text.bytes().all(allowed)
}
