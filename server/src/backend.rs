//! Which engine a command works on: the embedded one in a directory of this machine, or AWS.

use std::hash::{BuildHasher, RandomState};
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
}

impl EngineArgs {
    /// What the connection to AWS is told; none if AWS is not the engine.
    pub(crate) fn aws(&self) -> Result<Option<AwsOptions>, Failure> {
        let EngineArgs { engine, endpoint, region, profile, fan_out } = self;
        match engine {
            EngineName::Aws => Ok(Some(AwsOptions {
                endpoint: endpoint.clone(),
                region: region.clone(),
                profile: profile.clone(),
                ..AwsOptions::default()
            })),
            EngineName::Embedded => {
                let given =
                    [("endpoint", endpoint), ("region", region), ("profile", profile), ("fan-out", fan_out)];
                match given.iter().find(|(_, value)| value.is_some()) {
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
}

impl DirectoryArgs {
    /// Refuses AWS, and what is about AWS.
    pub(crate) fn check(&self, why: &str, instead: &str) -> Result<(), Failure> {
        let DirectoryArgs { engine, endpoint, region, profile, fan_out } = self.clone();
        EngineArgs { engine, endpoint, region, profile, fan_out }.directory_only(why, instead)
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
}
