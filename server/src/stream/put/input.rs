//! Where records come from, cut into chunks that fit into one append.
//!
//! A chunk is handed on as soon as reading more might wait, so that `something | anabranch stream put` stores each
//! line when it is written and not when there are five hundred.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anabranch_model::limits::{APPEND_RECORDS_MAX, RECORD_BYTES_MAX};
use anabranch_model::{Error, NewRecord};
use bytes::Bytes;

use super::key::Keys;
use crate::failure::Failure;
use crate::limits::PUT_BATCH_BYTES;

/// Bytes of one read.
const BUFFER_BYTES: usize = 256 << 10;

/// Records that are stored together.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) records: Vec<NewRecord>,
    /// The line of the first record, counted from one; none if the input has no lines.
    pub(super) first_line: Option<u64>,
}

/// A chunk, or why there are no more.
pub(super) type Item = Result<Chunk, Failure>;

/// What is read, and how.
pub(super) struct Source {
    reader: Box<dyn Read + Send>,
    name: String,
    lines: bool,
    length_bytes: Option<u64>,
}

impl Source {
    /// Chooses by the arguments; the default is standard input by lines.
    pub(super) fn choose(text: Option<&str>, file: Option<&Path>, lines: bool) -> Result<Self, Failure> {
        match (text, file) {
            (Some(text), _) => Ok(Source {
                reader: Box::new(io::Cursor::new(text.to_owned())),
                name: "the text".to_owned(),
                lines: false,
                length_bytes: None,
            }),
            (None, Some(path)) if path != Path::new("-") => Source::open(path, lines),
            (None, file) => {
                if file.is_none() && !lines && io::stdin().is_terminal() {
                    return Err(Failure::usage(
                        "there is nothing to store",
                        "give a text, a file with --file, or pipe lines into the command",
                    ));
                }
                Ok(Source {
                    reader: Box::new(io::stdin()),
                    name: "standard input".to_owned(),
                    lines: lines || file.is_none(),
                    length_bytes: None,
                })
            }
        }
    }

    fn open(path: &Path, lines: bool) -> Result<Self, Failure> {
        let failed = |error| Failure::io("read", path, &error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let length_bytes = metadata.is_file().then_some(metadata.len());
        Ok(Source { reader: Box::new(file), name: path.display().to_string(), lines, length_bytes })
    }

    /// How much there is to read, if that is known.
    pub(super) fn length_bytes(&self) -> Option<u64> {
        self.length_bytes
    }

    pub(super) fn chunks(self, keys: Keys) -> Chunks {
        Chunks {
            reader: BufReader::with_capacity(BUFFER_BYTES, self.reader),
            name: self.name,
            lines: self.lines,
            keys,
            line: 0,
            partial: Vec::new(),
            kept: None,
            ended: false,
        }
    }
}

/// The records of a source in chunks.
pub(super) struct Chunks {
    reader: BufReader<Box<dyn Read + Send>>,
    name: String,
    lines: bool,
    keys: Keys,
    /// The number of the last line that was read.
    line: u64,
    /// The beginning of a line whose end was not read yet.
    partial: Vec<u8>,
    /// What did not fit into the last chunk, or ended it.
    kept: Option<Result<NewRecord, Failure>>,
    ended: bool,
}

impl Chunks {
    /// The next chunk; nothing at the end of the input. A failure is the last item.
    pub(super) fn next_chunk(&mut self) -> Option<Item> {
        let mut records: Vec<NewRecord> = Vec::new();
        let mut bytes = 0;
        while !(records.len() == APPEND_RECORDS_MAX || self.would_wait() && !records.is_empty()) {
            match self.kept.take().or_else(|| self.next_record()) {
                Some(Ok(record)) if records.is_empty() || bytes + record.size() <= PUT_BATCH_BYTES => {
                    bytes += record.size();
                    records.push(record);
                }
                Some(Err(failure)) if records.is_empty() => {
                    self.ended = true;
                    return Some(Err(failure));
                }
                Some(other) => {
                    self.kept = Some(other);
                    break;
                }
                None => break,
            }
        }
        let behind = u64::from(self.kept.is_some()) + records.len() as u64;
        let first_line = self.lines.then(|| self.line + 1 - behind.min(self.line));
        (!records.is_empty()).then_some(Ok(Chunk { records, first_line }))
    }

    /// Whether the next record may need a read that blocks.
    fn would_wait(&self) -> bool {
        self.kept.is_none() && !self.ended && !self.reader.buffer().contains(&b'\n')
    }

    fn next_record(&mut self) -> Option<Result<NewRecord, Failure>> {
        if self.ended {
            return None;
        }
        let data = match if self.lines { self.next_line() } else { self.whole() } {
            Ok(Some(data)) => data,
            Ok(None) => {
                self.ended = true;
                return None;
            }
            Err(error) => return Some(Err(self.unreadable(&error))),
        };
        self.line += 1;
        Some(self.record(data))
    }

    fn record(&mut self, data: Bytes) -> Result<NewRecord, Failure> {
        let record = match self.keys.next(&data) {
            Ok(key) => NewRecord::new(key, data),
            Err(message) => return Err(self.refused(Error::Invalid(message))),
        };
        record.check().map_err(|error| self.refused(error))?;
        Ok(record)
    }

    /// The next line without its line feed. A line that is longer than a record may be is not read to its end.
    fn next_line(&mut self) -> io::Result<Option<Bytes>> {
        while self.partial.len() <= RECORD_BYTES_MAX {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                self.ended = true;
                let rest = std::mem::take(&mut self.partial);
                return Ok((!rest.is_empty()).then(|| Bytes::from(rest)));
            }
            match available.iter().position(|byte| *byte == b'\n') {
                Some(length) => {
                    self.partial.extend_from_slice(&available[..length]);
                    self.reader.consume(length + 1);
                    return Ok(Some(Bytes::from(std::mem::take(&mut self.partial))));
                }
                None => {
                    let length = available.len();
                    self.partial.extend_from_slice(available);
                    self.reader.consume(length);
                }
            }
        }
        Ok(Some(Bytes::from(std::mem::take(&mut self.partial))))
    }

    /// All of the input, or one byte more than a record may have.
    fn whole(&mut self) -> io::Result<Option<Bytes>> {
        let mut data = Vec::new();
        self.reader.by_ref().take(RECORD_BYTES_MAX as u64 + 1).read_to_end(&mut data)?;
        self.ended = true;
        Ok(Some(Bytes::from(data)))
    }

    fn refused(&self, error: Error) -> Failure {
        let failure = Failure::from(error);
        if self.lines { failure.at(format_args!("line {} of {}", self.line, self.name)) } else { failure }
    }

    fn unreadable(&mut self, error: &io::Error) -> Failure {
        self.ended = true;
        Failure::io("read", &PathBuf::from(&self.name), error)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::Timestamp;

    use super::*;

    /// Gives one piece a read, as a pipe does.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn chunks(reader: impl Read + Send + 'static, lines: bool) -> Chunks {
        let keys = Keys::choose(None, None, Timestamp::EPOCH);
        Source { reader: Box::new(reader), name: "test".into(), lines, length_bytes: None }.chunks(keys)
    }

    fn collect(mut chunks: Chunks) -> Vec<(Option<u64>, Vec<String>)> {
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next_chunk() {
            let chunk = chunk.unwrap();
            let text = |record: &NewRecord| String::from_utf8(record.data.to_vec()).unwrap();
            all.push((chunk.first_line, chunk.records.iter().map(text).collect()));
        }
        all
    }

    #[test]
    fn what_is_complete_is_handed_on_before_a_read_that_may_wait() {
        let pieces = Pieces(vec![b"a\nb\nc", b"c\n\nd\n", b"e"]);
        let expected = [
            (Some(1), vec!["a".to_owned(), "b".to_owned()]),
            (Some(3), vec!["cc".to_owned(), String::new(), "d".to_owned()]),
            (Some(6), vec!["e".to_owned()]),
        ];
        assert_eq!(collect(chunks(pieces, true)), expected);
    }

    #[test]
    fn chunks_keep_the_limits() {
        let many = "x\n".repeat(1_201);
        let sizes: Vec<usize> =
            collect(chunks(io::Cursor::new(many), true)).iter().map(|(_, records)| records.len()).collect();
        assert_eq!(sizes, [500, 500, 201]);
        let large = format!("{}\n", "y".repeat(100_000)).repeat(30);
        for (_, records) in collect(chunks(io::Cursor::new(large), true)) {
            assert!(records.iter().map(String::len).sum::<usize>() <= PUT_BATCH_BYTES);
        }
    }

    #[test]
    fn the_whole_input_may_be_one_record() {
        let all = collect(chunks(io::Cursor::new("a\nb\n"), false));
        assert_eq!(all, [(None, vec!["a\nb\n".to_owned()])]);
        assert_eq!(collect(chunks(io::Cursor::new(""), false)), [(None, vec![String::new()])]);
        assert!(collect(chunks(io::Cursor::new(""), true)).is_empty());
    }

    #[test]
    fn a_line_that_is_too_long_comes_behind_what_is_good() {
        let mut text = b"good\n".to_vec();
        text.extend(vec![b'x'; RECORD_BYTES_MAX + 1]);
        let mut chunks = chunks(io::Cursor::new(text), true);
        let good = chunks.next_chunk().unwrap().unwrap();
        assert_eq!((good.first_line, good.records.len()), (Some(1), 1));
        assert!(matches!(chunks.next_chunk(), Some(Err(Failure::Told(_)))));
        assert!(chunks.next_chunk().is_none());
    }
}
