//! Which engine a command works on: the embedded one in a directory of this machine, or AWS.

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::sync::Arc;

use anabranch_aws::{Aws, AwsOptions};
use anabranch_engine::SystemClock;
use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// Who keeps the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// A directory on this machine
    #[default]
    Embedded,
    /// Kinesis, SQS, DynamoDB and S3
    Aws,
}

/// Arguments of everything that works on either engine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EngineArgs {
    /// Who keeps the data
    #[arg(long, global = true, env = "ANABRANCH_ENGINE", value_enum, default_value_t)]
    pub(crate) engine: EngineName,
    /// With --engine aws: the address of all services [default: AWS_ENDPOINT_URL, or AWS itself]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// With --engine aws: the region [default: AWS_REGION, or that of the profile]
    #[arg(long, global = true, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// With --engine aws: the profile in the files of AWS [default: AWS_PROFILE, or `default`]
    #[arg(long, global = true, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// With --engine aws: follow streams by enhanced fan-out, as this consumer; it is registered if need be
    #[arg(long, global = true, value_name = "CONSUMER")]
    pub(crate) fan_out: Option<String>,
    /// With --engine aws: what is reserved for tables that are made, in units a second [default: paid by request]
    #[arg(long, global = true, value_name = "READS,WRITES")]
    pub(crate) capacity: Option<Capacity>,
}

/// What is reserved for a table of DynamoDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) reads: u32,
    pub(crate) writes: u32,
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(',').map(|(reads, writes)| (reads.trim().parse(), writes.trim().parse()));
        match parts {
            Some((Ok(reads), Ok(writes))) if reads > 0 && writes > 0 => Ok(Capacity { reads, writes }),
            _ => Err("a capacity is two whole numbers from 1 on, for instance 10,5".to_owned()),
        }
    }
}

impl EngineArgs {
    /// What the connection to AWS is told; none if AWS is not the engine.
    pub(crate) fn aws(&self) -> Result<Option<AwsOptions>, Failure> {
        let EngineArgs { engine, endpoint, region, profile, fan_out, capacity } = self;
        match engine {
            EngineName::Aws => Ok(Some(AwsOptions {
                endpoint: endpoint.clone(),
                region: region.clone(),
                profile: profile.clone(),
                ..AwsOptions::default()
            })),
            EngineName::Embedded => {
                let given = [
                    ("endpoint", endpoint.is_some()),
                    ("region", region.is_some()),
                    ("profile", profile.is_some()),
                    ("fan-out", fan_out.is_some()),
                    ("capacity", capacity.is_some()),
                ];
                match given.iter().find(|(_, given)| *given) {
                    None => Ok(None),
                    Some((flag, _)) => Err(Failure::usage(
                        format!("--{flag} is about AWS, and the engine is the embedded one"),
                        format!("add --engine aws, or leave --{flag} out"),
                    )),
                }
            }
        }
    }
}

impl EngineArgs {
    /// For what is about a data directory: refuses AWS, which has none, with what to do in its place.
    pub(crate) fn directory_only(&self, why: &str, instead: &str) -> Result<(), Failure> {
        match self.aws()? {
            None => Ok(()),
            Some(_) => Err(Failure::usage(why, instead)),
        }
    }
}

/// The same arguments for a command that works on a data directory only: it takes them to say so.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DirectoryArgs {
    #[arg(long, hide = true, env = "ANABRANCH_ENGINE", value_enum, default_value_t)]
    engine: EngineName,
    #[arg(long, hide = true)]
    endpoint: Option<String>,
    #[arg(long, hide = true)]
    region: Option<String>,
    #[arg(long, hide = true)]
    profile: Option<String>,
    #[arg(long, hide = true)]
    fan_out: Option<String>,
    #[arg(long, hide = true)]
    capacity: Option<Capacity>,
}

impl DirectoryArgs {
    /// Refuses AWS, and what is about AWS.
    pub(crate) fn check(&self, why: &str, instead: &str) -> Result<(), Failure> {
        let DirectoryArgs { engine, endpoint, region, profile, fan_out, capacity } = self.clone();
        EngineArgs { engine, endpoint, region, profile, fan_out, capacity }.directory_only(why, instead)
    }
}

/// Finds the region and the credentials. No service is asked yet.
pub(crate) async fn connect_aws(options: AwsOptions) -> Result<Aws, Failure> {
    // Pauses of processes that were started together must not fall together.
    let seed = RandomState::new().hash_one(std::process::id());
    Ok(Aws::connect(options, Arc::new(SystemClock::new()), seed).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_aws_is_matters_only_for_aws() {
        let args = EngineArgs { endpoint: Some("http://127.0.0.1:1".to_owned()), ..EngineArgs::default() };
        assert!(args.aws().is_err());
        assert!(EngineArgs { engine: EngineName::Aws, ..args }.aws().is_ok_and(|options| options.is_some()));
        assert!(EngineArgs::default().aws().is_ok_and(|options| options.is_none()));
    }

    #[test]
    fn a_capacity_is_two_numbers() {
        assert_eq!("10, 5".parse(), Ok(Capacity { reads: 10, writes: 5 }));
        for text in ["", "10", "0,5", "5,0", "-1,5", "a,b", "1,2,3"] {
            assert!(text.parse::<Capacity>().is_err(), "{text}");
        }
        let args = EngineArgs { capacity: Some(Capacity { reads: 1, writes: 1 }), ..EngineArgs::default() };
        assert!(args.aws().is_err(), "a directory charges nothing");
    }
}
