//! A script with blobs on the simulated disk, and the crashes of it.
//!
//! A step is one call. What a crash leaves must be what the store held after some step between the last that was answered
//! and the last that was asked for.
#![allow(dead_code, reason = "each test file uses its own share")]

pub mod drive;
pub mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_model::Result;
use anabranch_model::blob::{
    BlobStore, BodyOptions, CompleteOptions, CopyOptions, Part, PartChoice, PartNumber, Properties,
    PutOptions, Upload, UploadOptions,
};
use anabranch_model::limits::PART_BYTES_MIN;
use anabranch_sim::{CrashPoint, SimDisk};

pub use drive::Store;
pub use world::World;
use world::{body, bucket, key, some_bytes};

/// What was asked for, when it was answered, and what the store held then.
struct Step {
    what: &'static str,
    asked: usize,
    answered: usize,
    world: World,
}

/// A script that is being played.
pub struct Script {
    store: Store,
    steps: Vec<Step>,
}

impl Script {
    /// One call.
    fn call<T>(&mut self, what: &'static str, call: impl AsyncFnOnce(&dyn BlobStore) -> Result<T>) -> T {
        let asked = self.store.disk.operations();
        let value = self.store.run(call).unwrap_or_else(|error| panic!("{what}: {error}"));
        let answered = self.store.disk.operations();
        let world =
            self.store.run(World::read).unwrap_or_else(|error| panic!("reading after {what}: {error}"));
        self.steps.push(Step { what, asked, answered, world });
        value
    }

    fn put(&mut self, name: &'static str, seed: u64, bytes: usize) {
        let bytes = some_bytes(seed, bytes);
        self.call("put", async move |store: &dyn BlobStore| {
            store.put(&bucket("one"), &key(name), body(&bytes), PutOptions::default()).await
        });
    }

    fn delete(&mut self, name: &'static str) {
        self.call("delete", async move |store: &dyn BlobStore| {
            store.delete(&bucket("one"), &key(name), None).await
        });
    }

    fn begin(&mut self, in_bucket: &'static str, name: &'static str) -> Upload {
        self.call("begin", async move |store: &dyn BlobStore| {
            store.begin_upload(&bucket(in_bucket), &key(name), UploadOptions::default()).await
        })
    }

    fn complete(&mut self, upload: &Upload, parts: &[Part]) {
        let (upload, choices) = (upload.clone(), parts.iter().map(PartChoice::from).collect::<Vec<_>>());
        self.call("complete", async move |store: &dyn BlobStore| {
            store.complete_upload(&upload, &choices, CompleteOptions::default()).await
        });
    }

    fn part(&mut self, upload: &Upload, number: u64, seed: u64, bytes: usize) -> Part {
        let (upload, bytes) = (upload.clone(), some_bytes(seed, bytes));
        self.call("part", async move |store: &dyn BlobStore| {
            let number = PartNumber::new(number)?;
            store.put_part(&upload, number, body(&bytes), BodyOptions::default()).await
        })
    }
}

/// Everything that blobs can do, short and long ones, with upkeep, a checkpoint and an opening in between.
pub fn script(run: &mut Script) {
    for name in ["one", "two"] {
        run.call("make a bucket", async move |store: &dyn BlobStore| {
            store.create_bucket(&bucket(name)).await
        });
    }
    run.put("small", 1, 900);
    run.put("large", 2, 70_000);
    run.put("small", 3, 500);
    run.put("large", 4, 140_000);
    run.store.upkeep();
    run.put("large", 5, 200);
    run.put("small", 6, 66_000);
    run.call("copy", async |store: &dyn BlobStore| {
        store
            .copy((&bucket("one"), &key("small")), (&bucket("two"), &key("copy")), CopyOptions::default())
            .await
    });
    let properties = Properties { metadata: [("a".into(), "b".into())].into(), ..Properties::default() };
    let onto_itself = CopyOptions { properties: Some(properties), ..CopyOptions::default() };
    run.call("copy onto itself", async move |store: &dyn BlobStore| {
        let place = (&bucket("two"), &key("copy"));
        store.copy(place, place, onto_itself).await
    });
    run.delete("small");
    let upload = run.begin("one", "joined");
    run.part(&upload, 1, 7, 7_000);
    run.part(&upload, 2, 8, 80_000);
    let chosen = run.part(&upload, 2, 9, 1_000);
    run.part(&upload, 3, 10, 40_000);
    run.store.reopen();
    run.complete(&upload, &[chosen]);
    run.store.upkeep();
    let aborted = run.begin("one", "aborted");
    run.part(&aborted, 1, 11, 3_000);
    run.call("abort", async move |store: &dyn BlobStore| store.abort_upload(&aborted).await);
    let open = run.begin("two", "open");
    run.part(&open, 5, 12, 2_000);
    run.call("delete many", async |store: &dyn BlobStore| {
        store.delete_many(&bucket("two"), &[key("copy"), key("never")]).await
    });
    run.call("delete a bucket", async |store: &dyn BlobStore| store.delete_bucket(&bucket("two")).await);
    run.store.upkeep();
    run.put("large", 13, 65_600);
}

/// A blob of two files takes the place of one, and goes: apart, because the first part is as long as it has to be.
pub fn joining(run: &mut Script) {
    run.call("make a bucket", async |store: &dyn BlobStore| store.create_bucket(&bucket("one")).await);
    run.put("joined", 1, 50_000);
    let upload = run.begin("one", "joined");
    let parts = [run.part(&upload, 1, 2, PART_BYTES_MIN as usize), run.part(&upload, 2, 3, 100)];
    run.complete(&upload, &parts);
    run.delete("joined");
    run.store.upkeep();
}

/// A script that was played, and may crash.
pub struct Exploration {
    script: Script,
}

impl Exploration {
    /// Plays a script on a disk.
    pub fn on(disk: SimDisk, play: fn(&mut Script)) -> Exploration {
        let mut script = Script { store: Store::open(disk).expect("an empty disk opens"), steps: Vec::new() };
        play(&mut script);
        Exploration { script }
    }

    pub fn operations(&self) -> usize {
        self.script.store.disk.operations()
    }

    /// Loses the power at every moment with every seed, until the first violation. Returns how often it did.
    pub fn lose_power(&self, seeds: u64) -> std::result::Result<usize, String> {
        let mut crashes = 0;
        for point in self.script.store.disk.crash_points() {
            for seed in 0..seeds {
                let look = || self.survive(&point, seed);
                let outcome =
                    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
                let last = self.script.store.disk.describe(point.operation().saturating_sub(1));
                outcome.map_err(|text| {
                    format!("after operation {} ({last}), seed {seed}: {text}", point.operation())
                })?;
                crashes += 1;
            }
        }
        Ok(crashes)
    }

    fn survive(&self, point: &CrashPoint, seed: u64) -> std::result::Result<(), String> {
        let image = match seed {
            0 => point.image_without_unsynced(),
            1 => point.image_with_unsynced(),
            seed => point.image(seed),
        };
        let store = Store::open(image).map_err(|error| format!("it does not open: {error}"))?;
        let world = store.run(World::read).map_err(|error| format!("reading: {error}"))?;
        self.recognise(&world, point.operation())?;
        // The store goes on, and whatever was left without an owner goes.
        store.upkeep();
        store.upkeep();
        let files: BTreeSet<String> =
            store.disk.paths().into_iter().filter(|path| path.starts_with("blobs/")).collect();
        let owned = world.files();
        if files.len() != owned {
            return Err(format!("{} files are left for {owned} bodies: {files:?}", files.len()));
        }
        let again = store.run(World::read).map_err(|error| format!("reading after upkeep: {error}"))?;
        if again != world {
            return Err("upkeep changed what is there".into());
        }
        let put = store.run(async |store: &dyn BlobStore| {
            let name = bucket("after");
            store.create_bucket(&name).await?;
            store.put(&name, &key("a"), body(&some_bytes(1, 70_000)), PutOptions::default()).await
        });
        put.map(|_| ()).map_err(|error| format!("a put after the crash: {error}"))
    }

    /// Whether a world is what the store held after a step that the crash may have left.
    fn recognise(&self, world: &World, operation: usize) -> std::result::Result<(), String> {
        let steps = &self.script.steps;
        let first = steps.iter().rposition(|step| step.answered <= operation);
        let last = steps.iter().rposition(|step| step.asked <= operation);
        let empty = World::default();
        let at = |step: Option<usize>| step.map_or(&empty, |step| &steps[step].world);
        if [first, last].into_iter().any(|step| at(step) == world) {
            return Ok(());
        }
        let name = |step: Option<usize>| step.map_or("nothing", |step| steps[step].what);
        Err(format!(
            "the store is neither as after `{}` ({}) nor as after `{}` ({})\n it is {}",
            name(first),
            at(first).brief(),
            name(last),
            at(last).brief(),
            world.brief()
        ))
    }
}
