//! The laws of [`Admin`].

mod documents;
mod owners;

use crate::laws::Fixture;
use crate::laws::trial;
use crate::{Admin, Owner, QueueStore, StreamStore, TableStore};

/// A store of documents, and of what documents belong to.
pub trait Everything: Admin + StreamStore + QueueStore + TableStore {}

impl<T: Admin + StreamStore + QueueStore + TableStore> Everything for T {}

/// A store of documents for one law.
pub type AdminFixture = Fixture<dyn Everything>;

type Trial = trial::Trial<dyn Everything>;

impl Trial {
    /// The names of all documents of a kind.
    async fn names(&self, owner: &Owner, kind: &str, limit: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().map(String::as_str);
            let page = self.ok("listing", self.store().documents(owner, kind, after, limit).await);
            assert!(page.entries.len() <= limit.max(1), "law `{}`: a page of {limit} is too long", self.law);
            assert!(!page.more || !page.entries.is_empty(), "law `{}`: an empty page says more", self.law);
            names.extend(page.entries.into_iter().map(|document| document.name));
            if !page.more {
                return names;
            }
        }
    }
}

laws! { $ admin_laws in admin of dyn Everything:
    documents:
        documents_come_back_as_they_were,
        what_is_absent_is_put_once,
        documents_are_listed_by_name,
        kinds_are_apart,
        bad_documents_are_refused,
        documents_survive_a_crash;
    owners:
        owners_are_apart,
        documents_go_with_their_owner,
        documents_of_nobody_are_refused,
        documents_of_the_dead_do_not_come_back;
}
