//! Where a bucket is: its address on AWS, or below the endpoint that was set.

use anabranch_model::{BucketName, Error, Result};

use crate::action::Service;
use crate::config::Aws;

/// Where requests go.
#[derive(Clone, Debug)]
pub(super) struct Place {
    scheme: String,
    /// Host and port.
    authority: String,
    /// What stands before every path, without a slash at its end.
    base: String,
    /// Whether a bucket is a part of the host name. Servers other than AWS's are seldom set up for that.
    virtual_hosts: bool,
    region: String,
}

impl Place {
    pub(super) fn of(aws: &Aws) -> Result<Place> {
        let region = aws.region().to_string();
        match aws.endpoint(Service::S3.id()) {
            Some(endpoint) => Place::below(&endpoint, region),
            None => Ok(Place::on_aws(
                region,
                aws.config.use_fips().unwrap_or_default(),
                aws.config.use_dual_stack().unwrap_or_default(),
            )),
        }
    }

    fn below(endpoint: &str, region: String) -> Result<Place> {
        let cut = endpoint.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        let Some((scheme, rest)) = cut else {
            return Err(Error::Misconfigured(format!(
                "endpoint `{}` is not an address",
                endpoint.escape_debug()
            )));
        };
        let (authority, base) = rest.split_once('/').unwrap_or((rest, ""));
        let base = base.trim_matches('/');
        Ok(Place {
            scheme: scheme.to_string(),
            authority: authority.to_string(),
            base: if base.is_empty() { String::new() } else { format!("/{base}") },
            virtual_hosts: false,
            region,
        })
    }

    fn on_aws(region: String, fips: bool, dual_stack: bool) -> Place {
        let domain = match region.as_str() {
            china if china.starts_with("cn-") => "amazonaws.com.cn",
            europe if europe.starts_with("eusc-") => "amazonaws.eu",
            _ => "amazonaws.com",
        };
        let fips = if fips { "-fips" } else { "" };
        let dual_stack = if dual_stack { ".dualstack" } else { "" };
        Place {
            scheme: "https".to_string(),
            authority: format!("s3{fips}{dual_stack}.{region}.{domain}"),
            base: String::new(),
            virtual_hosts: true,
            region,
        }
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    /// Whether this is AWS's own address.
    pub(super) fn is_aws(&self) -> bool {
        self.virtual_hosts
    }

    /// The address of a bucket, without a slash at its end; that of the service without one.
    pub(super) fn address(&self, bucket: Option<&BucketName>) -> String {
        let Place { scheme, authority, base, .. } = self;
        match bucket {
            None => format!("{scheme}://{authority}{base}"),
            // The certificates of AWS are for names without further dots.
            Some(bucket) if self.virtual_hosts && !bucket.as_str().contains('.') => {
                format!("{scheme}://{}.{authority}{base}", bucket.as_str())
            }
            Some(bucket) => format!("{scheme}://{authority}{base}/{}", bucket.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_addresses() {
        let [plain, dotted] = ["clicks", "my.clicks"].map(|name| BucketName::new(name).unwrap());
        let aws = Place::on_aws("eu-central-1".to_string(), false, false);
        assert_eq!(aws.address(Some(&plain)), "https://clicks.s3.eu-central-1.amazonaws.com");
        assert_eq!(aws.address(Some(&dotted)), "https://s3.eu-central-1.amazonaws.com/my.clicks");
        let china = Place::on_aws("cn-north-1".to_string(), false, true);
        assert_eq!(china.address(None), "https://s3.dualstack.cn-north-1.amazonaws.com.cn");
        let own = Place::below("http://127.0.0.1:8333/s3/", "us-east-1".to_string()).unwrap();
        assert_eq!(own.address(Some(&plain)), "http://127.0.0.1:8333/s3/clicks");
        assert!(Place::below("ftp://x", "us-east-1".to_string()).is_err());
    }
}
