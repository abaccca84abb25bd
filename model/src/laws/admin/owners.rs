//! Whom documents belong to.

use bytes::Bytes;

use super::Trial;
use crate::laws::trial::NO_CRASH;
use crate::table::{KeyKind, KeySchema, TableOptions};
use crate::{Document, Error, Owner, QueueName, QueueOptions, StreamName, StreamOptions, TableName};

const NAME: &str = "owner";

fn owners() -> Vec<Owner> {
    vec![
        Owner::Stream(StreamName::new(NAME).expect("a name")),
        Owner::Queue(QueueName::new(NAME).expect("a name")),
        Owner::Table(TableName::new(NAME).expect("a name")),
    ]
}

async fn make(trial: &Trial, owner: &Owner) {
    let made = match owner {
        Owner::Store => Ok(()),
        Owner::Stream(name) => trial.store().create_stream(name, StreamOptions::default()).await,
        Owner::Queue(name) => trial.store().create_queue(name, QueueOptions::default()).await,
        Owner::Table(name) => {
            let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text));
            trial.store().create_table(name, options).await
        }
    };
    trial.ok("making an owner", made);
}

async fn delete(trial: &Trial, owner: &Owner) {
    let deleted = match owner {
        Owner::Store => Ok(()),
        Owner::Stream(name) => trial.store().delete_stream(name).await,
        Owner::Queue(name) => trial.store().delete_queue(name).await,
        Owner::Table(name) => trial.store().delete_table(name).await,
    };
    trial.ok("deleting an owner", deleted);
}

/// Owners of one name have documents of their own.
pub(super) async fn owners_are_apart(trial: Trial) {
    let mut all = owners();
    for owner in &all {
        make(&trial, owner).await;
    }
    all.push(Owner::Store);
    for owner in &all {
        let document = vec![Document::new("whose", format!("{owner:?}"))];
        trial.ok("putting", trial.store().put_documents(owner, "kind", document).await);
    }
    for owner in &all {
        let found = trial.ok("reading", trial.store().document(owner, "kind", "whose").await);
        trial.same("a document", found, Some(Bytes::from(format!("{owner:?}"))));
        trial.same("names", trial.names(owner, "kind", 10).await.len(), 1);
    }
}

/// When an owner is deleted its documents are gone, and a younger owner of the same name has none.
pub(super) async fn documents_go_with_their_owner(trial: Trial) {
    for owner in owners() {
        make(&trial, &owner).await;
        let document = || vec![Document::new("a", "x")];
        trial.ok("putting", trial.store().put_documents(&owner, "kind", document()).await);
        delete(&trial, &owner).await;
        make(&trial, &owner).await;
        let found = trial.ok("reading", trial.store().document(&owner, "kind", "a").await);
        trial.same("a document of the older one", found, None);
        trial.same("names", trial.names(&owner, "kind", 10).await, Vec::new());
        let absent = trial.store().put_document_if_absent(&owner, "kind", Document::new("a", "y")).await;
        trial.same("putting what is absent", trial.ok("putting", absent), true);
    }
}

/// Nobody has documents before he exists, nor when he is gone.
pub(super) async fn documents_of_nobody_are_refused(trial: Trial) {
    for owner in owners() {
        for existed in [false, true] {
            if existed {
                make(&trial, &owner).await;
                delete(&trial, &owner).await;
            }
            let store = trial.store();
            let document = Document::new("a", "x");
            let results = [
                store.put_documents(&owner, "kind", vec![document.clone()]).await,
                store.put_documents(&owner, "kind", Vec::new()).await,
                store.put_document_if_absent(&owner, "kind", document).await.map(drop),
                store.document(&owner, "kind", "a").await.map(drop),
                store.documents(&owner, "kind", None, 1).await.map(drop),
                store.delete_documents(&owner, "kind", vec!["a".into()]).await,
            ];
            for result in results {
                let unknown = matches!(
                    result,
                    Err(Error::StreamNotFound(_) | Error::QueueNotFound(_) | Error::TableNotFound(_))
                );
                assert!(unknown, "law `{}`: {owner:?}: {result:?}", trial.law);
            }
        }
    }
}

/// What went with its owner stays gone, whatever is crashed and made anew.
pub(super) async fn documents_of_the_dead_do_not_come_back(trial: Trial) {
    for owner in owners() {
        make(&trial, &owner).await;
        let document = vec![Document::new("old", "x")];
        trial.ok("putting", trial.store().put_documents(&owner, "kind", document).await);
        delete(&trial, &owner).await;
        make(&trial, &owner).await;
        let document = vec![Document::new("new", "y")];
        trial.ok("putting", trial.store().put_documents(&owner, "kind", document).await);
    }
    for _ in 0..2 {
        for owner in owners() {
            trial.same("names", trial.names(&owner, "kind", 10).await, vec!["new".to_owned()]);
        }
        if !trial.can_crash() {
            return trial.skip(NO_CRASH);
        }
        trial.crash().await;
    }
}
