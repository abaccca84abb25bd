//! The least that a service can be asked: whether it is there, and whether it knows us.

use std::time::Duration;

use anabranch_model::{BlobStore, Error, Result};

use crate::action::Service;
use crate::config::Aws;
use crate::s3::Blobs;
use crate::{dynamodb, dynamodb_streams, keyspaces_streams, kinesis, sqs};

/// How long a service may take to say that it is there.
const PROBE_MAX: Duration = Duration::from_secs(8);

impl Aws {
    /// Asks a service for a list of at most one thing.
    pub async fn probe(&self, service: Service) -> Result<()> {
        let (config, caller) = (&self.config, &self.caller);
        let deadline = caller.deadline(PROBE_MAX);
        match service {
            Service::Kinesis => {
                let client = aws_sdk_kinesis::Client::new(config);
                let request = || client.list_streams().limit(1).send();
                caller
                    .call(&kinesis::action::LIST_STREAMS, deadline, request)
                    .await
                    .map(drop)
                    .map_err(Error::from)
            }
            Service::Sqs => {
                let client = aws_sdk_sqs::Client::new(config);
                let request = || client.list_queues().max_results(1).send();
                caller.call(&sqs::action::LIST_QUEUES, deadline, request).await.map(drop).map_err(Error::from)
            }
            Service::Dynamodb => {
                let client = aws_sdk_dynamodb::Client::new(config);
                let request = || client.list_tables().limit(1).send();
                caller
                    .call(&dynamodb::action::LIST_TABLES, deadline, request)
                    .await
                    .map(drop)
                    .map_err(Error::from)
            }
            Service::DynamodbStreams => {
                let client = aws_sdk_dynamodbstreams::Client::new(config);
                let request = || client.list_streams().limit(1).send();
                let row = &dynamodb_streams::action::LIST_STREAMS;
                caller.call(row, deadline, request).await.map(drop).map_err(Error::from)
            }
            Service::Keyspaces => {
                let client = aws_sdk_keyspacesstreams::Client::new(config);
                let request = || client.list_streams().max_results(1).send();
                let row = &keyspaces_streams::action::LIST_STREAMS;
                caller.call(row, deadline, request).await.map(drop).map_err(Error::from)
            }
            Service::S3 => Blobs::new(self)?.buckets(None, 1).await.map(drop),
        }
    }
}
