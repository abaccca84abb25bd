//! Every limit of the protocols in one place. What the services say about records, names and items stands in the
//! model.

use std::time::Duration;

/// Largest body of a call: ten mebibytes in base64, with keys and punctuation. Blobs are not bound by it.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes for which memory is taken when a body begins to come whose length nobody knows.
pub(crate) const UNANNOUNCED_BYTES: usize = 64 << 10;
/// Bytes up to which memory for such a body is taken in steps.
pub(crate) const UNANNOUNCED_BYTES_SMALL: usize = 1 << 20;
/// Memory that the entries of the lists and maps of any call may take.
pub(crate) const ENTRY_BYTES_FREE: usize = 512 << 10;
/// Memory that they may take beyond that for each byte of the call. The smallest entry of an item, `{"S":""},`, takes about
/// five bytes for each of its own, and an empty text in a list eight.
pub(crate) const ENTRY_BYTES_PER_BYTE: usize = 8;
/// The same, where entries are spelled without quotes and commas.
pub(crate) const ENTRY_BYTES_PER_BYTE_OF_CBOR: usize = 16;
/// How long a client may take to send the body of a call.
pub(crate) const BODY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Most bytes of a body that came compressed.
pub(crate) const INFLATED_BYTES_MAX: usize = 2 << 20;
/// The same for services that take compressed bodies as large as any other.
pub(crate) const INFLATED_BYTES_MAX_LARGE: usize = BODY_BYTES_MAX;
/// How many bytes can come of one that is compressed, at most.
pub(crate) const INFLATION_MAX: usize = 1_032;
/// Most fields of a form: two mebibytes of the shortest that a client of AWS writes, `MetricData.member.1.Values.member.1=1&`.
pub(crate) const FORM_FIELDS_MAX: usize = 60_000;

/// Longest line before a chunk of a body that comes in chunks, and most bytes behind the last one.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 8 << 10;
/// Bytes that a refused request may still send, so that its client is there to read why.
pub(crate) const REFUSED_BYTES_MAX: u64 = 16 << 20;
/// How long it may take for that.
pub(crate) const REFUSED_WAIT_MAX: Duration = Duration::from_secs(5);
/// Most elements in a document of XML: ten thousand parts with etag, number and checksum.
pub(crate) const XML_ELEMENTS_MAX: usize = 60_000;
/// How deep elements nest.
pub(crate) const XML_DEPTH_MAX: usize = 8;
/// Bytes after which a piece of a large answer is sent; a piece has at most about one record more.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
