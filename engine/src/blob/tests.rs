//! The rows of blobs come back as they were.

use std::collections::BTreeMap;

use anabranch_model::Timestamp;
use anabranch_model::blob::{
    BlobKey, BlobMeta, BodyDigester, BodyOptions, ChecksumAlgorithm, ChecksumScope, Checksums, ETag, Header,
    Part, PartNumber, Properties, UploadId, UploadOptions,
};
use proptest::prelude::*;

use super::layout::*;
use crate::encoding::Malformed;

fn properties() -> impl Strategy<Value = Properties> {
    let header = (0_usize..6, "[ -~]{0,20}").prop_map(|(at, value)| (Header::ALL[at], value));
    let metadata = proptest::collection::btree_map("[a-z]{1,9}", "[^\\pC]{0,9}", 0..4);
    (proptest::collection::vec(header, 0..4), metadata).prop_map(|(headers, metadata)| Properties {
        headers: headers.into_iter().collect::<BTreeMap<_, _>>(),
        metadata,
    })
}

fn checksums() -> impl Strategy<Value = Checksums> {
    (any::<[u8; 4]>(), proptest::sample::subsequence(ChecksumAlgorithm::ALL.to_vec(), 0..=5), any::<bool>())
        .prop_map(|(bytes, algorithms, of_parts)| {
            let options =
                BodyOptions { computed: algorithms.into_iter().collect(), ..BodyOptions::default() };
            let mut digester = BodyDigester::new(options).expect("a digester");
            digester.update(&bytes).expect("short enough");
            let scope = if of_parts { ChecksumScope::Parts } else { ChecksumScope::Body };
            let mut checksums = Checksums::empty(scope);
            let digest = digester.finish().expect("nothing was declared");
            digest.checksums.iter().for_each(|checksum| checksums.insert(checksum));
            checksums
        })
}

fn body() -> impl Strategy<Value = StoredBody> {
    let file = any::<(u64, u64)>().prop_map(|(id, bytes)| FilePart { id, bytes });
    prop_oneof![Just(StoredBody::Inline), proptest::collection::vec(file, 0..5).prop_map(StoredBody::Files),]
}

proptest! {
    #[test]
    fn blobs_and_parts_round_trip(
        size: u64, md5: [u8; 16], properties in properties(), checksums in checksums(), ms: u64,
        parts in proptest::option::of(1_u16..=10_000), body in body(), number in 1_u64..=10_000,
        part_checksums in proptest::collection::vec(checksums(), 0..4),
    ) {
        let (etag, modified_at) = (ETag::of_md5(md5), Timestamp::from_millis(ms));
        let number = PartNumber::new(number).expect("a number");
        let part = Part { number, size, etag: etag.clone(), checksums: checksums.clone(), modified_at };
        let part = StoredPart { part, body: body.clone() };
        prop_assert_eq!(StoredPart::decode(number, &part.encode()), Ok(part.clone()));
        let meta = BlobMeta { size, etag, properties, checksums, modified_at, parts };
        let blob = StoredBlob { meta, body, part_checksums };
        prop_assert_eq!(StoredBlob::decode(&blob.encode()), Ok(blob.clone()));
        prop_assert_eq!(StoredBlob::decode(&[&blob.encode()[..], &[0]].concat()), Err(Malformed));
    }

    #[test]
    fn uploads_and_buckets_round_trip(properties in properties(), ms: u64, number: u64, at in 0_usize..6) {
        let checksum = ChecksumAlgorithm::ALL.get(at).map(|one| (*one, ChecksumScope::Parts));
        let upload =
            StoredUpload { options: UploadOptions { properties, checksum }, begun_at: Timestamp::from_millis(ms) };
        prop_assert_eq!(StoredUpload::decode(&upload.encode()), Ok(upload.clone()));
        let bucket = StoredBucket { number, created_ms: ms };
        prop_assert_eq!(StoredBucket::decode(&bucket.encode()), Ok(bucket));
        let id = UploadId::new(&upload_id(number)).expect("an id");
        prop_assert_eq!(read_upload_id(&id), Some(number));
        for upload in [None, Some(ms)] {
            prop_assert_eq!(read_dead_key(&dead_key(number, upload)), Ok((number, upload)));
        }
    }

    #[test]
    fn rows_of_uploads_sort_as_their_keys(one in "\\PC{1,6}|[\0-\u{3}]{1,4}", two in "\\PC{1,6}|[\0-\u{3}]{1,4}", ids: (u64, u64)) {
        let [one, two] = [one, two].map(|key| BlobKey::new(&key).expect("a key"));
        let rows = [upload_key(7, &one, ids.0), upload_key(7, &two, ids.1)];
        prop_assert_eq!(rows[0].cmp(&rows[1]), (one.clone(), ids.0).cmp(&(two, ids.1)));
        prop_assert_eq!(read_upload_key(7, &rows[0]), Ok((one, ids.0)));
    }
}

#[test]
fn a_foreign_upload_id_is_none_of_ours() {
    for text in ["never-begun", "12", "00000000000000AB", "+000000000000001", "00000000000000012"] {
        assert_eq!(read_upload_id(&UploadId::new(text).expect("an id")), None, "{text}");
    }
}
