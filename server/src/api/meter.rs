//! What the calls on queues, blobs and tables are counted by. There are few labels, whatever clients ask for.

use anabranch_model::Result;
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use super::error::code;

/// Counts a call on queues by what became of it.
pub(super) fn queue_call<T>(operation: &'static str, result: &Result<T>) {
    counter!("anabranch_queue_calls_total", "operation" => operation, "result" => outcome(result))
        .increment(1);
}

/// Counts a call on blobs by what became of it.
pub(super) fn blob_call<T>(operation: &'static str, result: &Result<T>) {
    counter!("anabranch_blob_calls_total", "operation" => operation, "result" => outcome(result))
        .increment(1);
}

/// Counts a call on tables by what became of it.
pub(super) fn table_call<T>(operation: &'static str, result: &Result<T>) {
    counter!("anabranch_table_calls_total", "operation" => operation, "result" => outcome(result))
        .increment(1);
}

fn outcome<T>(result: &Result<T>) -> &'static str {
    result.as_ref().map_or_else(code, |_| "ok")
}

/// Counts messages that were sent, by what became of each.
pub(super) fn sent<T>(results: &[Result<T>]) {
    counter!("anabranch_queue_messages_sent_total").increment(succeeded(results));
}

/// Counts messages that were deleted.
pub(super) fn deleted<T>(results: &[Result<T>]) {
    counter!("anabranch_queue_messages_deleted_total").increment(succeeded(results));
}

fn succeeded<T>(results: &[Result<T>]) -> u64 {
    results.iter().filter(|result| result.is_ok()).count() as u64
}

/// Counts messages that a receive gave, or that it gave none.
pub(super) fn received(messages: usize) {
    counter!("anabranch_queue_messages_received_total").increment(messages as u64);
    if messages == 0 {
        counter!("anabranch_queue_receives_empty_total").increment(1);
    }
}

/// A receive that waits, until it is dropped.
pub(super) struct Waiting(());

impl Waiting {
    pub(super) fn begin() -> Self {
        gauge!("anabranch_queue_receives_waiting").increment(1);
        Waiting(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!("anabranch_queue_receives_waiting").decrement(1);
    }
}

/// Counts bytes of bodies on their way in.
pub(super) fn blob_bytes_received(bytes: usize) {
    counter!("anabranch_blob_bytes_received_total").increment(bytes as u64);
}

/// Counts bytes of bodies on their way out.
pub(super) fn blob_bytes_sent(bytes: usize) {
    counter!("anabranch_blob_bytes_sent_total").increment(bytes as u64);
}

/// Says what the names mean.
pub(crate) fn describe() {
    for (name, unit, text) in [
        ("anabranch_queue_calls_total", Unit::Count, "Calls on queues by operation and result"),
        ("anabranch_queue_messages_sent_total", Unit::Count, "Messages that queues have taken"),
        ("anabranch_queue_messages_received_total", Unit::Count, "Messages that receivers were given"),
        ("anabranch_queue_messages_deleted_total", Unit::Count, "Messages that receivers have deleted"),
        ("anabranch_queue_receives_empty_total", Unit::Count, "Receives that found no message"),
        ("anabranch_blob_calls_total", Unit::Count, "Calls on blobs by operation and result"),
        ("anabranch_table_calls_total", Unit::Count, "Calls on tables by operation and result"),
        ("anabranch_blob_bytes_received_total", Unit::Bytes, "Bytes of blobs on their way in"),
        ("anabranch_blob_bytes_sent_total", Unit::Bytes, "Bytes of blobs on their way out"),
        ("anabranch_blob_files_written_total", Unit::Count, "Bodies that were written to a file"),
        (
            "anabranch_blob_file_bytes_written_total",
            Unit::Bytes,
            "Bytes of bodies that were written to files",
        ),
        ("anabranch_blob_files_removed_total", Unit::Count, "Files of bodies that were removed"),
        ("anabranch_blob_orphans_found_total", Unit::Count, "Files that a crash left without an owner"),
        ("anabranch_blob_folder_syncs_total", Unit::Count, "Syncs of the folders of bodies"),
    ] {
        describe_counter!(name, unit, text);
    }
    describe_gauge!("anabranch_queue_receives_waiting", Unit::Count, "Receives that wait for a message");
}
