//! Every command on blobs, through a real port with the reference behind it.

mod harness;

use std::fs;

use harness::reference::Reference;
use harness::{Data, Ran, Server, run, run_with_input};
use serde_json::json;

#[track_caller]
fn says(ran: Ran, text: &str) {
    assert_eq!(ran.succeeded().stdout, format!("{text}\n"));
}

/// A store with the bucket `photos`, and a folder for files.
fn photos() -> (Reference, tempfile::TempDir) {
    let store = Reference::start();
    says(store.blob(&["create", "photos"]), "created bucket photos");
    (store, tempfile::tempdir().expect("a folder"))
}

#[test]
fn create_ls_and_rm() {
    let store = Reference::start();
    let listed = store.blob(&["ls"]).succeeded();
    assert!(listed.stdout.contains("no buckets yet"), "{listed:#?}");
    assert_eq!(store.blob(&["create", "photos", "--json"]).json(), json!({"bucket": "photos"}));
    let listed = store.blob(&["ls"]).succeeded();
    assert!(
        listed.lines()[0].starts_with("BUCKET") && listed.lines()[1].starts_with("photos"),
        "{listed:#?}"
    );
    assert_eq!(store.blob(&["ls", "--json"]).json()["buckets"][0]["name"], "photos");
    let ran = store.blob(&["ls", "photos"]).succeeded();
    assert!(ran.stderr.starts_with("note: no blob"), "{ran:#?}");
    says(store.blob(&["rm", "photos"]), "removed bucket photos");
    assert_eq!(store.blob(&["ls", "--json"]).json(), json!({"buckets": []}));
}

#[test]
fn put_and_get() {
    let (store, folder) = photos();
    let (source, target) = (folder.path().join("sea.jpg"), folder.path().join("copy"));
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    for size in [0, 1, 300_000, 8 << 20, (8 << 20) + 1, 20_000_000] {
        let bytes: Vec<u8> = (0..size).map(|place: usize| (place * 7 + place / 251) as u8).collect();
        fs::write(source, &bytes).unwrap();
        let put = store.blob(&["put", source, "photos/2026/sea.jpg", "--json"]).json();
        assert_eq!(put["size"], size, "{put}");
        assert_eq!(put["parts"].is_null(), size < 8 << 20, "{put}");
        store.blob(&["get", "photos/2026/sea.jpg", target]).succeeded();
        assert!(fs::read(target).unwrap() == bytes, "{size} bytes");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no half a file is left: {left:?}");
}

/// The engine keeps blobs, on a directory that nobody holds and through a server.
#[test]
fn the_engine_keeps_blobs() {
    for serves in [false, true] {
        let data = Data::new();
        let _server: Option<Server> = serves.then(|| data.serve());
        let folder = tempfile::tempdir().unwrap();
        let [source, target] = ["sea.jpg", "copy"].map(|name| folder.path().join(name).display().to_string());
        let blob = |arguments: &[&str]| run(data.command_on("blob", arguments));
        blob(&["create", "photos"]).succeeded();
        for size in [0, 300_000, (8 << 20) + 1] {
            let bytes: Vec<u8> = (0..size).map(|place: usize| (place * 7 + place / 251) as u8).collect();
            fs::write(&source, &bytes).unwrap();
            blob(&["put", &source, "photos/2026/"]).succeeded();
            blob(&["get", "photos/2026/sea.jpg", &target]).succeeded();
            assert!(fs::read(&target).unwrap() == bytes, "{size} bytes");
        }
        assert_eq!(blob(&["ls", "photos", "--json"]).json(), json!({"prefix": "2026/"}));
        let removed = blob(&["rm", "photos", "--recursive", "--yes"]);
        says(removed, "removed bucket photos with 1 blob");
        blob(&["ls", "photos"]).failed(2, &["bucket `photos` does not exist", "blob create"]);
    }
}

#[test]
fn standard_input_and_output() {
    let (store, folder) = photos();
    let put = store.data.command_on("blob", ["put", "-", "photos/note"]);
    says(run_with_input(put, b"hello\n"), "stored photos/note (6 B)");
    assert_eq!(store.blob(&["get", "photos/note", "-"]).succeeded().stdout, "hello\n");
    // The name of the file goes where there is none.
    let file = folder.path().join("sea.jpg");
    fs::write(&file, b"sea").unwrap();
    let file = file.to_str().unwrap();
    says(store.blob(&["put", file, "photos"]), "stored photos/sea.jpg (3 B)");
    says(store.blob(&["put", file, "photos/2026/"]), "stored photos/2026/sea.jpg (3 B)");
    let put = store.data.command_on("blob", ["put", "-", "photos"]);
    run_with_input(put, b"x").failed(2, &["is a bucket, not a blob"]);
    let wrote = store.blob(&["get", "photos/sea.jpg", file]).succeeded();
    assert_eq!(wrote.stdout, format!("wrote photos/sea.jpg (3 B) to {file}\n"));
}

#[test]
fn listings_stop_at_slashes() {
    let (store, _folder) = photos();
    for key in ["a", "b/1", "b/2", "b/c/3", "\u{1b}[31mred"] {
        let place = format!("photos/{key}");
        run_with_input(store.data.command_on("blob", ["put", "-", &place]), key.as_bytes()).succeeded();
    }
    let listed = store.blob(&["ls", "photos"]).succeeded();
    let first_words: Vec<&str> =
        listed.lines()[1..].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(first_words, ["\\u{1b}[31mred", "a", "b/"], "{listed:#?}");
    let keys = |arguments: &[&str]| -> Vec<String> {
        let lines = store.blob(&[&["ls", "--json"], arguments].concat()).json_lines();
        let name =
            |line: &serde_json::Value| line["key"].as_str().or(line["prefix"].as_str()).unwrap().to_owned();
        lines.iter().map(name).collect()
    };
    assert_eq!(keys(&["photos/b/"]), ["b/1", "b/2", "b/c/"]);
    assert_eq!(keys(&["photos/b/", "--recursive"]), ["b/1", "b/2", "b/c/3"]);

    says(store.blob(&["rm", "photos/a"]), "removed photos/a");
    store.blob(&["rm", "photos/b/", "--recursive"]).failed(2, &["confirmation", "--yes"]);
    says(store.blob(&["rm", "photos/b/", "--recursive", "--yes"]), "removed 3 blobs of bucket photos");
    store.blob(&["rm", "photos"]).failed(2, &["not empty", "--recursive"]);
    says(store.blob(&["rm", "photos", "--recursive", "--yes"]), "removed bucket photos with 1 blob");
}

#[test]
fn what_is_wrong_is_refused_with_a_hint() {
    let (store, folder) = photos();
    let file = folder.path().join("file");
    fs::write(&file, b"before").unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["ls", "nothing"][..],
        &["put", file, "nothing/key"],
        &["get", "nothing/key", file],
        &["rm", "nothing/key"],
        &["rm", "nothing"],
        &["rm", "nothing", "--recursive", "--yes"],
    ] {
        store.blob(arguments).failed(2, &["bucket `nothing` does not exist", "blob create"]);
    }
    store.blob(&["get", "photos/missing", file]).failed(2, &["no blob `missing`", "blob ls"]);
    assert_eq!(fs::read(file).unwrap(), b"before", "a file that cannot be replaced stays");
    store.blob(&["rm", "photos/missing"]).failed(2, &["no blob `missing`"]);
    store.blob(&["get", "photos", file]).failed(2, &["is a bucket, not a blob"]);
    store.blob(&["create", "photos"]).failed(2, &["exists already"]);
    store.blob(&["create", "Photos"]).failed(2, &["bucket name"]);
    store.blob(&["put", "/nowhere/at/all", "photos/key"]).failed(1, &["/nowhere/at/all"]);
    let here = folder.path().to_str().unwrap();
    store.blob(&["put", here, "photos/key"]).failed(2, &["is a folder"]);
    store.blob(&["put", file, "photos/key", "--metadata", "Camera=x"]).failed(2, &["metadata name"]);
    store.blob(&["put", file, "photos/key", "--metadata", "camera"]);
    store.blob(&["put", file, "photos/key", "--if-absent", "--content-type", "text/plain"]).succeeded();
    store.blob(&["put", file, "photos/key", "--if-absent"]).failed(2, &["condition"]);
    store.blob(&["get", "photos/key", here]).failed(2, &["is a folder"]);
}
