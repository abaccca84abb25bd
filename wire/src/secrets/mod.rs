//! Secrets Manager: a file for each operation, and what they share. Secrets are documents of the store. They lie on the
//! disk as they are: whoever reads the data directory reads them.

mod errors;
mod name;
mod order;
mod secret;
mod stored;
mod value;

mod create_secret;
mod delete_secret;
mod describe_secret;
mod get_secret_value;
mod list_secrets;
mod put_secret_value;
mod restore_secret;

use crate::operations::operations;

pub(crate) use stored::State;

operations! {
    "CreateSecret" => create_secret,
    "DeleteSecret" => delete_secret,
    "DescribeSecret" => describe_secret,
    "GetSecretValue" => get_secret_value,
    "ListSecrets" => list_secrets,
    "PutSecretValue" => put_secret_value,
    "RestoreSecret" => restore_secret,
}
