//! Pages of keys, against a listing that is made by looking at every key.

use std::collections::BTreeSet;

use super::bytes::some_bytes;
use super::keys::ODD_KEYS;
use super::trial::Trial;
use crate::blob::{BlobKey, BucketName, ListAfter, ListOptions};
use crate::limits;

const KEYS: &[&str] = &[
    "a", "a-b", "a/", "a/b", "a/b/c", "a/b/d", "a/c", "a0", "b", "b/", "b//", "b//c", "b/x", "c/1/x",
    "c/1/y", "c/2/x", "c/2/y/z", "d", "é/1", "é/2", "🦦/x", "🦦/y",
];

/// What stands in a listing: a key, or what keys share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    text: String,
    is_prefix: bool,
}

/// What a listing shows of `keys`.
fn expected(keys: &[BlobKey], prefix: &str, delimiter: Option<&str>) -> Vec<Shown> {
    let shown = keys.iter().filter_map(|key| {
        let rest = key.as_str().strip_prefix(prefix)?;
        let cut = delimiter.filter(|text| !text.is_empty()).and_then(|text| rest.split_once(text));
        Some(match cut.zip(delimiter) {
            Some(((before, _), delimiter)) => {
                Shown { text: format!("{prefix}{before}{delimiter}"), is_prefix: true }
            }
            None => Shown { text: key.as_str().to_string(), is_prefix: false },
        })
    });
    shown.collect::<BTreeSet<_>>().into_iter().collect()
}

/// All pages of a listing, and a check of each.
async fn joined(trial: &Trial, bucket: &BucketName, options: &ListOptions) -> Vec<Shown> {
    let mut all = Vec::new();
    let mut after = options.after.clone();
    for _ in 0..10_000 {
        let asked = ListOptions { after, ..options.clone() };
        let what = format!("a page of {asked:?}");
        let page = trial.ok(&what, trial.store().list(bucket, asked).await);
        let keys = page.entries.iter().map(|entry| (entry.key.as_str(), false));
        let prefixes = page.prefixes.iter().map(|prefix| (prefix.as_str(), true));
        let shown = |(text, is_prefix): (&str, bool)| Shown { text: text.to_string(), is_prefix };
        let (keys, prefixes): (Vec<_>, Vec<_>) = (keys.map(shown).collect(), prefixes.map(shown).collect());
        trial.holds(keys.is_sorted() && prefixes.is_sorted(), format!("{what} is out of order"));
        let mut page_all = [keys, prefixes].concat();
        page_all.sort();
        let limit = options.limit_clamped();
        trial.holds(page_all.len() <= limit, format!("{what} has {} entries", page_all.len()));
        let short = page.next.is_some() && page_all.len() < limit;
        trial.holds(!short, format!("{what} has only {} entries, and is not the last", page_all.len()));
        all.extend(page_all);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
    trial.fail("a listing does not end")
}

async fn fill(trial: &Trial, keys: &[&str]) -> (BucketName, Vec<BlobKey>) {
    let bucket = trial.bucket().await;
    let mut sorted: Vec<_> = keys.iter().map(|key| trial.key(key)).collect();
    // Not in the order of the listing.
    for key in sorted.iter().rev() {
        trial.put(&bucket, key, &some_bytes(key.as_str().len() as u64, key.as_str().len())).await;
    }
    sorted.sort();
    (bucket, sorted)
}

/// Keys come in the order of their bytes, which is neither that of an alphabet nor that of UTF-16.
pub async fn keys_are_listed_in_the_order_of_bytes(trial: Trial) {
    let (bucket, keys) = fill(&trial, ODD_KEYS).await;
    trial.same("the order of keys", trial.keys(&bucket).await, keys.clone());
    for limit in [1, 7, keys.len() - 1, keys.len(), keys.len() + 1] {
        let options = ListOptions { limit, ..ListOptions::default() };
        let listed = joined(&trial, &bucket, &options).await;
        trial.same(format!("keys in pages of {limit}"), listed, expected(&keys, "", None));
    }
}

/// Every combination of prefix, delimiter and size of pages shows what looking at every key shows.
pub async fn listings_combine_prefix_delimiter_and_pages(trial: Trial) {
    let (bucket, keys) = fill(&trial, KEYS).await;
    let prefixes = ["", "a", "a/", "a/b", "a/b/", "b/", "b//", "c/", "c/1/x", "é", "🦦/", "nothing", "/"];
    for prefix in prefixes {
        for delimiter in [None, Some("/"), Some("//"), Some("b"), Some("/x"), Some(""), Some("🦦"), Some("?")]
        {
            for limit in [0, 1, 2, 3, 5, 1_000, usize::MAX] {
                let options = ListOptions {
                    prefix: prefix.to_string(),
                    delimiter: delimiter.map(str::to_string),
                    after: None,
                    limit,
                };
                let listed = joined(&trial, &bucket, &options).await;
                trial.same(format!("{options:?}"), listed, expected(&keys, prefix, delimiter));
            }
        }
    }
}

/// A listing starts behind any key, whether or not it exists, and behind all keys with some prefix.
pub async fn listings_start_behind_any_key(trial: Trial) {
    let (bucket, keys) = fill(&trial, KEYS).await;
    let absent = ["!", "a!", "a/b/", "a/b/cc", "b/w", "c/1", "zzz"];
    for after in KEYS.iter().chain(&absent) {
        let behind: Vec<_> = keys.iter().filter(|key| key.as_str() > *after).cloned().collect();
        for (prefix, delimiter) in [("", None), ("", Some("/")), ("a/", None), ("c/", Some("/"))] {
            for limit in [1, 4, 1_000] {
                let options = ListOptions {
                    prefix: prefix.to_string(),
                    delimiter: delimiter.map(str::to_string),
                    after: Some(ListAfter::Key(trial.key(after))),
                    limit,
                };
                let listed = joined(&trial, &bucket, &options).await;
                trial.same(format!("{options:?}"), listed, expected(&behind, prefix, delimiter));
            }
        }
    }
    for skipped in ["a/", "b//", "c/1/", "nothing"] {
        let is_behind = |key: &&BlobKey| key.as_str() > skipped && !key.as_str().starts_with(skipped);
        let behind: Vec<_> = keys.iter().filter(is_behind).cloned().collect();
        let after = Some(ListAfter::Prefix(skipped.to_string()));
        let options = ListOptions { after, limit: 3, ..ListOptions::default() };
        let listed = joined(&trial, &bucket, &options).await;
        trial.same(format!("{options:?}"), listed, expected(&behind, "", None));
    }
}

/// A listing goes on where it was when keys come and go between its pages: others are shown once.
pub async fn listings_outlive_deleted_keys(trial: Trial) {
    let (bucket, keys) = fill(&trial, KEYS).await;
    let mut seen = Vec::new();
    let mut after = None;
    for turn in 0.. {
        trial.holds(turn <= keys.len(), "a listing does not end");
        let options = ListOptions { after, limit: 2, ..ListOptions::default() };
        let page = trial.ok("a page", trial.store().list(&bucket, options).await);
        for entry in &page.entries {
            trial.ok("deleting", trial.store().delete(&bucket, &entry.key, None).await);
        }
        // Behind the pages so far a new key is nobody's business.
        trial.put(&bucket, &trial.key(&format!("!{turn}")), &some_bytes(1, 1)).await;
        seen.extend(page.entries.into_iter().map(|entry| entry.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    trial.same("keys that were listed", seen, keys);
}

/// An entry shows what a look at the blob shows.
pub async fn entries_show_what_head_shows(trial: Trial) {
    let (bucket, keys) = fill(&trial, KEYS).await;
    trial.put(&bucket, &keys[3], &some_bytes(77, 5_000)).await;
    let page = trial.ok("listing", trial.store().list(&bucket, ListOptions::default()).await);
    trial.same("entries", page.entries.len(), keys.len());
    for (entry, key) in page.entries.into_iter().zip(&keys) {
        let mut expected = trial.head(&bucket, key).await.summary(key);
        // A service may list what it says nothing about.
        if entry.checksums.is_none() {
            expected.checksums = None;
        }
        trial.same(format!("the entry of {key}"), entry, expected);
    }
}

/// A page has at most a thousand entries, whatever the limit, and says that there are more.
pub async fn a_page_of_keys_has_its_limit(trial: Trial) {
    let bucket = trial.bucket().await;
    let count = limits::PAGE_ENTRIES_MAX + 1;
    for number in 0..count {
        trial.put(&bucket, &trial.key(&format!("{number:05}/x")), &some_bytes(1, 1)).await;
    }
    for delimiter in [None, Some("/".to_string())] {
        let options = ListOptions { delimiter, limit: usize::MAX, ..ListOptions::default() };
        let page = trial.ok("listing", trial.store().list(&bucket, options.clone()).await);
        let entries = page.entries.len() + page.prefixes.len();
        trial.same("entries on the first page", entries, limits::PAGE_ENTRIES_MAX);
        trial.holds(page.next.is_some(), "the first page says that it is the last");
        trial.same("entries on all pages", joined(&trial, &bucket, &options).await.len(), count);
    }
}
