//! Documents of one owner.

use bytes::Bytes;
use futures_util::future::join_all;

use super::Trial;
use crate::laws::trial::NO_CRASH;
use crate::limits::{
    DOCUMENT_BYTES_MAX, DOCUMENT_KIND_CHARS_MAX, DOCUMENT_NAME_BYTES_MAX, DOCUMENTS_WRITTEN_MAX,
};
use crate::{Document, Error, Owner};

const STORE: Owner = Owner::Store;

/// A document is what was put last, byte for byte; one that is deleted is gone.
pub(super) async fn documents_come_back_as_they_were(trial: Trial) {
    let store = trial.store();
    let long = "n".repeat(DOCUMENT_NAME_BYTES_MAX);
    let names = ["a", "\0", "ä/..", "a\0b", long.as_str()];
    let value = |index: usize| Bytes::from(vec![index as u8; index * 1000]);
    let documents = |from: usize| -> Vec<Document> {
        let named = names.iter().enumerate();
        named.map(|(index, name)| Document::new(*name, value(from + index))).collect()
    };
    trial.ok("putting", store.put_documents(&STORE, "kind", documents(0)).await);
    for (index, name) in names.iter().enumerate() {
        let found = trial.ok("reading", store.document(&STORE, "kind", name).await);
        trial.same("a document", found, Some(value(index)));
    }
    trial.ok("putting again", store.put_documents(&STORE, "kind", documents(1)).await);
    let found = trial.ok("reading", store.document(&STORE, "kind", "a").await);
    trial.same("a replaced document", found, Some(value(1)));
    let largest = Document::new("large", vec![7; DOCUMENT_BYTES_MAX]);
    trial.ok("putting the largest", store.put_documents(&STORE, "kind", vec![largest.clone()]).await);
    let found = trial.ok("reading", store.document(&STORE, "kind", "large").await);
    trial.same("the largest document", found, Some(largest.value));
    let gone = vec!["a".to_owned(), "missing".to_owned(), "large".to_owned()];
    trial.ok("deleting", store.delete_documents(&STORE, "kind", gone).await);
    trial.same("a deleted document", trial.ok("reading", store.document(&STORE, "kind", "a").await), None);
    trial.ok("putting nothing", store.put_documents(&STORE, "kind", Vec::new()).await);
    trial.same("what is left", trial.names(&STORE, "kind", 10).await.len(), 4);
}

/// Of several who put what is absent, one does; the others find what it has put.
pub(super) async fn what_is_absent_is_put_once(trial: Trial) {
    let store = trial.store();
    for round in 0..20 {
        let name = format!("once-{round}");
        let puts = (0..8u8).map(|who| {
            let document = Document::new(name.clone(), vec![who]);
            store.put_document_if_absent(&STORE, "kind", document)
        });
        let put: Vec<bool> = join_all(puts).await.into_iter().map(|put| trial.ok("putting", put)).collect();
        trial.same("how many have put", put.iter().filter(|put| **put).count(), 1);
        let winner = put.iter().position(|put| *put).map(|who| Bytes::from(vec![who as u8]));
        trial.same("what is there", trial.ok("reading", store.document(&STORE, "kind", &name).await), winner);
    }
    trial.ok("deleting", store.delete_documents(&STORE, "kind", vec!["once-0".into()]).await);
    let again = store.put_document_if_absent(&STORE, "kind", Document::new("once-0", "new")).await;
    trial.same("putting after a delete", trial.ok("putting", again), true);
}

/// Names come in the order of their bytes, in pages of any size, behind a name that need not exist.
pub(super) async fn documents_are_listed_by_name(trial: Trial) {
    let store = trial.store();
    let mut names: Vec<String> = (0..25).map(|number| format!("n{:03}", number * 7 % 25)).collect();
    names.extend(["ä".into(), "Z".into(), "n".into(), "n000\0".into(), "\u{1F600}".into()]);
    let documents = names.iter().map(|name| Document::new(name.clone(), name.clone())).collect();
    trial.ok("putting", store.put_documents(&STORE, "listed", documents).await);
    names.sort();
    for limit in [0, 1, 7, 30, usize::MAX] {
        trial.same("a listing", trial.names(&STORE, "listed", limit).await, names.clone());
    }
    let page = trial.ok("listing", store.documents(&STORE, "listed", Some("n0105"), 1).await);
    trial.same("what follows", page.entries, vec![Document::new("n011", "n011")]);
    trial.same("whether there is more", page.more, true);
    let none = trial.ok("listing", store.documents(&STORE, "other", None, 10).await);
    trial.same("another kind", none.entries, Vec::new());
}

/// A name in two kinds is two documents, whatever the kinds and names look like side by side.
pub(super) async fn kinds_are_apart(trial: Trial) {
    let store = trial.store();
    for (kind, name) in [("a", "b"), ("a-b", "c"), ("ab", "c"), ("a", "bc")] {
        let document = Document::new(name, format!("{kind} {name}"));
        trial.ok("putting", store.put_documents(&STORE, kind, vec![document]).await);
    }
    trial.same(
        "names of one kind",
        trial.names(&STORE, "a", 10).await,
        vec!["b".to_owned(), "bc".to_owned()],
    );
    trial.same("names of another", trial.names(&STORE, "ab", 10).await, vec!["c".to_owned()]);
    trial.ok("deleting", store.delete_documents(&STORE, "ab", vec!["c".into()]).await);
    let kept = trial.ok("reading", store.document(&STORE, "a-b", "c").await);
    trial.same("the other document", kept, Some(Bytes::from("a-b c")));
}

/// What is too large or has no proper name is refused, and nothing of the call is done.
pub(super) async fn bad_documents_are_refused(trial: Trial) {
    let store = trial.store();
    let invalid = |result: crate::Result<()>, what: &str| {
        assert!(matches!(result, Err(Error::Invalid(_))), "law `{}`: {what}: {result:?}", trial.law);
    };
    let good = || Document::new("good", "x");
    let long_name = "n".repeat(DOCUMENT_NAME_BYTES_MAX + 1);
    let large = vec![0; DOCUMENT_BYTES_MAX + 1];
    for (what, bad) in [
        ("no name", Document::new("", "x")),
        ("a long name", Document::new(long_name.clone(), "x")),
        ("a large document", Document::new("large", large)),
    ] {
        invalid(store.put_documents(&STORE, "kind", vec![good(), bad.clone()]).await, what);
        invalid(store.put_document_if_absent(&STORE, "kind", bad).await.map(drop), what);
    }
    let many = (0..=DOCUMENTS_WRITTEN_MAX).map(|number| Document::new(number.to_string(), "")).collect();
    invalid(store.put_documents(&STORE, "kind", many).await, "many documents");
    let long_kind = "k".repeat(DOCUMENT_KIND_CHARS_MAX + 1);
    for kind in ["", "Kind", "a b", "a\0", long_kind.as_str()] {
        invalid(store.put_documents(&STORE, kind, vec![good()]).await, kind);
        invalid(store.document(&STORE, kind, "good").await.map(drop), kind);
        invalid(store.documents(&STORE, kind, None, 1).await.map(drop), kind);
        invalid(store.delete_documents(&STORE, kind, vec!["good".into()]).await, kind);
    }
    invalid(store.document(&STORE, "kind", "").await.map(drop), "no name");
    invalid(store.delete_documents(&STORE, "kind", vec![long_name]).await, "a long name");
    trial.same("what was put", trial.names(&STORE, "kind", 10).await, Vec::new());
}

/// What was acknowledged before a crash is there after it.
pub(super) async fn documents_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let put = |name: &str, value: &str| vec![Document::new(name, value.to_owned())];
    trial.ok("putting", trial.store().put_documents(&STORE, "kind", put("a", "1")).await);
    trial.ok("putting", trial.store().put_documents(&STORE, "kind", put("a", "2")).await);
    trial.ok("putting", trial.store().put_documents(&STORE, "kind", put("b", "1")).await);
    trial.ok("deleting", trial.store().delete_documents(&STORE, "kind", vec!["b".into()]).await);
    let absent = trial.store().put_document_if_absent(&STORE, "kind", Document::new("c", "1")).await;
    trial.same("putting what is absent", trial.ok("putting", absent), true);
    trial.crash().await;
    trial.same("names", trial.names(&STORE, "kind", 10).await, vec!["a".to_owned(), "c".to_owned()]);
    let found = trial.ok("reading", trial.store().document(&STORE, "kind", "a").await);
    trial.same("the last value", found, Some(Bytes::from("2")));
    let again = trial.store().put_document_if_absent(&STORE, "kind", Document::new("c", "2")).await;
    trial.same("putting what is there", trial.ok("putting", again), false);
}
