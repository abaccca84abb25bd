//! Whatever the dice say is done to the engine and to the reference, and both answer the same and hold the same. The
//! engine meanwhile does its upkeep, and is killed and opened again.

mod blob_crash;

use anabranch_model::blob::{
    BlobKey, BlobMeta, BlobStore, BodyOptions, BucketName, CompleteOptions, CopyOptions, ETag, GetOptions,
    ListAfter, ListOptions, Part, PartChoice, PartNumber, Properties, PutOptions, Range, Upload,
    UploadOptions, WriteCondition,
};
use anabranch_model::laws::reference::ReferenceBlobs;
use anabranch_model::{Error, Result};
use anabranch_sim::{Rng, SimDisk};
use blob_crash::world::{body, bucket, key, read, some_bytes};
use blob_crash::{Store, World};

const STEPS: usize = 250;
const KEYS: [&str; 8] = ["a", "a/", "a/b", "a/b/c", "a/c", "b", "b/x/y", "\0é🦦"];

/// What both are asked to do.
#[derive(Clone, Debug)]
enum Step {
    MakeBucket(BucketName),
    DeleteBucket(BucketName),
    Put(BucketName, BlobKey, u64, usize, WriteCondition),
    Delete(BucketName, BlobKey, Option<ETag>),
    DeleteMany(BucketName, Vec<BlobKey>),
    Copy((BucketName, BlobKey), (BucketName, BlobKey), Option<Properties>),
    Read(BucketName, BlobKey, Range),
    List(BucketName, ListOptions),
    Begin(BucketName, BlobKey),
    Part(usize, u64, u64, usize),
    Complete(usize, Vec<u64>, WriteCondition),
    Abort(usize),
}

/// What they answer, without the names that each gives on its own.
#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Meta(Box<BlobMeta>),
    Bytes(std::ops::Range<u64>, Vec<u8>),
    Listed(String),
    Deleted(Vec<Result<()>>),
    Part(Part),
}

/// One of the two, with the uploads it has begun.
#[derive(Default)]
struct Begun(Vec<Upload>);

impl Begun {
    async fn take(&mut self, store: &dyn BlobStore, step: Step) -> Result<Answer> {
        let done = |()| Answer::Done;
        let meta = |meta| Answer::Meta(Box::new(meta));
        match step {
            Step::MakeBucket(bucket) => store.create_bucket(&bucket).await.map(done),
            Step::DeleteBucket(bucket) => store.delete_bucket(&bucket).await.map(done),
            Step::Put(bucket, key, seed, bytes, condition) => {
                let options = PutOptions { condition, ..PutOptions::default() };
                store.put(&bucket, &key, body(&some_bytes(seed, bytes)), options).await.map(meta)
            }
            Step::Delete(bucket, key, tag) => store.delete(&bucket, &key, tag.as_ref()).await.map(done),
            Step::DeleteMany(bucket, keys) => store.delete_many(&bucket, &keys).await.map(Answer::Deleted),
            Step::Copy(source, target, properties) => {
                let options = CopyOptions { properties, ..CopyOptions::default() };
                store.copy((&source.0, &source.1), (&target.0, &target.1), options).await.map(meta)
            }
            Step::Read(bucket, key, range) => {
                let options = GetOptions { range: Some(range), ..GetOptions::default() };
                let blob = store.get(&bucket, &key, options).await?;
                Ok(Answer::Bytes(blob.range, read(blob.body).await?))
            }
            Step::List(bucket, options) => {
                store.list(&bucket, options).await.map(|page| Answer::Listed(format!("{page:?}")))
            }
            Step::Begin(bucket, key) => {
                let upload = store.begin_upload(&bucket, &key, UploadOptions::default()).await?;
                self.0.push(upload);
                Ok(Answer::Done)
            }
            Step::Part(upload, number, seed, bytes) => {
                let (body, number) = (body(&some_bytes(seed, bytes)), PartNumber::new(number)?);
                store.put_part(&self.0[upload], number, body, BodyOptions::default()).await.map(Answer::Part)
            }
            Step::Complete(upload, numbers, condition) => {
                let parts = store.parts(&self.0[upload], None, 1_000).await?.entries;
                let chosen = parts.iter().filter(|part| numbers.contains(&u64::from(part.number.get())));
                let choices: Vec<_> = chosen.map(PartChoice::from).collect();
                let options = CompleteOptions { condition, ..CompleteOptions::default() };
                store.complete_upload(&self.0[upload], &choices, options).await.map(meta)
            }
            Step::Abort(upload) => store.abort_upload(&self.0[upload]).await.map(done),
        }
    }
}

fn size(rng: &mut Rng) -> usize {
    [0, 1, 700, 5_000, 20_000, 65_532, 65_533, 90_000][rng.below(8) as usize]
}

fn condition(rng: &mut Rng) -> WriteCondition {
    match rng.below(5) {
        0 => WriteCondition::IfAbsent,
        1 => WriteCondition::IfPresent,
        _ => WriteCondition::None,
    }
}

fn step(rng: &mut Rng, uploads: usize) -> Step {
    let name = |rng: &mut Rng| bucket(["one", "two"][rng.below(2) as usize]);
    let some_key = |rng: &mut Rng| key(KEYS[rng.below(8) as usize]);
    let text = |rng: &mut Rng| ["", "a", "a/", "b/"][rng.below(4) as usize].to_owned();
    let upload = |rng: &mut Rng| rng.below(uploads as u64) as usize;
    match rng.below(24) {
        0 | 1 => Step::MakeBucket(name(rng)),
        2 => Step::DeleteBucket(name(rng)),
        3..=8 => Step::Put(name(rng), some_key(rng), rng.below(9), size(rng), condition(rng)),
        9 | 10 => Step::Delete(name(rng), some_key(rng), None),
        11 => Step::Delete(name(rng), some_key(rng), Some(ETag::of_md5([0; 16]))),
        12 => Step::DeleteMany(name(rng), (0..=rng.below(4)).map(|_| some_key(rng)).collect()),
        13 | 14 => {
            let properties = rng.chance(0.5).then(Properties::default);
            Step::Copy((name(rng), some_key(rng)), (name(rng), some_key(rng)), properties)
        }
        15 => Step::Read(name(rng), some_key(rng), Range::FromTo(rng.below(70_000), rng.below(90_000))),
        16 => {
            let after = match rng.below(3) {
                0 => Some(ListAfter::Key(some_key(rng))),
                1 => Some(ListAfter::Prefix("a/".into())),
                _ => None,
            };
            let delimiter = rng.chance(0.5).then(|| "/".to_owned());
            let limit = 1 + rng.below(4) as usize;
            Step::List(name(rng), ListOptions { prefix: text(rng), delimiter, after, limit })
        }
        17 | 18 => Step::Begin(name(rng), some_key(rng)),
        19..=21 if uploads > 0 => Step::Part(upload(rng), 1 + rng.below(3), rng.below(9), size(rng)),
        22 if uploads > 0 => Step::Complete(upload(rng), vec![1 + rng.below(3)], condition(rng)),
        23 if uploads > 0 => Step::Abort(upload(rng)),
        _ => Step::MakeBucket(name(rng)),
    }
}

/// Without the names that each store gives on its own.
fn comparable(answer: Result<Answer>) -> Result<Answer> {
    answer.map_err(|error| match error {
        Error::UploadNotFound(_) => Error::Invalid("no such upload".into()),
        error => error,
    })
}

fn walk(seed: u64) {
    let store = Store::open(SimDisk::new()).expect("an empty disk opens");
    let (reference, mut rng) = (ReferenceBlobs::new(), Rng::new(seed));
    let (mut ours, mut theirs) = (Begun::default(), Begun::default());
    for number in 0..STEPS {
        match rng.below(20) {
            0 => store.upkeep(),
            1 => store.reopen(),
            _ => {}
        }
        let step = step(&mut rng, theirs.0.len());
        let answer = store.run(async |store: &dyn BlobStore| ours.take(store, step.clone()).await);
        let expected = store.run(async |_| theirs.take(&reference, step.clone()).await);
        let (answer, expected) = (comparable(answer), comparable(expected));
        assert!(
            answer == expected,
            "seed {seed}, step {number}, {step:?}: {:.300} instead of {:.300}",
            format!("{answer:?}"),
            format!("{expected:?}")
        );
        if number % 10 == 9 {
            let world = store.run(World::read).expect("everything can be read");
            let expected = store.run(async |_| World::read(&reference).await).expect("the reference can");
            assert_eq!(world, expected, "seed {seed}, after step {number}");
        }
    }
}

#[test]
fn the_engine_answers_as_the_reference_does() {
    (0..12).for_each(walk);
}
