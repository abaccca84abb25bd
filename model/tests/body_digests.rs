//! What is computed from a body, against published values, and what is refused.

use std::collections::BTreeSet;

use anabranch_model::blob::{
    BodyDigest, BodyDigester, BodyOptions, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums,
    DigestOfParts, md5_of,
};
use anabranch_model::{Error, Result, limits};
use proptest::prelude::*;

fn all() -> BodyOptions {
    let computed = BTreeSet::from(ChecksumAlgorithm::ALL);
    BodyOptions { computed, md5_tag: true, ..BodyOptions::default() }
}

fn digest(options: BodyOptions, pieces: &[&[u8]]) -> Result<BodyDigest> {
    let mut digester = BodyDigester::new(options)?;
    pieces.iter().try_for_each(|piece| digester.update(piece))?;
    digester.finish()
}

fn shown(digest: &BodyDigest) -> Vec<String> {
    digest.checksums.iter().map(|checksum| format!("{checksum:?}")).collect()
}

#[test]
fn published_values_are_met() {
    let check = digest(all(), &[b"1234", b"", b"56789"]).expect("nothing was declared");
    assert_eq!(check.size, 9);
    assert_eq!(check.etag.as_str(), "25f9e794323b453885f5181f1b624d0b");
    assert_eq!(
        shown(&check),
        [
            "crc32 cbf43926",
            "crc32c e3069283",
            "crc64nvme ae8b14860a799888",
            "sha1 f7c3bc1d808e04732adf679965ccc34ca7ae3441",
            "sha256 15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
        ]
    );
    let empty = digest(all(), &[]).expect("nothing was declared");
    assert_eq!(empty.etag.as_str(), "d41d8cd98f00b204e9800998ecf8427e");
    // Without the wish for an MD5 the tag is the first half of the SHA-256, and says that it is no MD5.
    let hashed = digest(BodyOptions::default(), &[b"1234", b"", b"56789"]).expect("nothing was declared");
    assert_eq!(hashed.etag.as_str(), "15e2b0d3c33891ebb0f1ef609ec41942-1");
    assert_eq!(shown(&empty)[..3], ["crc32 00000000", "crc32c 00000000", "crc64nvme 0000000000000000"]);
}

#[test]
fn a_body_that_is_not_the_declared_one_is_refused() {
    let right = digest(all(), &[b"body"]).expect("nothing was declared");
    let size = |size| BodyOptions { size: Some(size), ..BodyOptions::default() };
    digest(size(4), &[b"body"]).expect("as declared");
    for declared in [3, 5] {
        let mismatch = Error::BodySizeMismatch { declared, received: 4 };
        assert_eq!(digest(size(declared), &[b"bo", b"dy"]), Err(mismatch));
    }
    let large = Err(Error::BodyTooLarge { limit_bytes: limits::BODY_BYTES_MAX });
    assert_eq!(digest(size(limits::BODY_BYTES_MAX + 1), &[]), large);
    let md5 = BodyOptions { md5: right.etag.md5(), ..BodyOptions::default() };
    digest(md5.clone(), &[b"body"]).expect("as declared");
    assert_eq!(digest(md5, &[b"bodY"]), Err(Error::ChecksumMismatch("md5")));
    for checksum in right.checksums.iter() {
        let expected = BodyOptions { expected: [checksum].into_iter().collect(), ..BodyOptions::default() };
        let seen = digest(expected.clone(), &[b"body"]).expect("as declared");
        assert_eq!(seen.checksums.iter().collect::<Vec<_>>(), [checksum], "what was given is remembered");
        let name = checksum.algorithm().name();
        assert_eq!(digest(expected, &[b"bodY"]), Err(Error::ChecksumMismatch(name)));
    }
}

#[test]
fn values_have_the_length_of_their_algorithm() {
    for algorithm in ChecksumAlgorithm::ALL {
        let bytes = algorithm.bytes();
        Checksum::new(algorithm, &vec![7; bytes]).expect("the right length");
        assert!(Checksum::new(algorithm, &vec![7; bytes - 1]).is_err());
        assert!(Checksum::new(algorithm, &vec![7; bytes + 1]).is_err());
    }
}

#[test]
fn checksums_of_parts_are_taken_of_values() {
    let parts = [digest(all(), &[b"one"]).expect("fine"), digest(all(), &[b"two"]).expect("fine")];
    let sha = ChecksumAlgorithm::Sha256;
    let mut whole = DigestOfParts::new(Some((sha, ChecksumScope::Parts)));
    let mut values = Vec::new();
    for part in &parts {
        whole.add(part.size, &part.etag, &part.checksums).expect("it has the checksum");
        values.extend_from_slice(part.checksums.get(sha).expect("asked for").value());
    }
    let (size, etag, checksums) = whole.finish();
    assert_eq!(size, 6);
    let md5s = digest(all(), &[&md5_of(b"one"), &md5_of(b"two")]).expect("fine").etag;
    assert_eq!(etag.as_str(), format!("{md5s}-2"));
    assert_eq!(checksums.scope(), ChecksumScope::Parts);
    assert_eq!(checksums.get(sha), digest(all(), &[&values]).expect("fine").checksums.get(sha));
    let mut whole = DigestOfParts::new(Some((sha, ChecksumScope::Parts)));
    assert!(whole.add(3, &parts[0].etag, &Checksums::default()).is_err(), "a part without the checksum");
}

proptest! {
    /// Combining the checksums of parts gives that of the whole, wherever the cuts are.
    #[test]
    fn cyclic_checksums_combine(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6)) {
        let pieces: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let expected = digest(all(), &pieces).expect("nothing was declared");
        for algorithm in [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Crc64Nvme] {
            let mut whole = DigestOfParts::new(Some((algorithm, ChecksumScope::Body)));
            for piece in &pieces {
                let part = digest(all(), &[piece]).expect("nothing was declared");
                whole.add(part.size, &part.etag, &part.checksums).expect("it has the checksum");
            }
            let (size, _, checksums) = whole.finish();
            prop_assert_eq!(size, expected.size);
            prop_assert_eq!(checksums.get(algorithm), expected.checksums.get(algorithm));
        }
    }
}
