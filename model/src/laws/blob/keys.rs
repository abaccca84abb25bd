//! Keys are bytes: no character has a meaning, and none is lost.

use std::collections::BTreeMap;

use super::bytes::some_bytes;
use super::trial::Trial;
use crate::blob::BlobKey;
use crate::limits;

/// Keys that a file system, a shell or a normaliser would take for something else.
pub(super) const ODD_KEYS: &[&str] = &[
    "/",
    "//",
    ".",
    "..",
    "../up",
    "../../../../etc/passwd",
    "a/../b",
    "b",
    "/leading",
    "leading",
    "trailing/",
    "trailing",
    "double//slash",
    "double/slash",
    "nul\0inside",
    "nul",
    "\0",
    " ",
    "  two spaces  ",
    "line\nbreak",
    "line\r\nbreak",
    "tab\there",
    "\u{1b}[31mred",
    "back\\slash",
    "per%20cent",
    "per cent",
    "per+cent",
    "que?ry=1&x#frag",
    "<xml>&amp;",
    "Case",
    "case",
    "\u{e9}",
    "e\u{301}",
    "\u{212b}",
    "\u{c5}",
    "\u{202e}right",
    "\u{feff}mark",
    "🦦",
    "\u{ffff}",
    "\u{10ffff}",
    "con",
    "con.txt",
    "*",
    "~",
    "$HOME",
];

/// Keys with odd characters, and twins that look alike, each have a blob of their own, and come back byte for byte.
pub async fn odd_keys_are_keys(trial: Trial) {
    let bucket = trial.bucket().await;
    let mut expected = BTreeMap::new();
    for (seed, key) in ODD_KEYS.iter().enumerate() {
        let (key, bytes) = (trial.key(key), some_bytes(seed as u64, 20 + seed));
        trial.put(&bucket, &key, &bytes).await;
        expected.insert(key, bytes);
    }
    trial.same("keys", expected.len(), ODD_KEYS.len());
    for (key, bytes) in &expected {
        trial.same_bytes(format!("the body of {key}"), &trial.read(&bucket, key).await, bytes);
    }
    let keys: Vec<_> = expected.keys().cloned().collect();
    trial.same("listed keys", trial.keys(&bucket).await, keys.clone());
    for key in keys.iter().step_by(2) {
        trial.ok(format!("deleting {key}"), trial.store().delete(&bucket, key, None).await);
        expected.remove(key);
    }
    let left: Vec<_> = expected.keys().cloned().collect();
    trial.same("keys after every other was deleted", trial.keys(&bucket).await, left);
    for (key, bytes) in &expected {
        trial.same_bytes(format!("the body of {key}, later"), &trial.read(&bucket, key).await, bytes);
    }
}

/// A key may be the beginning of another, with and without slashes, in every order of puts.
pub async fn a_key_may_begin_another(trial: Trial) {
    let family = ["a", "a/", "a/b", "a/b/c", "a/b/c/", "a//b", "ab"];
    for turn in 0..family.len() {
        let bucket = trial.bucket().await;
        let mut keys: Vec<BlobKey> = family.iter().map(|key| trial.key(key)).collect();
        keys.rotate_left(turn);
        for (seed, key) in keys.iter().enumerate() {
            trial.put(&bucket, key, &some_bytes(seed as u64, 30)).await;
        }
        let gone = keys.remove(0);
        trial.ok("deleting", trial.store().delete(&bucket, &gone, None).await);
        trial.is_absent("a key that begins others", &bucket, &gone).await;
        for (seed, key) in keys.iter().enumerate() {
            let expected = some_bytes(seed as u64 + 1, 30);
            trial.same_bytes(format!("{key} beside {gone}"), &trial.read(&bucket, key).await, &expected);
        }
        keys.sort();
        trial.same("keys that are left", trial.keys(&bucket).await, keys);
    }
}

/// The longest keys work, also where they differ in the last byte only; longer ones do not exist.
pub async fn keys_have_their_limit(trial: Trial) {
    let bucket = trial.bucket().await;
    let most = limits::BLOB_KEY_BYTES_MAX;
    let texts = [
        "k".repeat(most),
        "k".repeat(most - 1),
        format!("{}l", "k".repeat(most - 1)),
        "/".repeat(most),
        "a/".repeat(most / 2),
        "🦦".repeat(most / 4),
        "\0".repeat(most),
    ];
    let mut keys = Vec::new();
    for (seed, text) in texts.iter().enumerate() {
        keys.push(trial.key(text));
        trial.put(&bucket, &keys[seed], &some_bytes(seed as u64, 40)).await;
    }
    for (seed, key) in keys.iter().enumerate() {
        let expected = some_bytes(seed as u64, 40);
        trial.same_bytes("the body of a long key", &trial.read(&bucket, key).await, &expected);
    }
    keys.sort();
    trial.same("long keys", trial.keys(&bucket).await, keys);
    for text in ["k".repeat(most + 1), "🦦".repeat(most / 4 + 1), String::new()] {
        trial.holds(BlobKey::new(&text).is_err(), format!("a key of {} bytes is allowed", text.len()));
    }
}
