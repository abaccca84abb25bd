//! Calls with several entries: what is wrong with the call as a whole, and the results of its entries.

use anabranch_model::Receipt;
use anabranch_model::limits::MESSAGE_BATCH_MAX;
use serde::Serialize;

use super::errors::{missing, receipt_fault, refusal};
use crate::fault::Fault;

/// Longest identifier of an entry, in characters.
const ID_CHARS_MAX: usize = 80;

/// An entry of a call.
pub(super) trait Entry {
    /// By which its result is recognised.
    fn id(&self) -> Option<&str>;
}

/// What became of the entries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successful: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed>,
}

/// An entry that was refused.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Failed {
    id: String,
    sender_fault: bool,
    code: String,
    message: String,
}

/// The result of an entry that has nothing to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Done {
    id: String,
}

impl<T> Response<T> {
    /// The results of entries, in their order.
    pub(super) fn new(results: impl IntoIterator<Item = (String, Result<T, Fault>)>) -> Self {
        let mut response = Response { successful: Vec::new(), failed: Vec::new() };
        for (id, result) in results {
            match result {
                Ok(done) => response.successful.push(done),
                Err(fault) => response.failed.push(Failed {
                    id,
                    sender_fault: fault.status.is_client_error(),
                    code: fault.query_code.unwrap_or(&fault.code).to_owned(),
                    message: fault.message,
                }),
            }
        }
        response
    }
}

/// The results of a call whose entries have nothing to say: what could be read has a result of the store, in order.
pub(super) fn done(
    ids: Vec<String>,
    read: Vec<Result<Receipt, Fault>>,
    results: Vec<anabranch_model::Result<()>>,
) -> impl Iterator<Item = (String, Result<Done, Fault>)> {
    let mut results = results.into_iter();
    ids.into_iter().zip(read).map(move |(id, read)| {
        let result = read.and_then(|receipt| {
            let result = results.next().ok_or_else(without_result)?;
            result.map_err(|error| receipt_fault(error, &receipt))
        });
        (id.clone(), result.map(|()| Done { id }))
    })
}

/// The result of a call with one entry.
pub(super) fn only(mut results: Vec<anabranch_model::Result<()>>, receipt: &Receipt) -> Result<(), Fault> {
    results.pop().ok_or_else(without_result)?.map_err(|error| receipt_fault(error, receipt))
}

/// What nobody knows the outcome of is not a success.
fn without_result() -> Fault {
    Fault::server("InternalFailure", "the entry has no result")
}

fn refuse(code: &'static str, message: impl Into<String>) -> Fault {
    let query_code = match code {
        "EmptyBatchRequest" => "AWS.SimpleQueueService.EmptyBatchRequest",
        "TooManyEntriesInBatchRequest" => "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
        "InvalidBatchEntryId" => "AWS.SimpleQueueService.InvalidBatchEntryId",
        "BatchEntryIdsNotDistinct" => "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        _ => "AWS.SimpleQueueService.BatchRequestTooLong",
    };
    refusal(code, query_code, message)
}

/// All messages of a call together are too large.
pub(super) fn too_long(bytes: usize, bytes_max: usize) -> Fault {
    let message =
        format!("Batch requests cannot be longer than {bytes_max} bytes. You have sent {bytes} bytes.");
    refuse("BatchRequestTooLong", message)
}

/// The identifiers of the entries of a call, which must be one to ten with names of their own.
pub(super) fn check<T: Entry>(entries: &[T]) -> Result<Vec<String>, Fault> {
    if entries.is_empty() {
        return Err(refuse("EmptyBatchRequest", "There should be at least one entry in the request."));
    }
    if entries.len() > MESSAGE_BATCH_MAX {
        return Err(refuse(
            "TooManyEntriesInBatchRequest",
            format!(
                "Maximum number of entries per request are {MESSAGE_BATCH_MAX}. You have sent {}.",
                entries.len()
            ),
        ));
    }
    let mut ids: Vec<String> = Vec::with_capacity(entries.len());
    for entry in entries {
        let id = entry.id().ok_or_else(|| missing("Id"))?;
        let allowed = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if id.is_empty() || id.len() > ID_CHARS_MAX || !allowed {
            let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can \
                           be at most 80 letters long.";
            return Err(refuse("InvalidBatchEntryId", message));
        }
        if ids.iter().any(|known| known == id) {
            return Err(refuse("BatchEntryIdsNotDistinct", format!("Id {id} repeated.")));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry for &str {
        fn id(&self) -> Option<&str> {
            Some(self)
        }
    }

    fn code(entries: &[&str]) -> String {
        check(entries).map_or_else(|fault| fault.code.into_owned(), |ids| ids.join(" "))
    }

    #[test]
    fn entries_have_names_of_their_own() {
        assert_eq!(code(&["a", "B-_9"]), "a B-_9");
        assert_eq!(code(&[]), "EmptyBatchRequest");
        let eleven: Vec<String> = (0..11).map(|number| number.to_string()).collect();
        let eleven: Vec<&str> = eleven.iter().map(String::as_str).collect();
        assert_eq!(code(&eleven), "TooManyEntriesInBatchRequest");
        assert_eq!(code(&eleven[..10]), "0 1 2 3 4 5 6 7 8 9");
        assert_eq!(code(&["a", "b", "a"]), "BatchEntryIdsNotDistinct");
        for id in ["", "a b", "ä", "a.b", &"x".repeat(81)] {
            assert_eq!(code(&[id]), "InvalidBatchEntryId", "{id}");
        }
    }

    #[test]
    fn results_are_sorted_by_success() {
        let refused = crate::sqs::errors::no_queue();
        let busy = Fault::server("ServiceUnavailable", "later");
        let results = [
            ("a".to_owned(), Ok(Done { id: "a".into() })),
            ("b".to_owned(), Err(refused)),
            ("c".to_owned(), Err(busy)),
        ];
        let response = serde_json::to_value(Response::new(results)).unwrap();
        assert_eq!(response["Successful"], serde_json::json!([{"Id": "a"}]));
        assert_eq!(response["Failed"][0]["Code"], "AWS.SimpleQueueService.NonExistentQueue");
        assert_eq!(response["Failed"][0]["SenderFault"], true);
        assert_eq!(response["Failed"][1]["SenderFault"], false);
    }
    #[test]
    fn no_result_is_no_success() {
        let receipt = Receipt::new("r").unwrap();
        let lost = only(Vec::new(), &receipt).unwrap_err();
        assert!(lost.code == "InternalFailure" && lost.status.is_server_error());
        assert_eq!(only(vec![Ok(())], &receipt), Ok(()));
        assert!(only(vec![Err(anabranch_model::Error::DiskFull)], &receipt).is_err());
        let mut results =
            done(vec!["a".into(), "b".into()], vec![Ok(receipt.clone()), Ok(receipt)], vec![Ok(())]);
        assert!(results.next().unwrap().1.is_ok());
        assert_eq!(results.next().unwrap().1.unwrap_err().code, "InternalFailure");
    }
}
