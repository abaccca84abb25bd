//! Every sync of the engine is needed: without it some crash loses what was promised. Each site is left out in turn, and
//! the crashes of the same scripts must then show it.

mod crash;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_sim::SimDisk;
use crash::explore::{Exploration, Violation};
use crash::workloads::{self, Workload};

/// A place in the engine that syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Site {
    /// The committer, behind a write of frames.
    Frames,
    /// An opening, behind writing the last frames again.
    FramesAgain,
    /// A segment that was made or recycled, behind reserving its room.
    NewSegment,
    /// The folder of the journal, behind a made or recycled segment.
    JournalFolder,
    /// redb, in a state that is being made. These syncs are its own, and opening the file repeats them before anything
    /// is acknowledged, so nobody can miss them.
    NewState,
    /// redb, in a checkpoint.
    State,
    /// The copy of the catalogue.
    Catalogue,
    /// The root, behind giving the copy of the catalogue its name.
    CatalogueName,
    /// The file that says what the format is.
    Format,
    /// The root, at every opening.
    Root,
}

const SITES: [Site; 10] = [
    Site::Frames,
    Site::FramesAgain,
    Site::NewSegment,
    Site::JournalFolder,
    Site::NewState,
    Site::State,
    Site::Catalogue,
    Site::CatalogueName,
    Site::Format,
    Site::Root,
];

/// Tells the sites of a log apart, one sync after the other.
#[derive(Default)]
struct Reader {
    last: String,
    /// Where each file was written so far.
    written: BTreeMap<String, BTreeSet<u64>>,
    again: bool,
}

impl Reader {
    /// Takes one operation into account; the site if it is a sync.
    fn read(&mut self, operation: &str) -> Option<Site> {
        let site = operation.strip_prefix("sync ").map(|rest| self.site(rest));
        if let Some(rest) = operation.strip_prefix("write journal/") {
            let mut words = rest.split(' ');
            let (file, offset) = (words.next().expect("a file"), words.nth(1).expect("an offset"));
            let offset = offset.trim_end_matches(',').parse().expect("a number");
            self.again = !self.written.entry(file.to_owned()).or_default().insert(offset);
        }
        self.last = operation.to_owned();
        site
    }

    fn site(&self, what: &str) -> Site {
        let path = what.split_once(": ").map_or(what, |(path, _)| path);
        match path {
            "directory 'journal'" => Site::JournalFolder,
            "directory ''" if self.last == "rename catalogue.new to catalogue" => Site::CatalogueName,
            "directory ''" => Site::Root,
            "FORMAT.new" => Site::Format,
            "catalogue.new" => Site::Catalogue,
            "state.redb.new" => Site::NewState,
            "state.redb" => Site::State,
            path if path.starts_with("journal/") => self.journal_site(path),
            _ => panic!("the engine syncs {path}, and no site of this test stands for that"),
        }
    }
}

impl Reader {
    fn journal_site(&self, path: &str) -> Site {
        match self.last.split(' ').next() {
            Some("allocate" | "rename") => Site::NewSegment,
            Some("write") if self.again => Site::FramesAgain,
            Some("write") => Site::Frames,
            _ => panic!(
                "the engine syncs {path} behind `{}`, and no site of this test stands for that",
                self.last
            ),
        }
    }
}

/// The sites of a run in the order of its syncs.
fn sites(disk: &SimDisk) -> Vec<Site> {
    let mut reader = Reader::default();
    (0..disk.operations()).filter_map(|operation| reader.read(&disk.describe(operation))).collect()
}

/// Runs a script on a disk that forgets the syncs of one site.
fn without(site: Site, workload: Workload) -> Exploration {
    let sites = sites(&Exploration::of(workload).run.disk);
    Exploration::on(workload, move |disk| {
        let (sites, done) = (sites.clone(), AtomicUsize::new(0));
        disk.ignore_syncs(move |_| sites.get(done.fetch_add(1, Ordering::Relaxed)) == Some(&site));
    })
}

/// The first crash that shows that a site was left out.
fn shown_by(site: Site, workload: Workload) -> Result<usize, Violation> {
    let seeds = if workload.name == "making" { 40 } else { 4 };
    match site {
        // They guard what only a lost state needs.
        Site::Catalogue | Site::CatalogueName => without(site, workload).lose_power_and_state(seeds),
        // It guards what a killed process has left.
        Site::FramesAgain => kill_without_frames_again(workload),
        _ => without(site, workload).lose_power(seeds),
    }
}

/// Kills processes between a write and its sync, and leaves out the first sync of the journal that the next one does.
fn kill_without_frames_again(workload: Workload) -> Result<usize, Violation> {
    let exploration = Exploration::of(workload);
    let disk = &exploration.run.disk;
    let written = |moment: &usize| disk.describe(moment - 1).starts_with("write journal/");
    let moments: Vec<usize> = (1..disk.operations()).filter(written).collect();
    for (moment, seed) in moments.iter().flat_map(|moment| (0..4).map(move |seed| (*moment, seed))) {
        exploration.kill(moment, seed, &|disk| {
            let first = AtomicBool::new(true);
            disk.ignore_syncs(move |event| {
                event.path.starts_with("journal/") && first.swap(false, Ordering::Relaxed)
            });
        })?;
    }
    Ok(moments.len())
}

#[test]
fn without_any_of_its_syncs_the_engine_breaks_its_promises() {
    for site in SITES.into_iter().filter(|site| *site != Site::NewState) {
        let shown = workloads::ALL.into_iter().find_map(|workload| shown_by(site, workload).err());
        match shown {
            Some(violation) => println!("{site:?}: {violation:?}\n"),
            None => {
                panic!("nobody notices when {site:?} is left out: the check is weak, or the sync needless")
            }
        }
    }
}

#[test]
fn the_scripts_reach_every_site() {
    let mut found = BTreeSet::new();
    for workload in workloads::ALL {
        found.extend(sites(&Exploration::of(workload).run.disk));
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), SITES);
}
