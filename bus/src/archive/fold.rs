//! Rows and documents in files, spread by the hash of their keys, so that what belongs together can be compared in a part of
//! the memory that everything would take.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use anabranch_model::table::Event as Happened;
use anabranch_model::{Error, Result, SequenceNumber};
use sha2::{Digest as _, Sha256};

use super::read::Archived;

/// Files. A hundred million changes make some 60 MB in each.
const FILES: usize = 256;
/// Bytes that wait for each file.
const BUFFER_BYTES: usize = 32 << 10;
const ROW: u8 = 0;
const CHANGE: u8 = 1;

/// Stands for the text of an image.
pub(super) type Print = [u8; 16];

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) sequence: SequenceNumber,
    pub(super) event: Happened,
    pub(super) new: Option<Print>,
    pub(super) old: Option<Print>,
}

/// All that is known of one key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The row in the table.
    pub(super) row: Option<Print>,
    /// Its changes in the archive, in order.
    pub(super) steps: Vec<Step>,
}

/// The files. They are gone when this is.
pub(super) struct Fold {
    files: Vec<BufWriter<File>>,
}

impl Fold {
    pub(super) fn new() -> Result<Self> {
        let file = |_| tempfile::tempfile().map(|file| BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Fold { files: (0..FILES).map(file).collect::<io::Result<_>>().map_err(no_room)? })
    }

    pub(super) fn row(&mut self, key: &str, image: &str) -> Result<()> {
        let mut record = vec![ROW];
        record.extend(print(image));
        self.push(key, &record)
    }

    pub(super) fn change(&mut self, change: &Archived) -> Result<()> {
        let mut record = vec![CHANGE];
        record.extend(change.sequence.to_be_bytes());
        record.push(match change.event {
            Happened::Insert => 0,
            Happened::Modify => 1,
            Happened::Remove => 2,
        });
        for image in [&change.new, &change.old] {
            record.push(u8::from(image.is_some()));
            record.extend(image.as_deref().map(print).unwrap_or_default());
        }
        self.push(&change.key, &record)
    }

    fn push(&mut self, key: &str, record: &[u8]) -> Result<()> {
        let file = &mut self.files[usize::from(print(key)[0]) % FILES];
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&length(key.as_bytes()))?;
            file.write_all(key.as_bytes())?;
            file.write_all(&length(record))?;
            file.write_all(record)
        };
        write(file).map_err(no_room)
    }

    /// What is known of all keys, one file after the other.
    pub(super) fn histories(self) -> impl Iterator<Item = Result<HashMap<String, History>>> {
        self.files.into_iter().map(|file| gather(file).map_err(no_room))
    }
}

fn gather(file: BufWriter<File>) -> io::Result<HashMap<String, History>> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut histories: HashMap<String, History> = HashMap::new();
    while let Some(key) = take(&mut file)? {
        let key = String::from_utf8(key).map_err(io::Error::other)?;
        let record = take(&mut file)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let history = histories.entry(key).or_default();
        match record.split_first() {
            Some((&ROW, image)) => history.row = image.try_into().ok(),
            Some((_, change)) => history.steps.push(step(change).ok_or(io::ErrorKind::InvalidData)?),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    for history in histories.values_mut() {
        history.steps.sort_by_key(|step| step.sequence);
    }
    Ok(histories)
}

fn take(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    file.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn step(record: &[u8]) -> Option<Step> {
    let (sequence, rest) = record.split_first_chunk::<32>()?;
    let (event, rest) = rest.split_first()?;
    let image = |bytes: &[u8]| -> Option<Option<Print>> {
        let (there, print) = bytes.split_first()?;
        let print: Print = print.try_into().ok()?;
        Some((*there == 1).then_some(print))
    };
    let (new, old) = rest.split_at_checked(17)?;
    Some(Step {
        sequence: SequenceNumber::from_be_bytes(*sequence),
        event: match event {
            0 => Happened::Insert,
            1 => Happened::Modify,
            2 => Happened::Remove,
            _ => return None,
        },
        new: image(new)?,
        old: image(old)?,
    })
}

/// What stands for a text.
pub(super) fn print(text: &str) -> Print {
    let mut print = Print::default();
    print.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    print
}

fn no_room(error: io::Error) -> Error {
    Error::Misconfigured(format!(
        "the folder for temporary files cannot be used: {error}; TMPDIR names another"
    ))
}
