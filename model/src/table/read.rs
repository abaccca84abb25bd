//! Reading items: one by its key, a stretch of a key, or everything. An implementation adds the walking.

use super::expression::{Condition, KeyCondition, Projection};
use super::key::{Key, KeySchema};
use super::options::{IndexOptions, IndexProjection, IndexScope, TableOptions};
use super::room;
use super::value::Item;
use crate::error::{Error, Result};
use crate::limits;
use crate::name::{IndexName, excerpt};

/// A read of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The attributes of its key.
    pub key: Item,
    /// Whether every write that was acknowledged before must be seen.
    pub consistent: bool,
    /// The wanted parts; all without it.
    pub projection: Option<Projection>,
}

/// What a batch of reads says about one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// The item.
    Item(Item),
    /// There is no such item.
    Missing,
    /// There was no room for it in the batch; ask again.
    NotRead,
}

/// A read of the items of one hash value, in the order of their range values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which items are looked at.
    pub key: KeyCondition,
    /// From the largest range value down.
    pub backward: bool,
    /// Where, how much, and what of it.
    pub reading: Reading,
}

/// A read of all items, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scan {
    /// One of several equal parts; everything without it.
    pub segment: Option<Segment>,
    /// Where, how much, and what of it.
    pub reading: Reading,
}

/// What queries and scans share.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reading {
    /// The index to read; the table without it.
    pub index: Option<IndexName>,
    /// Whether every write that was acknowledged before must be seen; not of a global index.
    pub consistent: bool,
    /// Items that do not fulfil it are looked at but not returned.
    pub filter: Option<Condition>,
    /// The wanted parts; everything that the table or index shows without it.
    pub projection: Option<Projection>,
    /// Most items that are looked at; as many as a page holds without it.
    pub limit: Option<usize>,
    /// The `last` of an earlier page; reading goes on behind it.
    pub start: Option<Item>,
    /// Whether the items are only counted.
    pub count_only: bool,
    /// Everything that the table has of the items, though the index, which must be local, may show less.
    pub whole: bool,
}

/// One of several equal parts of a table, cut by the hashes of hash values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which one; the first is zero.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// A page of a query or scan.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ItemPage {
    /// The items that fulfil the filter; none if they are only counted.
    pub items: Vec<Item>,
    /// How many fulfil the filter.
    pub returned: usize,
    /// How many were looked at.
    pub evaluated: usize,
    /// How large those were together, before anything was filtered or left out. A store that is not told counts what it
    /// returns.
    pub bytes: usize,
    /// The sizes of items that were taken from the table, because a local index does not show all that is wanted of them;
    /// of the entries of the index they are apart.
    pub fetched: Vec<usize>,
    /// What to start the following page with; none at the end. A page that is full may have it though nothing follows.
    pub last: Option<Item>,
}

impl Get {
    /// The item with this key.
    pub fn new(key: Item) -> Self {
        Get { key, consistent: false, projection: None }
    }

    /// This read, seeing every acknowledged write.
    pub fn consistent(mut self) -> Self {
        self.consistent = true;
        self
    }

    /// These parts of the item.
    pub fn only(mut self, projection: Projection) -> Self {
        self.projection = Some(projection);
        self
    }

    /// The key, if a table may be asked for this.
    pub fn check(&self, options: &TableOptions) -> Result<Key> {
        self.projection.as_ref().map_or(Ok(()), Projection::check)?;
        options.key.exact_key(&self.key)
    }

    /// The wanted parts of the item.
    pub fn show(&self, item: Item) -> Result<Item> {
        match &self.projection {
            Some(projection) => projection.apply(&item),
            None => Ok(item),
        }
    }
}

/// Whether one transaction may read so much.
pub fn check_read_bytes(bytes: usize) -> Result<()> {
    let limit = limits::TRANSACTION_BYTES_MAX;
    if bytes > limit {
        return Err(Error::Invalid(format!(
            "a transaction of reads has {bytes} bytes: at most {limit} are allowed"
        )));
    }
    Ok(())
}

impl Query {
    /// The items that fulfil a condition on their key, in ascending order.
    pub fn new(key: KeyCondition) -> Self {
        Query { key, backward: false, reading: Reading::default() }
    }

    /// This query from the end.
    pub fn backward(mut self) -> Self {
        self.backward = true;
        self
    }

    /// Whether a table may be asked for this, in the index given or in the table itself.
    pub fn check(&self, options: &TableOptions, index: Option<&IndexOptions>) -> Result<()> {
        let schema = index.map_or(&options.key, |index| &index.key);
        self.key.bounds(schema)?;
        self.reading.check(options, index)?;
        if let Some(filter) = &self.reading.filter {
            check_filter(filter, schema)?;
        }
        match &self.reading.start {
            Some(start) if !self.key.holds(start) => {
                Err(Error::Invalid("the start lies outside of what the query covers".to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// A query finds items by their key; a filter that looks at the key would do it late and slowly.
fn check_filter(filter: &Condition, schema: &KeySchema) -> Result<()> {
    let mut key_part = None;
    filter.each_path(&mut |path| {
        if schema.names(&path.attribute) {
            key_part = Some(path.attribute.clone());
        }
    });
    match key_part {
        Some(name) => {
            let name = excerpt(&name);
            Err(Error::Invalid(format!("the filter of a query looks at {name}, which is part of the key")))
        }
        None => Ok(()),
    }
}

impl Scan {
    /// All items.
    pub fn new() -> Self {
        Scan::default()
    }

    /// One of `of` parts.
    pub fn segment(mut self, number: u32, of: u32) -> Self {
        self.segment = Some(Segment { number, of });
        self
    }

    /// Whether a table may be asked for this, in the index given or in the table itself.
    pub fn check(&self, options: &TableOptions, index: Option<&IndexOptions>) -> Result<()> {
        self.reading.check(options, index)?;
        let Some(segment) = self.segment else { return Ok(()) };
        segment.check()?;
        let schema = index.map_or(&options.key, |index| &index.key);
        match &self.reading.start {
            Some(start) if !segment.contains(&schema.key_of(start)?) => {
                Err(Error::Invalid("the start lies in another segment".to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// What is said of a query or a scan in the same words.
macro_rules! reading_words {
    ($($request:ty),+) => {
        $(impl $request {
            /// This read in an index.
            pub fn index(mut self, index: &IndexName) -> Self {
                self.reading.index = Some(index.clone());
                self
            }

            /// This read, seeing every acknowledged write.
            pub fn consistent(mut self) -> Self {
                self.reading.consistent = true;
                self
            }

            /// Those items that fulfil a condition.
            pub fn filter(mut self, filter: Condition) -> Self {
                self.reading.filter = Some(filter);
                self
            }

            /// These parts of the items.
            pub fn only(mut self, projection: Projection) -> Self {
                self.reading.projection = Some(projection);
                self
            }

            /// A page for which this many items at most are looked at.
            pub fn limit(mut self, items: usize) -> Self {
                self.reading.limit = Some(items);
                self
            }

            /// The page behind the one that ended here.
            pub fn start(mut self, last: Option<Item>) -> Self {
                self.reading.start = last;
                self
            }

            /// The items as the table has them, though a local index shows less.
            pub fn whole(mut self) -> Self {
                self.reading.whole = true;
                self
            }

            /// How many items there are.
            pub fn count_only(mut self) -> Self {
                self.reading.count_only = true;
                self
            }
        })+
    };
}

reading_words!(Query, Scan);

impl Reading {
    fn check(&self, options: &TableOptions, index: Option<&IndexOptions>) -> Result<()> {
        self.filter.as_ref().map_or(Ok(()), Condition::check)?;
        self.projection.as_ref().map_or(Ok(()), Projection::check)?;
        if self.limit == Some(0) {
            return Err(Error::Invalid("a page for which nothing is looked at leads nowhere".to_string()));
        }
        if self.count_only && self.projection.is_some() {
            return Err(Error::Invalid("items that are only counted have no projection".to_string()));
        }
        if let Some(start) = &self.start {
            options.place(index, start)?;
            if options.place_attributes(index, start).len() != start.len() {
                return Err(Error::Invalid(
                    "the start has attributes that are not part of the key".to_string(),
                ));
            }
        }
        let Some(index) = index.filter(|index| index.scope == IndexScope::Global) else { return Ok(()) };
        if self.consistent {
            return Err(Error::Invalid(format!(
                "the global index `{}` is not read consistently",
                index.name
            )));
        }
        if self.whole && index.projection != IndexProjection::All {
            return Err(Error::Invalid(format!(
                "the global index `{}` does not show whole items",
                index.name
            )));
        }
        let paths = self.projection.iter().flat_map(|projection| &projection.0);
        match paths.into_iter().find(|path| !options.shows(index, &path.attribute)) {
            Some(path) => {
                Err(Error::Invalid(format!("the global index `{}` does not show `{path}`", index.name)))
            }
            None => Ok(()),
        }
    }
}

impl Reading {
    /// Whether a local index does not show all that is wanted, so that it is taken from the table. For a filter nothing
    /// is taken from there: it looks at what the index shows.
    pub fn looks_up(&self, options: &TableOptions, index: &IndexOptions) -> bool {
        if index.scope == IndexScope::Global || index.projection == IndexProjection::All {
            return false;
        }
        let mut paths = self.projection.iter().flat_map(|projection| &projection.0);
        self.whole || paths.any(|path| !options.shows(index, &path.attribute))
    }
}

impl Segment {
    /// Whether there is such a segment.
    pub fn check(&self) -> Result<()> {
        let Segment { number, of } = *self;
        if of == 0 || of > limits::SCAN_SEGMENTS_MAX {
            let limit = limits::SCAN_SEGMENTS_MAX;
            return Err(Error::Invalid(format!("a table is cut into 1 to {limit} segments, not {of}")));
        }
        if number >= of {
            return Err(Error::Invalid(format!("there is no segment {number} of {of}: the first one is 0")));
        }
        Ok(())
    }

    /// Whether an item with this key, of the table or of the index that is read, is in the segment.
    pub fn contains(&self, key: &Key) -> bool {
        let place = key.place();
        self.first() <= place && self.last() >= place
    }

    /// The smallest [`Key::place`] in it.
    pub fn first(&self) -> u64 {
        self.cut(self.number)
    }

    /// The largest [`Key::place`] in it.
    pub fn last(&self) -> u64 {
        if self.number + 1 == self.of { u64::MAX } else { self.cut(self.number + 1) - 1 }
    }

    fn cut(&self, number: u32) -> u64 {
        ((u128::from(number) << 64) / u128::from(self.of)) as u64
    }
}

/// A page that is being filled.
#[derive(Debug)]
pub struct PageFilling<'a> {
    reading: &'a Reading,
    options: &'a TableOptions,
    index: Option<&'a IndexOptions>,
    page: ItemPage,
    /// Bytes of the page that are taken.
    taken: usize,
    /// Items are those of the table, of which the index shows less.
    looks_up: bool,
    /// The item that was looked at last, where the page does not have it as a whole.
    left_out: Option<Item>,
}

impl<'a> PageFilling<'a> {
    /// An empty page of a query or scan of a table, or of the index given.
    pub fn new(reading: &'a Reading, options: &'a TableOptions, index: Option<&'a IndexOptions>) -> Self {
        let looks_up = index.is_some_and(|index| reading.looks_up(options, index));
        PageFilling { reading, options, index, page: ItemPage::default(), taken: 0, looks_up, left_out: None }
    }

    /// Looks at the next item, which is all that the table or index shows of it, or all that the table has of it where
    /// the reading [looks it up](Reading::looks_up). Says whether there was room; if not,
    /// the page ends before this item.
    pub fn look_at(&mut self, item: Item) -> Result<bool> {
        if self.is_full() {
            return Ok(false);
        }
        let range = self.options.key.range.as_ref().map(|range| range.name.as_str());
        self.taken += room::taken(&item, range);
        match self.index.filter(|_| self.looks_up) {
            Some(index) => {
                self.page.bytes += self.options.shown(index, &item).map_or(0, |shown| shown.size());
                self.page.fetched.push(item.size());
            }
            None => self.page.bytes += item.size(),
        }
        self.page.evaluated += 1;
        let returned = self.reading.filter.as_ref().is_none_or(|filter| self.fulfils(filter, &item));
        self.page.returned += usize::from(returned);
        self.left_out = match &self.reading.projection {
            _ if !returned || self.reading.count_only => Some(item),
            Some(projection) => {
                self.page.items.push(projection.apply(&item)?);
                Some(item)
            }
            None => {
                self.page.items.push(item);
                None
            }
        };
        Ok(true)
    }

    /// A page ends with the item with which it reaches its limits.
    fn is_full(&self) -> bool {
        self.reading.limit.is_some_and(|limit| self.page.evaluated >= limit)
            || self.taken >= limits::QUERY_BYTES_MAX
    }

    /// Whether what the table or index shows of an item fulfils a filter.
    fn fulfils(&self, filter: &Condition, item: &Item) -> bool {
        match self.index.filter(|_| self.looks_up) {
            Some(index) => self.options.shown(index, item).is_some_and(|shown| filter.holds(&shown)),
            None => filter.holds(item),
        }
    }

    /// The page, which ended because there was no room for another item.
    pub fn full(self) -> ItemPage {
        let last = self.left_out.as_ref().or(self.page.items.last());
        ItemPage { last: last.map(|item| self.options.place_attributes(self.index, item)), ..self.page }
    }

    /// The page, which ended because there was no other item. It names a last one only if it is full.
    pub fn complete(self) -> ItemPage {
        if self.is_full() { self.full() } else { self.page }
    }
}
