//! `bench blob`: puts of 1 MiB, beside plain files of the same size that are synced and renamed into their place.

use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::blob::PutOptions;
use anabranch_model::{BlobKey, BlobStore, BucketName, limits};
use bytes::Bytes;

use super::Setting;
use super::machine::Machine;
use super::plain_files::PlainFiles;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::subject::Subject;
use super::tasks::{self, Done, Task};
use super::writers::incompressible;
use crate::failure::Failure;

/// Shards of the stream that the segments are filled with.
const SHARDS: usize = 8;
/// The body of a blob.
const BODY_BYTES: usize = 1 << 20;
/// The pieces in which it arrives, as from a connection.
const PIECE_BYTES: usize = 64 << 10;
const GOAL: f64 = 0.6;

/// From how many tasks blobs are put.
struct Case {
    name: &'static str,
    what: &'static str,
    tasks: usize,
}

const CASES: [Case; 2] = [
    Case {
        name: "puts_from_4",
        what: "puts of 1 MiB from 4 tasks, beside 4 threads that each make a file, write it, sync it, rename it and sync \
               its folder",
        tasks: 4,
    },
    Case { name: "puts_from_1", what: "the same from one task, beside one thread", tasks: 1 },
];

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("blob", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(CASES.len() * setting.bounds.rounds);
    progress.say("fill the segments");
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;
    let puts = Puts {
        engine: subject.engine().clone(),
        bucket: BucketName::new("bench")?,
        body: incompressible(0, BODY_BYTES).into(),
    };
    puts.engine.create_bucket(&puts.bucket).await?;
    let files = PlainFiles::new(setting.place.folder("plain")?, puts.body.clone());
    for case in CASES.iter().filter(|case| setting.bounds.wants(case.name)) {
        progress.say(case.name);
        let (tasks, at_most) = (case.tasks, setting.bounds.duration());
        let steps = (setting.bounds.bytes() as usize / BODY_BYTES / tasks).max(1);
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..setting.bounds.rounds {
            engine.push(bytes_per_second(puts.round(tasks, steps, at_most).await?));
            puts.clear(tasks, steps).await?;
            // The raw side has the disk for itself.
            subject.upkeep().await?;
            raw.push(bytes_per_second(files.put(tasks, steps, at_most).await?));
            files.clear().await?;
            progress.step();
        }
        let (engine, raw) = (Spread::of(engine), Spread::of(raw));
        let figure = Figure::beside(case.name, case.what, Unit::BytesPerSecond, engine, raw);
        report.figures.push(figure.aim(Goal::RatioAtLeast(GOAL)));
    }
    report.notes.push(
        "every put is of a new key, every file has a new name; both are removed after their round; the engine sums each \
         body for its etag and its blocks, and its catalogue entry takes one sync of the journal more"
            .into(),
    );
    subject.close().await?;
    Ok(report)
}

fn bytes_per_second(done: Done) -> f64 {
    done.per_second() * BODY_BYTES as f64
}

/// Blobs in a bucket, all with the same body.
#[derive(Clone)]
struct Puts {
    engine: Engine,
    bucket: BucketName,
    body: Bytes,
}

impl Puts {
    async fn round(&self, tasks: usize, steps: usize, at_most: Duration) -> Result<Done, Failure> {
        let task = |task| Putter { puts: self.clone(), task };
        tasks::race((0..tasks).map(task).collect(), steps, at_most).await
    }

    async fn put(&self, key: &BlobKey) -> Result<(), Failure> {
        let body = self.body.clone();
        let pieces = (0..body.len()).step_by(PIECE_BYTES).map(move |start| {
            let end = (start + PIECE_BYTES).min(body.len());
            Ok(body.slice(start..end))
        });
        let body = Box::pin(futures_util::stream::iter(pieces));
        self.engine.put(&self.bucket, key, body, PutOptions::default()).await?;
        Ok(())
    }

    /// Deletes whatever a round has put.
    async fn clear(&self, tasks: usize, steps: usize) -> Result<(), Failure> {
        let numbers = (0..tasks).flat_map(|task| (0..steps).map(move |number| (task, number)));
        let keys: Vec<BlobKey> = numbers.map(|(task, number)| key(task, number)).collect::<Result<_, _>>()?;
        for keys in keys.chunks(limits::DELETE_KEYS_MAX) {
            for deleted in self.engine.delete_many(&self.bucket, keys).await? {
                deleted?;
            }
        }
        Ok(())
    }
}

fn key(task: usize, number: usize) -> Result<BlobKey, Failure> {
    Ok(BlobKey::new(&format!("{task}/{number}"))?)
}

struct Putter {
    puts: Puts,
    task: usize,
}

impl Task for Putter {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        self.puts.put(&key(self.task, number)?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_model::blob::ListOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_round_puts_whole_bodies_and_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let subject = Subject::open(folder.path(), 1).await.unwrap();
        let body = Bytes::from(incompressible(1, 3 * PIECE_BYTES + 1));
        let puts = Puts { engine: subject.engine().clone(), bucket: BucketName::new("bench").unwrap(), body };
        puts.engine.create_bucket(&puts.bucket).await.unwrap();

        let done = puts.round(2, 2, Duration::from_secs(60)).await.unwrap();
        let list = async || puts.engine.list(&puts.bucket, ListOptions::default()).await.unwrap().entries;
        assert_eq!(list().await.len() as u64, done.steps);
        let meta = puts.engine.head(&puts.bucket, &key(0, 0).unwrap()).await.unwrap();
        assert_eq!(meta.size, puts.body.len() as u64);
        puts.clear(2, 2).await.unwrap();
        assert!(list().await.is_empty());
        subject.close().await.unwrap();
    }
}
