//! Every limit of the edge in one place: what one client, one connection and one command may take.

use std::time::Duration;

/// Largest body of a request: the largest append in base64, with its keys and punctuation.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;
/// Largest head of a request, and with it the longest path and header.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most headers of a request.
pub(crate) const HEADERS_MAX: usize = 256;
/// Most requests at a time on one connection, where a connection carries several.
pub(crate) const STREAMS_MAX: u32 = 200;
/// How often a connection that carries several requests is asked whether it is still there.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long the answer to that may take.
pub(crate) const PING_WAIT_MAX: Duration = Duration::from_secs(20);
/// Most connections to the listen address at a time, if as many files may be open.
pub(crate) const CONNECTIONS_MAX: usize = 16_384;
/// Open files that connections leave to the engine, which must never lack one.
pub(crate) const FILES_KEPT: usize = 512;
/// Connections that may wait to be accepted. The system may allow fewer.
pub(crate) const KNOCKING_MAX: u32 = 4_096;
/// Most connections to the monitor address at a time.
pub(crate) const MONITOR_CONNECTIONS_MAX: usize = 32;

/// How long a client may take to send the head of a request. An idle connection is closed after this time too.
pub(crate) const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a client may take to send the body of a request.
pub(crate) const BODY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Bytes that a refused request may still send, so that its client is there to read why.
pub(crate) const REFUSED_BYTES_MAX: u64 = 16 << 20;
/// How long it may take for that.
pub(crate) const REFUSED_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a client may take no bytes of an answer. What was read for it stays in memory meanwhile, so it is not long; but
/// whoever works on what it has got before it reads on is no reason to cut it off.
/// `stream tail` in a paused terminal is cut off after it and goes on where it was.
pub(crate) const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// How long a request waits for memory.
pub(crate) const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long requests in progress may take after the signal to stop.
pub(crate) const DRAIN_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a client to which nothing is owed may take to let go of a connection when it is told to.
pub(crate) const GOODBYE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Bytes after which a piece of an answer is sent; a piece has at most about twice as many.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Silence after which a follow sends an empty line, so that both sides notice when the other is gone.
pub(crate) const FOLLOW_SILENCE_MAX: Duration = Duration::from_secs(10);
/// Longest line of a follow that a client accepts: a batch in base64 with its keys and punctuation.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;

/// How long a client waits for a connection.
pub(crate) const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a client waits for an answer: longer than the longest wait of a receive.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a client keeps an idle connection: less than the server does.
pub(crate) const CLIENT_IDLE_MAX: Duration = Duration::from_secs(20);

/// Shards that `stream tail` follows by push. Beyond it polls, because each push holds a connection.
pub(crate) const PUSHED_SHARDS_MAX: usize = 64;
/// Reads that `stream tail` has in flight.
pub(crate) const READS_MAX: usize = 16;
/// How long `stream tail` waits between two rounds of polling that found nothing.
pub(crate) const POLL_WAIT: Duration = Duration::from_millis(250);
/// Bytes after which `stream put` sends a batch.
pub(crate) const PUT_BATCH_BYTES: usize = 1 << 20;

/// Bytes of one part of `blob put`. What is smaller is put at once. Each is held in memory, so that it can be sent again.
pub(crate) const PUT_PART_BYTES: u64 = 8 << 20;
/// Bytes that `blob get` and `blob put` read or write in one go.
pub(crate) const COPY_BYTES: usize = 256 << 10;

const _: () = assert!(
    ANSWER_WAIT_MAX.as_secs()
        > anabranch_model::limits::RECEIVE_WAIT_MAX.as_secs() + MEMORY_WAIT_MAX.as_secs()
);
