//! Crashes a finished run wherever it could have crashed, opens what is left, and goes on from there.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::{Clock, Disk, Error, Result};
use anabranch_sim::{CrashPoint, Rng, SimClock, SimDisk};
use tokio::runtime::{Builder, Runtime};

use super::ledger::Ledger;
use super::process::MortalDisk;
use super::run::{Call, Run, name, options};
use super::workloads::Workload;
use super::world::World;

/// The environment variable that names one crash to look at, for instance `retention:123:4`.
pub const REPLAY: &str = "ANABRANCH_CRASH";

/// A finished run whose crashes can be looked at.
pub struct Exploration {
    pub workload: Workload,
    pub run: Run,
    runtime: Arc<Runtime>,
}

/// A crash after which the store is not what it has to be.
pub struct Violation {
    pub text: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A runtime for futures that are polled by hand and reads that need a thread.
pub fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_time().build().expect("a runtime"))
}

impl Exploration {
    /// Runs a script on a disk that does what it says.
    pub fn of(workload: Workload) -> Exploration {
        Exploration::on(workload, |_| {})
    }

    /// Runs a script on a disk that was prepared for it.
    pub fn on(workload: Workload, prepare: impl FnOnce(&SimDisk)) -> Exploration {
        let runtime = runtime();
        let disk = SimDisk::new();
        prepare(&disk);
        let mut run = Run::on(&runtime, disk.clone(), Arc::new(disk)).expect("an empty disk opens");
        workload.play(&mut run).expect("the script runs through");
        let world = run.world().expect("everything can be read");
        if let Some(difference) = world.difference(run.ledger.now()) {
            panic!("{}: the running store differs from the ledger: {difference}", workload.name);
        }
        Exploration { workload, run, runtime }
    }

    /// Loses the power at every moment with every seed, until the first violation. Returns how often it did.
    pub fn lose_power(&self, seeds: u64) -> std::result::Result<usize, Violation> {
        let mut crashes = 0;
        for point in self.run.disk.crash_points() {
            for seed in (0..seeds).filter(|seed| self.wanted(&point.operation().to_string(), *seed)) {
                self.crash(&point, seed)?;
                crashes += 1;
            }
        }
        Ok(crashes)
    }

    /// Loses the power and the state at every moment, and expects it to be built again. Returns how often it did.
    pub fn lose_power_and_state(&self, seeds: u64) -> std::result::Result<usize, Violation> {
        let mut crashes = 0;
        for point in self.run.disk.crash_points() {
            for seed in (0..seeds).filter(|seed| self.wanted(&format!("state-{}", point.operation()), *seed))
            {
                self.crash_without_state(&point, seed)?;
                crashes += 1;
            }
        }
        Ok(crashes)
    }

    /// One crash after which the state is gone as well.
    pub fn crash_without_state(&self, point: &CrashPoint, seed: u64) -> std::result::Result<(), Violation> {
        let operation = point.operation();
        let look = || {
            let image = image(point, seed);
            // Without it there is nothing to lose.
            let _ = image.remove("state.redb");
            let clock = SimClock::new(self.run.clock.now());
            let engine = self.open_any(&image, &clock)?;
            self.recognise(&self.run.ledger, &engine, operation).map(|_| ())
        };
        let outcome = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
        outcome.map_err(|text| self.violation(operation, &format!("state-{operation}"), seed, &text))
    }

    /// Kills the process at every moment with every seed, until the first violation. Returns how often it did.
    pub fn kill_processes(&self, seeds: u64) -> std::result::Result<usize, Violation> {
        let mut kills = 0;
        for moment in 0..=self.run.disk.operations() {
            for seed in (0..seeds).filter(|seed| self.wanted(&format!("kill-{moment}"), *seed)) {
                self.kill(moment, seed, &|_| {})?;
                kills += 1;
            }
        }
        Ok(kills)
    }

    /// Whether this moment is to be looked at: all are, unless one is asked for.
    fn wanted(&self, moment: &str, seed: u64) -> bool {
        let id = format!("{}:{moment}:{seed}", self.workload.name);
        std::env::var(REPLAY).map_or(true, |wanted| wanted == id)
    }

    /// One crash: open, look, go on, and crash again.
    pub fn crash(&self, point: &CrashPoint, seed: u64) -> std::result::Result<(), Violation> {
        let (operation, image) = (point.operation(), image(point, seed));
        let rng = Rng::new(seed << 32 | operation as u64);
        let look = || self.survive(&self.run.ledger, image, operation, rng);
        let outcome = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
        outcome.map_err(|text| self.violation(operation, &operation.to_string(), seed, &text))
    }

    fn violation(&self, operation: usize, moment: &str, seed: u64, text: &str) -> Violation {
        let workload = self.workload.name;
        let last = self.run.disk.describe(operation.saturating_sub(1));
        Violation {
            text: format!(
                "{workload} after operation {operation} ({last}), seed {seed}: {text}\n  replay with \
                 {REPLAY}={workload}:{moment}:{seed}"
            ),
        }
    }

    /// One process that dies while its machine lives on, so that the next one finds what was written and not synced;
    /// and then the power goes. `revive` prepares the disk for the second process.
    pub fn kill(
        &self,
        dies_at: usize,
        seed: u64,
        revive: &dyn Fn(&SimDisk),
    ) -> std::result::Result<(), Violation> {
        let look = || self.survive_kill(dies_at, Rng::new(seed << 32 | dies_at as u64), revive);
        let outcome = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
        outcome.map_err(|text| self.violation(dies_at, &format!("kill-{dies_at}"), seed, &text))
    }

    fn survive_kill(
        &self,
        dies_at: usize,
        mut rng: Rng,
        revive: &dyn Fn(&SimDisk),
    ) -> std::result::Result<(), String> {
        let disk = SimDisk::new();
        if let Ok(mut run) = Run::on(&self.runtime, disk.clone(), Arc::new(MortalDisk::new(&disk, dies_at))) {
            // The script fails where its process dies.
            let _ = self.workload.play(&mut run);
        }
        revive(&disk);
        let clock = SimClock::new(self.run.clock.now());
        let (engine, step) = self.open(&self.run.ledger, &disk, &clock, dies_at)?;
        let (opened_at, world) = (disk.operations(), self.run.ledger.world(step).clone());
        let mut run = Run::resume(&self.runtime, disk.clone(), clock.clone(), engine, world);
        self.go_on(&mut run, &mut rng).map_err(|error| format!("after opening again: {error}"))?;
        let crash_at = moment_between(dies_at, disk.operations(), &mut rng);
        let image = disk.crash_at(crash_at, rng.next_u64());
        // What the second process has shown to its readers is durable; before that the first one is what counts.
        let (ledger, moment) =
            if crash_at < opened_at { (&self.run.ledger, dies_at) } else { (&run.ledger, crash_at) };
        self.open(ledger, &image, &clock, moment).map_err(|text| {
            format!("power lost after operation {crash_at}, opened at {opened_at}: {text}")
        })?;
        Ok(())
    }

    fn survive(
        &self,
        ledger: &Ledger,
        image: SimDisk,
        operation: usize,
        mut rng: Rng,
    ) -> std::result::Result<(), String> {
        let clock = SimClock::new(self.run.clock.now());
        let (engine, step) = self.open(ledger, &image, &clock, operation)?;
        let world = ledger.world(step).clone();
        let last_number = ledger.last_number(operation).max(world.last_number());
        let mut run = Run::resume(&self.runtime, image, clock, engine, world);
        self.go_on(&mut run, &mut rng).map_err(|error| format!("after opening again: {error}"))?;
        let world = run.world().map_err(|error| format!("reading after going on: {error}"))?;
        if let Some(difference) = world.difference(run.ledger.now()) {
            return Err(format!("after going on: {difference}"));
        }
        let mut first_new = (1..=run.ledger.len()).map(|step| run.ledger.world(step).last_number());
        if let Some(number) = first_new.find(|number| *number > run.ledger.world(0).last_number())
            && number <= last_number
        {
            return Err(format!("number {number} is given although {last_number} was given before"));
        }
        // The second crash meets a store that has just recovered, or is about to.
        let second = moment_between(0, run.disk.operations(), &mut rng);
        let image = run.disk.crash_at(second, rng.next_u64());
        let clock = SimClock::new(run.clock.now());
        self.open(&run.ledger, &image, &clock, second).map_err(|text| {
            format!("second crash, after operation {second} of the recovered store: {text}")
        })?;
        Ok(())
    }

    /// Opens what a crash left and finds out which step of the ledger it stands for.
    fn open(
        &self,
        ledger: &Ledger,
        image: &SimDisk,
        clock: &SimClock,
        operation: usize,
    ) -> std::result::Result<(Engine, usize), String> {
        let (before, used) = (image.operations(), image.paths().iter().any(|path| path == "FORMAT"));
        let engine = self.open_any(image, clock)?;
        let step = self.recognise(ledger, &engine, operation)?;
        // A crash is no decay: whatever the state needs is there, once there is anything to know.
        let mut done = (before..image.operations()).map(|operation| image.describe(operation));
        let rebuilt = used && done.any(|operation| operation.ends_with("to state.redb"));
        if rebuilt && !ledger.world(step).streams.is_empty() {
            return Err("the state was built again".into());
        }
        Ok((engine, step))
    }

    fn open_any(&self, image: &SimDisk, clock: &SimClock) -> std::result::Result<Engine, String> {
        let engine = Engine::open(Arc::new(image.clone()), Arc::new(clock.clone()), options())
            .map_err(|error| format!("it does not open: {error}"))?;
        match engine.status().stopped {
            Some(reason) => Err(format!("it takes no writes: {reason}")),
            None => Ok(engine),
        }
    }

    fn recognise(
        &self,
        ledger: &Ledger,
        engine: &Engine,
        operation: usize,
    ) -> std::result::Result<usize, String> {
        let world =
            self.runtime.block_on(World::read(engine)).map_err(|error| format!("reading: {error}"))?;
        let step = ledger.recognise(&world, operation)?;
        world.flaw().map_or(Ok(step), Err)
    }

    /// What a recovered store is used for: appending to every shard, and whatever the dice say.
    fn go_on(&self, run: &mut Run, rng: &mut Rng) -> Result<()> {
        let streams: Vec<&'static str> = STREAMS
            .into_iter()
            .filter(|stream| run.ledger.now().streams.contains_key(&name(stream)))
            .collect();
        if streams.is_empty() {
            run.call(Call::Create { stream: "after", shards: 2, retention: Duration::from_secs(86_400) })?;
        }
        run.advance(Duration::from_secs(1));
        for stream in &streams {
            let batch = run.append(stream, 6, 40 + rng.below(400) as usize);
            run.call(batch)?;
        }
        match rng.below(8) {
            0 => run.upkeep(),
            1 => run.reopen()?,
            2 => {
                for stream in &streams {
                    run.call(run.split(stream, 0))?;
                }
            }
            3 => self.empty(run, &streams)?,
            _ => {}
        }
        Ok(())
    }

    /// When every stream is gone, so are all live bytes.
    fn empty(&self, run: &mut Run, streams: &[&'static str]) -> Result<()> {
        for stream in streams {
            run.call(Call::Delete { stream })?;
        }
        run.upkeep();
        run.upkeep();
        match run.engine().status().live_bytes {
            0 => Ok(()),
            bytes if streams.is_empty() && bytes == 0 => Ok(()),
            bytes => Err(Error::Corrupt(format!("{bytes} bytes are live although no stream is left"))),
        }
    }
}

/// What a crash leaves: the first seeds lose everything that was not synced, and nothing.
fn image(point: &CrashPoint, seed: u64) -> SimDisk {
    match seed {
        0 => point.image_without_unsynced(),
        1 => point.image_with_unsynced(),
        seed => point.image(seed),
    }
}

/// Some moment, and often the last one, when most has been promised.
fn moment_between(first: usize, last: usize, rng: &mut Rng) -> usize {
    if rng.chance(0.5) { last } else { first + rng.below((last - first) as u64 + 1) as usize }
}

/// The names that the scripts use.
const STREAMS: [&str; 12] =
    ["one", "three", "late", "tree", "short", "long", "kept", "doomed", "tide", "red", "green", "blue"];
