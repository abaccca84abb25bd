//! With which key a table says that it is encrypted. The name of the key is kept and shown; what the disk holds is as safe as
//! the disk.

use serde::{Deserialize, Serialize};

use super::schema::invalid;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// The key of callers who name none.
const KEY_DEFAULT: &str = "alias/aws/dynamodb";

/// How a table is to be encrypted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "SSESpecification", rename_all = "PascalCase", default)]
pub(super) struct Specification {
    enabled: Option<bool>,
    #[serde(rename = "SSEType")]
    kind: Option<String>,
    #[serde(rename = "KMSMasterKeyId")]
    key: Option<String>,
}

/// How a table is encrypted, as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Description {
    status: &'static str,
    #[serde(rename = "SSEType")]
    kind: &'static str,
    #[serde(rename = "KMSMasterKeyArn")]
    key: String,
}

impl Specification {
    /// Checks the shape before what it says.
    pub(super) fn check(&self, validation: &mut Validation) {
        validation.one_of("sSESpecification.sSEType", self.kind.as_deref(), &["AES256", "KMS"]);
    }

    /// The key, if there is to be one; otherwise the service has one of its own, and says nothing about it.
    pub(super) fn key(&self) -> Result<Option<String>, Fault> {
        match (self.enabled.unwrap_or(false), self.kind.as_deref(), &self.key) {
            (_, Some("AES256"), _) => {
                Err(invalid("SSEType AES256 is not supported: the only value that is allowed is KMS"))
            }
            (false, None, None) => Ok(None),
            (false, ..) => Err(invalid("SSEType and KMSMasterKeyId can be given only where Enabled is true")),
            (true, _, Some(key)) if key.is_empty() || key.len() > 2_048 => {
                Err(invalid("KMSMasterKeyId must have 1 to 2048 bytes"))
            }
            (true, _, key) => Ok(Some(key.clone().unwrap_or_else(|| KEY_DEFAULT.to_owned()))),
        }
    }
}

impl Description {
    /// Of a table with this key.
    pub(super) fn of(context: &Context, key: &str) -> Self {
        let key = match key {
            arn if arn.starts_with("arn:") => arn.to_owned(),
            alias if alias.starts_with("alias/") => context.arn("kms", alias),
            id => context.arn("kms", &format!("key/{id}")),
        };
        Description { status: "ENABLED", kind: "KMS", key }
    }
}
