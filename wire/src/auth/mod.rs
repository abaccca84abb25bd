//! Who calls: the signature of a request, and what its scope says about region and service.
//!
//! Without keys every signature is accepted. With keys a request is signed in its header or in its query, and the
//! signature is compared in constant time; the chunks of a body that is signed piece by piece go on from there. Addresses of
//! S3 may be signed in the older way, too.

mod keys;
mod scope;

mod canonical;
mod claim;
mod legacy;
mod refusal;
mod seed;
mod verify;

pub use keys::Keys;

pub(crate) use claim::is_presigned;
pub(crate) use legacy::{is_address, verify_address};
pub(crate) use refusal::Refusal;
pub(crate) use scope::Scope;
pub(crate) use seed::Seed;
pub(crate) use verify::{check_head, verify};
