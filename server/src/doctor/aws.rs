//! Region, credentials, and every service: who answers, and to whom.

use std::time::Duration;

use anabranch_aws::action::Service;
use anabranch_aws::{Aws, AwsOptions};
use anabranch_model::{Clock, Error};
use futures_util::future::join_all;

use super::check::Check;
use super::{NamedArgs, named};
use crate::backend::{EngineArgs, connect_aws};
use crate::stores::Stores;

pub(super) async fn examine(options: AwsOptions, wanted: &NamedArgs, clock: &dyn Clock) -> Vec<Check> {
    let aws = match connect_aws(options).await {
        Ok(aws) => aws,
        Err(failure) => return vec![Check::failed("settings", &failure)],
    };
    let mut checks = vec![
        Check::ok("region", aws.region()),
        Check::of("credentials", aws.access_key().await.map(|key| format!("access key {key}"))),
    ];
    checks.extend(join_all(Service::ALL.map(|service| examine_service(&aws, service, clock))).await);
    match Stores::on(&aws, &EngineArgs::default()) {
        Ok(stores) => checks.extend(named::examine(&stores, wanted).await),
        Err(error) => checks.push(Check::of("stores", Err(error))),
    }
    checks
}

async fn examine_service(aws: &Aws, service: Service, clock: &dyn Clock) -> Check {
    let started = clock.elapsed();
    let attempt = aws.probe(service).await;
    let taken = clock.elapsed().saturating_sub(started);
    let denied = matches!(attempt, Err(Error::Denied { .. }));
    let check = Check::of(service.name(), attempt.map(|()| answered(aws, service, taken)));
    match service {
        // Who may not list may still use what he knows by name.
        _ if denied => check.or_warning(
            "if you use things by their names, name them here (--stream, --queue, --table, --bucket); \
             `anabranch iam-policy` prints what to allow",
        ),
        Service::DynamodbStreams => check.or_warning("only those who read the changes of tables need it"),
        Service::Keyspaces => check.or_warning("only those who read the changes of Keyspaces tables need it"),
        Service::Kinesis | Service::Sqs | Service::Dynamodb | Service::S3 => check,
    }
}

fn answered(aws: &Aws, service: Service, taken: Duration) -> String {
    let place = aws.endpoint(service.id()).unwrap_or_else(|| format!("AWS, {}", aws.region()));
    format!("{place} answered in {} ms", taken.as_millis())
}
