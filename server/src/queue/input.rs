//! Where messages come from, cut into batches that fit into one send.
//!
//! A batch is handed on as soon as reading more might wait, so that `something | anabranch queue send` sends each line
//! when it is written and not when there are ten.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anabranch_model::limits::{MESSAGE_BATCH_MAX, MESSAGE_BYTES_MAX};
use bytes::Bytes;

use crate::failure::Failure;
use crate::limits::COPY_BYTES;

/// Bodies that are sent together, and the line of the first one if the input has lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) bodies: Vec<Bytes>,
    pub(super) first_line: Option<u64>,
}

/// Messages in batches.
pub(super) struct Batches {
    reader: BufReader<Box<dyn Read + Send>>,
    name: String,
    lines: bool,
    /// The number of the last line that was handed on.
    line: u64,
    /// What did not fit into the last batch.
    kept: Option<Bytes>,
    ended: bool,
    length_bytes: Option<u64>,
}

impl Batches {
    /// Chooses by the arguments; the default is standard input, one message a line.
    pub(super) fn choose(text: Option<&str>, file: Option<&Path>) -> Result<Self, Failure> {
        match (text, file) {
            (Some(text), _) => {
                Ok(Batches::new(Box::new(io::Cursor::new(text.to_owned())), "the text", false, None))
            }
            (None, Some(path)) if path != Path::new("-") => {
                let failed = |error| Failure::io("read", path, &error);
                let file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                let length = metadata.is_file().then_some(metadata.len());
                Ok(Batches::new(Box::new(file), &path.display().to_string(), true, length))
            }
            (None, None) if io::stdin().is_terminal() => Err(Failure::usage(
                "there is nothing to send",
                "give a text, a file with --file, or pipe lines into the command",
            )),
            (None, _) => Ok(Batches::new(Box::new(io::stdin()), "standard input", true, None)),
        }
    }

    fn new(reader: Box<dyn Read + Send>, name: &str, lines: bool, length_bytes: Option<u64>) -> Self {
        Batches {
            reader: BufReader::with_capacity(COPY_BYTES, reader),
            name: name.to_owned(),
            lines,
            line: 0,
            kept: None,
            ended: false,
            length_bytes,
        }
    }

    /// How much there is to read, if that is known.
    pub(super) fn length_bytes(&self) -> Option<u64> {
        self.length_bytes
    }

    /// The next batch; nothing at the end of the input. Each body counts `overhead` bytes more than it has.
    pub(super) fn next_batch(&mut self, overhead: usize) -> Option<Result<Batch, Failure>> {
        let mut bodies: Vec<Bytes> = Vec::new();
        let mut bytes = 0;
        while bodies.len() < MESSAGE_BATCH_MAX && (bodies.is_empty() || !self.would_wait()) {
            let body = match self.kept.take().map(Ok).or_else(|| self.next_body().transpose()) {
                Some(Ok(body)) => body,
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(Failure::io("read", &PathBuf::from(&self.name), &error)));
                }
                None => break,
            };
            let size = body.len() + overhead;
            if !bodies.is_empty() && bytes + size > MESSAGE_BYTES_MAX {
                self.kept = Some(body);
                break;
            }
            bytes += size;
            bodies.push(body);
        }
        let first_line = self.lines.then_some(self.line + 1);
        self.line += bodies.len() as u64;
        (!bodies.is_empty()).then_some(Ok(Batch { bodies, first_line }))
    }

    /// Whether the next body may need a read that blocks.
    fn would_wait(&self) -> bool {
        self.kept.is_none() && !self.ended && !self.reader.buffer().contains(&b'\n')
    }

    /// The next body without its line feed. What is longer than a message may be is not read to its end: the queue
    /// refuses it.
    fn next_body(&mut self) -> io::Result<Option<Bytes>> {
        if self.ended {
            return Ok(None);
        }
        let mut body = Vec::new();
        let mut limited = self.reader.by_ref().take(MESSAGE_BYTES_MAX as u64 + 2);
        if self.lines {
            limited.read_until(b'\n', &mut body)?;
        } else {
            limited.read_to_end(&mut body)?;
        }
        if self.lines && body.is_empty() {
            self.ended = true;
            return Ok(None);
        }
        self.ended = !self.lines || body.len() > MESSAGE_BYTES_MAX + 1;
        if self.lines && body.ends_with(b"\n") {
            body.pop();
        }
        Ok(Some(Bytes::from(body)))
    }
}

#[cfg(test)]
mod tests {
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

    fn batches(reader: impl Read + Send + 'static, lines: bool) -> Vec<(Option<u64>, Vec<String>)> {
        let mut batches = Batches::new(Box::new(reader), "test", lines, None);
        let text = |body: &Bytes| String::from_utf8_lossy(body).into_owned();
        std::iter::from_fn(|| batches.next_batch(0))
            .map(|batch| batch.map(|batch| (batch.first_line, batch.bodies.iter().map(text).collect())))
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[test]
    fn a_line_is_sent_when_it_is_there() {
        let pieces = Pieces(vec![b"a\n", b"b\nc", b"\n", b"d"]);
        let expected = [(1, vec!["a"]), (2, vec!["b"]), (3, vec!["c"]), (4, vec!["d"])]
            .map(|(line, bodies)| (Some(line), bodies.into_iter().map(str::to_owned).collect()));
        assert_eq!(batches(pieces, true), expected);
    }

    #[test]
    fn batches_keep_the_limits() {
        let counts = |text: String| -> Vec<usize> {
            batches(io::Cursor::new(text), true).iter().map(|(_, bodies)| bodies.len()).collect()
        };
        assert_eq!(counts("x\n".repeat(25)), [10, 10, 5]);
        assert_eq!(counts(String::new()), [0; 0]);
    }

    #[test]
    fn a_batch_fits_into_one_send() {
        let lines = [MESSAGE_BYTES_MAX - 100_000, 60_000, 60_000, 60_000].map(|length| "y".repeat(length));
        let batches = batches(io::Cursor::new(lines.join("\n")), true);
        let bytes = |(_, bodies): &(Option<u64>, Vec<String>)| bodies.iter().map(String::len).sum::<usize>();
        assert!(batches.iter().all(|batch| bytes(batch) <= MESSAGE_BYTES_MAX), "{}", batches.len());
        assert_eq!(batches.into_iter().flat_map(|(_, bodies)| bodies).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn an_endless_line_ends_the_input() {
        let batches = batches(io::Cursor::new("z".repeat(3 * MESSAGE_BYTES_MAX)), true);
        assert_eq!(batches.len(), 1);
        assert!(batches[0].1[0].len() > MESSAGE_BYTES_MAX);
    }

    #[test]
    fn a_text_is_one_message() {
        assert_eq!(batches(io::Cursor::new("a\nb\n"), false), [(None, vec!["a\nb\n".to_owned()])]);
    }
}
