//! Reconciles a table with its archive.
//!
//! The table is read first and the archive behind it, so that what changes meanwhile is in the archive rather than missing
//! there. Both go into files by the hash of their keys (`fold`), and each file is compared by itself: memory is bounded by a
//! part of the whole, however large it is. What differs is looked at a second time, for the table may have moved on.
//!
//! A table that was deleted took its rows with it, and no change tells of that. So changes from before the table was made, which
//! are of an older one of its name, are counted and not compared.
//!
//! For each key the documents are played in order. Each has to begin where the one before ended, and the last one has to end
//! with the row that the table has.

use std::collections::{BTreeMap, HashMap};

use anabranch_model::table::{Event as Happened, KeySchema, Reading, Scan};
use anabranch_model::{
    BlobKey, BlobStore, BucketName, Result, SequenceNumber, TableName, TableStore, Timestamp,
};
use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;

use super::document::Documents;
use super::fold::{Fold, History, Print, print};
use super::read;
use super::template::KeyTemplate;

/// Blobs that are read at the same time.
const AT_ONCE: usize = 32;
/// What they may take together. A larger one is read alone.
const BODY_KIBIBYTES_MAX: u32 = 64 << 10;
/// Differences that are told one by one; the rest is counted.
const TOLD_MAX: usize = 10_000;

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// The archive does not have it, or not its last change.
    Missing,
    /// The archive has one change twice.
    Duplicated,
    /// The archive has it differently from the table.
    Altered,
    /// Two changes do not follow from each other: one between them is missing, or one of them was altered.
    Broken,
    /// The archive has it and the table does not.
    Extra,
    /// A blob of the archive cannot be read.
    Unreadable,
}

impl Found {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            Found::Missing => "missing",
            Found::Duplicated => "duplicated",
            Found::Altered => "altered",
            Found::Broken => "broken",
            Found::Extra => "extra",
            Found::Unreadable => "unreadable",
        }
    }
}

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What is wrong.
    pub found: Found,
    /// The key of the row as JSON, or that of the blob.
    pub key: String,
    /// The change that it is about.
    pub sequence: Option<SequenceNumber>,
    /// The same for a person.
    pub what: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows of the table.
    pub rows: u64,
    /// Blobs of the archive.
    pub blobs: u64,
    /// Documents in them.
    pub documents: u64,
    /// Those among them that are of an older table of this name.
    pub older: u64,
    /// Rows that changed while they were compared, and so prove nothing.
    pub moving: u64,
    /// How much was found of each kind.
    pub counts: BTreeMap<Found, u64>,
    /// The first differences, in no particular order.
    pub differences: Vec<Difference>,
}

impl Verification {
    /// Whether table and archive tell the same.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    fn add(&mut self, difference: Difference) {
        *self.counts.entry(difference.found).or_default() += 1;
        if self.differences.len() < TOLD_MAX {
            self.differences.push(difference);
        }
    }
}

/// Who wants to know how far it is: rows, and documents.
pub type Watch<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// A table and its archive.
pub struct Pair<'a> {
    /// Where the table is.
    pub tables: &'a dyn TableStore,
    /// The table.
    pub table: &'a TableName,
    /// Where the archive is.
    pub blobs: &'a dyn BlobStore,
    /// Its bucket.
    pub bucket: &'a BucketName,
    /// Its keys.
    pub template: &'a KeyTemplate,
    /// How changes are told of in it.
    pub documents: &'a Documents,
    /// Whether changes were written down only when the table had rows already, or the archive began later: a row that the
    /// archive says nothing about is then no difference.
    pub partial: bool,
}

/// Compares a table with its archive.
pub async fn verify(pair: &Pair<'_>, watch: Watch<'_>) -> Result<Verification> {
    let mut verification = Verification::default();
    let summary = pair.tables.table(pair.table).await?;
    let (key, made) = (summary.options.key, summary.created_at);
    let mut fold = Fold::new()?;
    pair.read_table(&key, async |row_key, image| {
        verification.rows += 1;
        watch(verification.rows, 0);
        fold.row(row_key, image)
    })
    .await?;
    pair.read_archive(made, &mut fold, &mut verification, watch).await?;
    let mut doubts = HashMap::new();
    for histories in fold.histories() {
        for (key, history) in histories? {
            judge(pair.partial, key, &history, &mut verification, &mut doubts);
        }
        tokio::task::yield_now().await;
    }
    pair.settle(&key, doubts, &mut verification).await?;
    Ok(verification)
}

/// Where the documents of a key leave its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was said about it yet.
    Unknown,
    Gone,
    /// It exists, and looks so, where images say.
    Exists(Option<Print>),
}

/// A difference between a row and its last document, which may be one of time only.
struct Doubt {
    state: State,
    row: Option<Print>,
    difference: Difference,
}

fn judge(
    partial: bool,
    key: String,
    history: &History,
    verification: &mut Verification,
    doubts: &mut HashMap<String, Doubt>,
) {
    let state = play(partial, &key, history, verification);
    let last = history.steps.last().map(|step| step.sequence);
    let (found, what) = match (history.row, state) {
        (Some(row), State::Exists(Some(image))) if row != image => {
            (Found::Altered, "the last document of this row is not what the table holds")
        }
        (Some(_), State::Unknown) if !partial => (Found::Missing, "the archive says nothing about this row"),
        (Some(_), State::Gone) => {
            (Found::Missing, "the archive ends with the removal of this row, and it is there")
        }
        (None, State::Exists(_)) => {
            (Found::Extra, "the archive ends with this row, and the table does not have it")
        }
        _ => return,
    };
    let difference = Difference { found, key: key.clone(), sequence: last, what: what.to_owned() };
    match doubts.len() < TOLD_MAX {
        true => drop(doubts.insert(key, Doubt { state, row: history.row, difference })),
        false => verification.add(difference),
    }
}

/// Plays the documents of a key, and notes where one does not follow from the one before.
fn play(partial: bool, key: &str, history: &History, verification: &mut Verification) -> State {
    let mut state = State::Unknown;
    let mut before: Option<SequenceNumber> = None;
    for step in &history.steps {
        let mut note = |found, what: String| {
            verification.add(Difference { found, key: key.to_owned(), sequence: Some(step.sequence), what });
        };
        if before == Some(step.sequence) {
            note(Found::Duplicated, format!("the change {} is in the archive more than once", step.sequence));
            continue;
        }
        match (step.event, state) {
            (Happened::Insert, State::Exists(_)) => {
                note(Found::Broken, "the row is inserted though it exists: a removal is missing".to_owned());
            }
            (Happened::Modify | Happened::Remove, State::Gone) => {
                note(
                    Found::Broken,
                    "the row is changed though it is gone: an insertion is missing".to_owned(),
                );
            }
            (Happened::Modify | Happened::Remove, State::Unknown) if !partial => {
                note(
                    Found::Broken,
                    "the first document is no insertion: earlier ones are missing".to_owned(),
                );
            }
            (_, State::Exists(Some(image))) if step.old.is_some_and(|old| old != image) => {
                let what = "the old image is not the new one of the change before: one between them is missing, or one \
                            of them was altered";
                note(Found::Broken, what.to_owned());
            }
            _ => {}
        }
        state = match step.event {
            Happened::Insert | Happened::Modify => State::Exists(step.new),
            Happened::Remove => State::Gone,
        };
        before = Some(step.sequence);
    }
    state
}

/// Whether a change was made before the table was. Some services tell of a change no more than its second, and none of those makes
/// a table again within one.
fn is_before(at: Timestamp, made: Timestamp) -> bool {
    let precision = if at.as_millis().is_multiple_of(1_000) { 1_000 } else { 1 };
    at.as_millis() < made.as_millis() / precision * precision
}

impl Pair<'_> {
    /// Hands the key and the image of every row to `take`.
    async fn read_table(
        &self,
        key: &KeySchema,
        mut take: impl AsyncFnMut(&str, &str) -> Result<()>,
    ) -> Result<()> {
        let mut start = None;
        loop {
            let reading = Reading { consistent: true, start, ..Reading::default() };
            let page = self.tables.scan(self.table, Scan { segment: None, reading }).await?;
            for item in &page.items {
                let row = self.documents.row(item, key)?;
                take(&row.key, &row.image).await?;
            }
            match page.last {
                Some(last) => start = Some(last),
                None => return Ok(()),
            }
        }
    }

    async fn read_archive(
        &self,
        made: Timestamp,
        fold: &mut Fold,
        verification: &mut Verification,
        watch: Watch<'_>,
    ) -> Result<()> {
        let room = Semaphore::new(BODY_KIBIBYTES_MAX as usize);
        let mut after = None;
        loop {
            let (keys, next) = read::page(self.blobs, self.bucket, self.template, after).await?;
            let bodies = stream::iter(keys).map(async |(key, size): (BlobKey, u64)| {
                // Whoever comes first gets room first, and what comes first is done with first, so nobody waits for ever.
                let share = u32::try_from(size.div_ceil(1 << 10)).unwrap_or(u32::MAX).min(BODY_KIBIBYTES_MAX);
                let held = room.acquire_many(share).await;
                let body = read::whole(self.blobs, self.bucket, &key).await;
                (key, body, held)
            });
            let mut bodies = std::pin::pin!(bodies.buffered(AT_ONCE));
            while let Some((key, body, _held)) = bodies.next().await {
                verification.blobs += 1;
                let body = body?;
                for document in read::documents(&body) {
                    match document {
                        Ok(document) => {
                            verification.documents += 1;
                            match document.at.is_some_and(|at| is_before(at, made)) {
                                true => verification.older += 1,
                                false => fold.change(&document)?,
                            }
                        }
                        Err(why) => verification.add(Difference {
                            found: Found::Unreadable,
                            key: key.as_str().to_owned(),
                            sequence: None,
                            what: why,
                        }),
                    }
                }
                watch(verification.rows, verification.documents);
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Looks at what differed once more: a row that has become what the archive says was only read too early.
    async fn settle(
        &self,
        key: &KeySchema,
        mut doubts: HashMap<String, Doubt>,
        verification: &mut Verification,
    ) -> Result<()> {
        if doubts.is_empty() {
            return Ok(());
        }
        let mut now: HashMap<String, Print> = HashMap::new();
        self.read_table(key, async |row_key, image| {
            if doubts.contains_key(row_key) {
                now.insert(row_key.to_owned(), print(image));
            }
            Ok(())
        })
        .await?;
        for (key, doubt) in doubts.drain() {
            let row = now.get(&key).copied();
            let agrees = match (row, doubt.state) {
                (Some(row), State::Exists(Some(image))) => row == image,
                (Some(_), State::Exists(None)) | (None, State::Gone | State::Unknown) => true,
                _ => false,
            };
            if agrees {
                continue;
            }
            match row == doubt.row {
                true => verification.add(doubt.difference),
                false => verification.moving += 1,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::Archived;
    use super::*;

    const ROWS: u128 = 100_000;

    /// A hundred thousand rows with two changes each, and what is wrong with them.
    fn compared(plant: impl Fn(&mut Vec<Archived>)) -> Verification {
        let mut changes = Vec::new();
        let mut fold = Fold::new().unwrap();
        for row in 0..ROWS {
            let (key, first, second) = (format!("{{\"id\":{row}}}"), format!("a{row}"), format!("b{row}"));
            fold.row(&key, &second).unwrap();
            let insert = Archived {
                key: key.clone(),
                sequence: SequenceNumber::from_u128(row),
                at: None,
                event: Happened::Insert,
                new: Some(first.clone()),
                old: None,
            };
            let modify = Archived {
                sequence: SequenceNumber::from_u128(ROWS + row),
                event: Happened::Modify,
                new: Some(second),
                old: Some(first),
                ..insert.clone()
            };
            changes.extend([insert, modify]);
        }
        plant(&mut changes);
        for change in &changes {
            fold.change(change).unwrap();
        }
        let (mut verification, mut doubts) = (Verification::default(), HashMap::new());
        for histories in fold.histories() {
            for (key, history) in histories.unwrap() {
                judge(false, key, &history, &mut verification, &mut doubts);
            }
        }
        doubts.into_values().for_each(|doubt| verification.add(doubt.difference));
        verification
    }

    #[test]
    fn one_wrong_row_among_very_many_is_found() {
        assert!(compared(|_| {}).is_clean());
        let place = 2 * 54_321;
        let found = compared(|changes| {
            // Of five rows: both changes gone, the last gone, one twice, one altered, the first gone.
            changes[place + 21].new = Some("c".to_owned());
            changes.push(changes[place + 10].clone());
            changes.remove(place + 30);
            changes.remove(place + 5);
            changes.drain(place..place + 2);
        });
        let counts = BTreeMap::from([
            (Found::Missing, 1),
            (Found::Duplicated, 1),
            (Found::Altered, 2),
            (Found::Broken, 1),
        ]);
        assert_eq!(found.counts, counts, "{found:#?}");
        let keys: Vec<_> = found.differences.iter().map(|difference| difference.key.as_str()).collect();
        for row in [54_321, 54_323, 54_326, 54_331, 54_336] {
            assert!(keys.contains(&format!("{{\"id\":{row}}}").as_str()), "{row}: {keys:?}");
        }
    }
}
