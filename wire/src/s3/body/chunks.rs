//! Bodies in chunks (`aws-chunked`), decoded as they come.
//!
//! ```text
//!   10000;chunk-signature=ad80…\r\n   the size in hexadecimal digits; the signature if chunks are signed
//!   …65,536 bytes…\r\n
//!   0;chunk-signature=b6c6…\r\n       the last chunk has no bytes
//!   x-amz-checksum-crc32:AAAAAA==\r\n  what follows it, if anything
//!   x-amz-trailer-signature:63bd…\r\n  if it is signed
//!   \r\n
//! ```
//!
//! Bytes go on before the signature of their chunk is compared: a body that ends with an error leaves no trace.

use bytes::{Buf, Bytes};
use sha2::{Digest, Sha256};

use crate::auth::{Refusal, Seed};
use crate::dispatch::Service;
use crate::fault::Fault;
use crate::limits::CHUNK_LINE_BYTES_MAX;
use crate::s3::errors::incomplete_body;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The line before a chunk.
    Size,
    /// So many bytes.
    Data(u64),
    /// The end of line behind the bytes.
    Behind,
    /// A line behind the last chunk.
    Trailer,
    /// Nothing.
    Done,
}

/// A body that is being decoded.
pub(crate) struct Chunks {
    state: State,
    /// What there is of the present line.
    line: Vec<u8>,
    /// Bytes of the lines behind the last chunk.
    trailer_bytes: usize,
    signed: bool,
    /// What signatures are compared with, if there are keys.
    seed: Option<Seed>,
    /// The hash and the signature of the present chunk.
    chunk: (Sha256, String),
    trailers: Vec<(String, String)>,
}

impl Chunks {
    /// A body in chunks, signed or not. Without a seed signatures are read and not compared.
    pub(crate) fn new(signed: bool, seed: Option<Seed>) -> Self {
        Chunks {
            state: State::Size,
            line: Vec::new(),
            trailer_bytes: 0,
            signed,
            seed: seed.filter(|_| signed),
            chunk: (Sha256::new(), String::new()),
            trailers: Vec::new(),
        }
    }

    /// Takes bytes as they came and gives decoded ones; none if more must come first.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Fault> {
        while !input.is_empty() {
            match self.state {
                State::Data(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let piece = input.split_to(length);
                    if self.seed.is_some() {
                        self.chunk.0.update(&piece);
                    }
                    let left = left - length as u64;
                    self.state = if left == 0 { State::Behind } else { State::Data(left) };
                    return Ok(Some(piece));
                }
                State::Done => return Err(malformed("something follows the last chunk")),
                State::Size | State::Behind | State::Trailer => {
                    if let Some(line) = self.line(input)? {
                        self.take(&line)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// What followed the last chunk. Refuses a body that broke off.
    pub(crate) fn finish(&mut self) -> Result<&[(String, String)], Fault> {
        match self.state {
            State::Done => Ok(&self.trailers),
            // The last, empty line is sometimes left out.
            State::Trailer if self.line.is_empty() => {
                self.end()?;
                Ok(&self.trailers)
            }
            _ => Err(incomplete_body()),
        }
    }

    /// The next line without its end; none if it is not here yet.
    fn line(&mut self, input: &mut Bytes) -> Result<Option<String>, Fault> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + length > CHUNK_LINE_BYTES_MAX {
            return Err(malformed("a line is too long"));
        }
        self.line.extend_from_slice(&input[..length]);
        input.advance(length);
        if end.is_none() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|_| malformed("a line is no text"))?;
        Ok(Some(line.to_owned()))
    }

    fn take(&mut self, line: &str) -> Result<(), Fault> {
        match self.state {
            State::Behind if line.is_empty() => {
                self.compare_chunk()?;
                self.state = State::Size;
                Ok(())
            }
            State::Behind => Err(malformed("a chunk is longer than it says")),
            State::Trailer if line.is_empty() => self.end(),
            State::Trailer => self.trailer(line),
            _ => self.head(line),
        }
    }

    fn head(&mut self, line: &str) -> Result<(), Fault> {
        let (size, extension) = line.split_once(';').unwrap_or((line, ""));
        let plain = (1..=16).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = plain.then(|| u64::from_str_radix(size, 16).ok()).flatten();
        let size = size.ok_or_else(|| malformed("the size of a chunk is no number"))?;
        self.chunk.1 = extension.strip_prefix("chunk-signature=").unwrap_or("").to_owned();
        if self.signed && self.chunk.1.is_empty() {
            return Err(malformed("a chunk has no signature"));
        }
        if size == 0 {
            self.compare_chunk()?;
            self.state = State::Trailer;
        } else {
            self.state = State::Data(size);
        }
        Ok(())
    }

    fn compare_chunk(&mut self) -> Result<(), Fault> {
        let hash = std::mem::take(&mut self.chunk.0);
        let Some(seed) = &mut self.seed else { return Ok(()) };
        if seed.admits_chunk(hash, &self.chunk.1) { Ok(()) } else { Err(mismatch()) }
    }

    fn trailer(&mut self, line: &str) -> Result<(), Fault> {
        self.trailer_bytes += line.len();
        if self.trailer_bytes > CHUNK_LINE_BYTES_MAX {
            return Err(malformed("too much follows the last chunk"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a trailer has no value"))?;
        self.trailers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        Ok(())
    }

    /// Behind the last line: the signature of the trailers is the last of them.
    fn end(&mut self) -> Result<(), Fault> {
        self.state = State::Done;
        let signature = match self.trailers.last() {
            Some((name, value)) if name == "x-amz-trailer-signature" => Some(value.clone()),
            _ => None,
        };
        if signature.is_some() {
            self.trailers.pop();
        }
        let Some(seed) = &mut self.seed else { return Ok(()) };
        let text: String = self.trailers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let good = match signature {
            Some(signature) => seed.admits_trailer(&text, &signature),
            None => text.is_empty(),
        };
        if good { Ok(()) } else { Err(mismatch()) }
    }
}

fn mismatch() -> Fault {
    Refusal::Mismatch.fault(Service::S3)
}

fn malformed(why: &str) -> Fault {
    Fault::client("InvalidChunkFormat", format!("The body is not in the format of aws-chunked: {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a body that comes in pieces of this size.
    fn decode(signed: bool, body: &[u8], step: usize) -> Result<(Vec<u8>, Vec<(String, String)>), String> {
        let mut chunks = Chunks::new(signed, None);
        let mut decoded = Vec::new();
        let code = |fault: Fault| fault.code.into_owned();
        for piece in body.chunks(step.max(1)) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(bytes) = chunks.next(&mut input).map_err(code)? {
                decoded.extend_from_slice(&bytes);
            }
        }
        let trailers = chunks.finish().map_err(code)?.to_vec();
        Ok((decoded, trailers))
    }

    #[test]
    fn chunks_are_joined_however_they_come() {
        let body = b"5\r\nhello\r\n1\r\n \r\n0005\r\nwor\nd\r\n0\r\nX-Amz-Checksum-CRC32: AAAAAA== \r\n\r\n";
        for step in 1..=body.len() {
            let (decoded, trailers) = decode(false, body, step).unwrap();
            assert_eq!(decoded, b"hello wor\nd");
            assert_eq!(trailers, [("x-amz-checksum-crc32".to_owned(), "AAAAAA==".to_owned())]);
        }
        let signed = b"A;chunk-signature=00\r\n0123456789\r\n0;chunk-signature=11\r\nx-amz-trailer-signature:22\r\n\r\n";
        assert_eq!(decode(true, signed, 7).unwrap(), (b"0123456789".to_vec(), vec![]));
        assert_eq!(decode(true, b"0;chunk-signature=11\r\n\r\n", 1).unwrap(), (vec![], vec![]));
        assert_eq!(decode(false, b"0\r\n", 1).unwrap(), (vec![], vec![]), "without the last line");
    }

    #[test]
    fn what_breaks_off_is_incomplete() {
        let body = b"5\r\nhello\r\n0\r\nx:y\r\n\r\n";
        for length in 0..body.len() {
            match decode(false, &body[..length], 4) {
                Err(code) => assert_eq!(code, "IncompleteBody", "{length}"),
                // Behind the line of the last chunk nothing has to follow.
                Ok((decoded, trailers)) => {
                    assert!([13, 18].contains(&length), "{length}");
                    assert_eq!((decoded.len(), trailers.len()), (5, usize::from(length == 18)));
                }
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let long = format!("5;{}\r\n", "x".repeat(CHUNK_LINE_BYTES_MAX));
        let many = format!("0\r\n{}", "a:b\r\n".repeat(CHUNK_LINE_BYTES_MAX / 3 + 1));
        for (signed, body) in [
            (false, "5\r\nhello!\r\n0\r\n\r\n"),
            (false, "x\r\n"),
            (false, "\r\n"),
            (false, "-1\r\n"),
            (false, "+5\r\nhello\r\n"),
            (false, "10000000000000000\r\n"),
            (false, "0\r\n\r\nmore"),
            (false, "0\r\nno value\r\n"),
            (true, "5\r\nhello\r\n0\r\n\r\n"),
            (true, "5;other=1\r\nhello\r\n"),
            (false, &long),
            (false, &many),
        ] {
            let shown: String = body.chars().take(30).collect();
            assert_eq!(decode(signed, body.as_bytes(), 3), Err("InvalidChunkFormat".into()), "{shown}");
        }
        assert_eq!(decode(false, b"\xff\r\n", 1), Err("InvalidChunkFormat".into()));
    }
}
