//! Every limit of the protocols in one place. What the services say about records, names and items stands in the
//! model.

use std::time::Duration;

/// Largest body of a call: ten mebibytes in base64, with keys and punctuation. Blobs are not bound by it.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;
/// How long a client may take to send the body of a call.
pub(crate) const BODY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Most fields of a form.
pub(crate) const FORM_FIELDS_MAX: usize = 10_000;
