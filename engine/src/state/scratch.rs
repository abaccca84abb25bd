//! A file whose changes stay in memory. redb writes to a file as soon as it opens it, and a directory that is open for reading
//! only must stay as it is.
//!
//! What must hold: the file below is only read, and what is read here is what would be read there after the same writes.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

use anabranch_model::DiskFile;
use parking_lot::RwLock;

const PAGE_BYTES: usize = 4096;

/// The file.
pub(super) struct Scratch {
    below: Option<Arc<dyn DiskFile>>,
    changed: RwLock<Changed>,
}

/// What is no longer as it is below.
struct Changed {
    length: u64,
    /// How much of the file below counts: what was cut off stays away.
    below_bytes: u64,
    /// By their numbers.
    pages: BTreeMap<u64, Box<[u8; PAGE_BYTES]>>,
}

impl Scratch {
    /// The same as `below` until something is written.
    pub(super) fn over(below: Arc<dyn DiskFile>) -> io::Result<Scratch> {
        let length = below.len()?;
        let changed = Changed { length, below_bytes: length, pages: BTreeMap::new() };
        Ok(Scratch { below: Some(below), changed: RwLock::new(changed) })
    }

    /// A file with nothing in it.
    pub(super) fn empty() -> Scratch {
        let changed = Changed { length: 0, below_bytes: 0, pages: BTreeMap::new() };
        Scratch { below: None, changed: RwLock::new(changed) }
    }

    /// Fills `buffer` with what lies below at `offset`, and zeros where nothing does.
    fn read_below(&self, below_bytes: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let there = below_bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (there, beyond) = buffer.split_at_mut(there);
        beyond.fill(0);
        match &self.below {
            Some(below) if !there.is_empty() => below.read_exact_at(offset, there),
            _ => Ok(()),
        }
    }
}

/// The pieces of a range that lie in one page each: the page, where in it, and where in the range.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES as u64) as usize;
        let bytes = (PAGE_BYTES - within).min(length - done);
        let piece = (at / PAGE_BYTES as u64, within, done..done + bytes);
        done += bytes;
        (bytes > 0).then_some(piece)
    })
}

impl DiskFile for Scratch {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed.read().length)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let changed = self.changed.read();
        if offset.saturating_add(buffer.len() as u64) > changed.length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.read_below(changed.below_bytes, offset, buffer)?;
        for (number, within, part) in pieces(offset, buffer.len()) {
            if let Some(page) = changed.pages.get(&number) {
                let bytes = part.len();
                buffer[part].copy_from_slice(&page[within..within + bytes]);
            }
        }
        Ok(())
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let mut changed = self.changed.write();
        let mut offset = offset;
        for part in parts {
            for (number, within, piece) in pieces(offset, part.len()) {
                if !changed.pages.contains_key(&number) {
                    let mut page = Box::new([0; PAGE_BYTES]);
                    self.read_below(changed.below_bytes, number * PAGE_BYTES as u64, &mut page[..])?;
                    changed.pages.insert(number, page);
                }
                if let Some(page) = changed.pages.get_mut(&number) {
                    page[within..within + piece.len()].copy_from_slice(&part[piece]);
                }
            }
            offset += part.len() as u64;
        }
        changed.length = changed.length.max(offset);
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut changed = self.changed.write();
        changed.length = changed.length.max(length);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut changed = self.changed.write();
        changed.length = length;
        changed.below_bytes = changed.below_bytes.min(length);
        let (last, within) = (length / PAGE_BYTES as u64, (length % PAGE_BYTES as u64) as usize);
        changed.pages.split_off(&(last + u64::from(within > 0)));
        if let Some(page) = changed.pages.get_mut(&last) {
            page[within..].fill(0);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{Disk, Open};
    use anabranch_sim::SimDisk;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Resize(u64),
        Allocate(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || 0..5 * PAGE_BYTES as u64;
        let bytes = (1..=255_u8, 0..2 * PAGE_BYTES).prop_map(|(byte, count)| vec![byte; count]);
        prop_oneof![
            3 => (at(), bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            1 => at().prop_map(Step::Resize),
            1 => at().prop_map(Step::Allocate),
        ]
    }

    fn contents(file: &dyn DiskFile) -> Vec<u8> {
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_exact_at(0, &mut bytes).expect("read");
        bytes
    }

    proptest! {
        #[test]
        fn it_reads_as_a_file_does_and_leaves_the_one_below_alone(
            below in 0..3 * PAGE_BYTES, steps in proptest::collection::vec(step(), 0..20), at in 0..6 * PAGE_BYTES as u64,
        ) {
            let disk = SimDisk::new();
            let file = |name| disk.open(name, Open::CreateNew).expect("made");
            let (lower, plain) = (file("lower"), file("plain"));
            let before = vec![7; below];
            for file in [&lower, &plain] {
                file.write_all_at(0, &[IoSlice::new(&before)]).expect("written");
            }
            let scratch = Scratch::over(lower.clone()).expect("it is there");
            for step in steps {
                for file in [&scratch as &dyn DiskFile, &*plain] {
                    match &step {
                        Step::Write(at, bytes) => {
                            let (one, two) = bytes.split_at(bytes.len() / 3);
                            file.write_all_at(*at, &[IoSlice::new(one), IoSlice::new(two)]).expect("written");
                        }
                        Step::Resize(length) => file.set_len(*length).expect("resized"),
                        Step::Allocate(length) => file.allocate(*length).expect("allocated"),
                    }
                }
                prop_assert!(contents(&scratch) == contents(&*plain));
            }
            let mut ours = [0; 100];
            let mut theirs = [0; 100];
            let read = (scratch.read_exact_at(at, &mut ours), plain.read_exact_at(at, &mut theirs));
            prop_assert_eq!(read.0.is_ok(), read.1.is_ok());
            prop_assert_eq!(ours, theirs);
            prop_assert!(contents(&*lower) == before);
        }
    }
}
