//! Bodies that decay, disks that fill up, syncs that fail: what is damaged is reported and never served, what is refused
//! leaves nothing, and the neighbours do not notice.

mod blob_crash;

use anabranch_model::blob::{BlobStore, GetOptions, PutOptions, Range};
use anabranch_model::{Disk, Error, Result};
use anabranch_sim::{Fault, SimDisk};
use blob_crash::Store;
use blob_crash::world::{body, bucket, key, read, some_bytes};

fn store_with(blobs: &[(&'static str, usize)]) -> Store {
    let store = Store::open(SimDisk::new()).expect("an empty disk opens");
    let made = store.run(async |store: &dyn BlobStore| store.create_bucket(&bucket("one")).await);
    made.expect("a bucket");
    for (name, bytes) in blobs {
        put(&store, name, *bytes).expect("put");
    }
    store
}

fn put(store: &Store, name: &'static str, bytes: usize) -> Result<()> {
    let bytes = some_bytes(name.len() as u64, bytes);
    store.run(async move |store: &dyn BlobStore| {
        store.put(&bucket("one"), &key(name), body(&bytes), PutOptions::default()).await.map(|_| ())
    })
}

fn get(store: &Store, name: &'static str, range: Option<Range>) -> Result<Vec<u8>> {
    store.run(async move |store: &dyn BlobStore| {
        let options = GetOptions { range, ..GetOptions::default() };
        read(store.get(&bucket("one"), &key(name), options).await?.body).await
    })
}

fn bodies(store: &Store) -> Vec<String> {
    store.disk.paths().into_iter().filter(|path| path.starts_with("blobs/")).collect()
}

/// Names the blob that is damaged.
fn is_damage(error: &Error, name: &str) -> bool {
    matches!(error, Error::Corrupt(text) if text.contains(&format!("`{name}`")) && text.contains("`bucket-one`"))
}

#[test]
fn a_turned_bit_is_reported_and_never_served() {
    let store = store_with(&[("large", 200_000), ("neighbour", 150_000), ("small", 800)]);
    let file =
        bodies(&store).into_iter().find(|path| store.disk.file_len(path).is_ok_and(|len| len > 160_000));
    let (file, whole) = (file.expect("a file"), some_bytes(5, 200_000));
    for offset in [0, 1, 65_531, 65_532, 65_535, 65_536, 131_071, 131_072, 200_000] {
        store.disk.flip_bit(&file, offset, (offset % 8) as u8).expect("turned");
        let error = get(&store, "large", None).expect_err("a damaged body");
        assert!(is_damage(&error, "large"), "{offset}: {error:?}");
        // The other blocks are sound.
        let sound = if offset < 65_536 { (100_000, 190_000) } else { (0, 65_531) };
        if !(65_536..196_608).contains(&offset) {
            let read = get(&store, "large", Some(Range::FromTo(sound.0, sound.1))).expect("sound blocks");
            assert_eq!(read, &whole[sound.0 as usize..=sound.1 as usize]);
        }
        assert_eq!(get(&store, "neighbour", None).expect("the neighbour"), some_bytes(9, 150_000));
        store.disk.flip_bit(&file, offset, (offset % 8) as u8).expect("turned back");
    }
    assert_eq!(get(&store, "large", None).expect("sound again"), whole);
    assert_eq!(get(&store, "small", None).expect("a short one"), some_bytes(5, 800));
}

#[test]
fn a_missing_or_cut_file_is_reported() {
    let store = store_with(&[("large", 200_000), ("missing", 90_000), ("small", 800)]);
    let files = bodies(&store);
    let file = store.disk.open(&files[0], anabranch_model::Open::Existing).expect("opens");
    file.set_len(130_000).expect("cut");
    assert!(is_damage(&get(&store, "large", None).expect_err("cut"), "large"));
    assert_eq!(get(&store, "large", Some(Range::FromTo(0, 9))).expect("the beginning"), some_bytes(5, 10));
    store.disk.remove(&files[1]).expect("removed");
    assert!(is_damage(&get(&store, "missing", None).expect_err("missing"), "missing"));
    // A put heals it.
    put(&store, "missing", 70_000).expect("put");
    assert_eq!(get(&store, "missing", None).expect("healed"), some_bytes(7, 70_000));
}

#[test]
fn a_put_to_a_full_disk_leaves_nothing_and_writes_resume() {
    let store = store_with(&[("kept", 100_000)]);
    // Everything that upkeep wants is there.
    store.upkeep();
    let used: u64 = store.disk.paths().iter().map(|path| store.disk.file_len(path).expect("a file")).sum();
    store.disk.set_capacity(Some(used + (2 << 20)));
    for _ in 0..3 {
        assert_eq!(put(&store, "much", 6 << 20), Err(Error::DiskFull));
        assert_eq!(bodies(&store).len(), 1, "the partial file is gone");
    }
    assert_eq!(get(&store, "kept", None).expect("a neighbour"), some_bytes(4, 100_000));
    put(&store, "fits", 100_000).expect("what fits is taken");
    store.disk.set_capacity(None);
    put(&store, "much", 6 << 20).expect("room again");
    assert_eq!(get(&store, "much", None).expect("read").len(), 6 << 20);
}

#[test]
fn a_failed_sync_refuses_its_put_and_no_other() {
    let store = store_with(&[("kept", 100_000)]);
    for pattern in ["blobs/*/*", "blobs/*"] {
        store.disk.fail_syncs(Fault::next(pattern));
        let error = put(&store, "key", 80_000).expect_err("the sync failed");
        assert!(matches!(error, Error::Stopped(_)), "{error:?}");
        assert_eq!(bodies(&store).len(), 1, "the file is gone");
        store.disk.clear_faults();
    }
    put(&store, "key", 80_000).expect("the next is taken");
    assert_eq!(get(&store, "key", None).expect("read"), some_bytes(3, 80_000));
}

#[test]
fn a_replaced_file_goes_when_its_last_reader_does() {
    let store = store_with(&[("key", 900_000)]);
    let old = bodies(&store);
    let reader = store.run(async |store: &dyn BlobStore| {
        store.get(&bucket("one"), &key("key"), GetOptions::default()).await
    });
    let reader = reader.expect("opened");
    put(&store, "key", 500).expect("replaced");
    store.upkeep();
    assert_eq!(bodies(&store), old, "a reader holds it");
    let read = store.run(async |_| read(reader.body).await).expect("the old body");
    assert_eq!(read, some_bytes(3, 900_000));
    store.upkeep();
    assert_eq!(bodies(&store), Vec::<String>::new());
}
