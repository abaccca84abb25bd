//! As much of HTTP as it takes to stand between a client and a server.

use std::io;
use std::ops::Range;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A request as it came.
pub struct Request {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// What is asked for, with the service: `Kinesis_20131202.PutRecords`.
    pub target: String,
    /// What is asked for, without the service.
    pub operation: String,
    body_at: usize,
}

impl Request {
    /// Whether it is one of S3's, which have no target.
    pub fn is_of_s3(&self) -> bool {
        self.target.is_empty()
    }

    /// Whether its head has a header whose name begins like this, in small letters.
    pub fn has_header(&self, name: &str) -> bool {
        let head = String::from_utf8_lossy(&self.bytes[..self.body_at]).to_ascii_lowercase();
        head.lines().skip(1).any(|line| line.starts_with(name))
    }

    pub fn body(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.body_at..]).into_owned()
    }

    /// The same request with another body.
    pub fn with_body(&self, body: &str) -> Request {
        let head = String::from_utf8_lossy(&self.bytes[..self.body_at]);
        let is_length = |line: &str| line.to_ascii_lowercase().starts_with("content-length:");
        let lines = head.trim_end().lines().filter(|line| !is_length(line));
        let mut bytes: String = lines.flat_map(|line| [line, "\r\n"]).collect();
        bytes.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let body_at = bytes.len();
        bytes.push_str(body);
        let (target, operation) = (self.target.clone(), self.operation.clone());
        Request { bytes: bytes.into_bytes(), target, operation, body_at }
    }

    /// Whether its answer is a stream of events.
    pub fn is_endless(&self) -> bool {
        self.operation == "SubscribeToShard"
    }
}

/// An answer as it came.
pub struct Answer {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Whether its connection is closed behind it.
    pub closes: bool,
    /// Whether its body comes in chunks.
    chunked: bool,
    body_at: usize,
}

impl Answer {
    /// Whether it says that all went well.
    pub fn is_success(&self) -> bool {
        self.bytes.starts_with(b"HTTP/1.1 200")
    }

    /// Its body, without what divides the chunks.
    pub fn body(&self) -> Vec<u8> {
        if !self.chunked {
            return self.bytes[self.body_at..].to_vec();
        }
        let (mut body, mut at) = (Vec::new(), self.body_at);
        while let Some((chunk, next)) = chunk(&self.bytes, at).filter(|(chunk, _)| !chunk.is_empty()) {
            body.extend_from_slice(&self.bytes[chunk]);
            at = next;
        }
        body
    }

    /// The middle of its body. Of an answer without a body it is the middle of its head: it does not end before its time.
    pub fn middle(&self) -> usize {
        match self.bytes.len() - self.body_at {
            0 => self.body_at / 2,
            body => self.body_at + body / 2,
        }
    }
}

/// The next request of a connection; none when the client has gone. `received` is what came behind the last one.
pub async fn request(client: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let Some(head) = Head::read(client, received).await? else { return Ok(None) };
    let end = head.end + head.number("content-length").unwrap_or(0);
    while received.len() < end {
        fill(client, received).await?;
    }
    let rest = received.split_off(end);
    let bytes = std::mem::replace(received, rest);
    let target = head.value("x-amz-target").unwrap_or_default().to_string();
    let operation = match target.rsplit_once('.') {
        Some((_, operation)) => operation.to_string(),
        None => operation_of_s3(&head).to_string(),
    };
    Ok(Some(Request { bytes, target, operation, body_at: head.end }))
}

/// What a request of S3 asks for: its method, its address and its query say so.
fn operation_of_s3(head: &Head) -> &'static str {
    let mut line = head.text.split(' ');
    let (method, address) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let asks = |name: &str| query.split('&').any(|part| part.split('=').next() == Some(name));
    let (bucket, key) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    match (method, bucket.is_empty(), key.is_empty()) {
        ("GET", true, _) => "ListBuckets",
        ("PUT", _, true) => "CreateBucket",
        ("DELETE", _, true) => "DeleteBucket",
        ("POST", _, true) => "DeleteObjects",
        ("GET", _, true) if asks("uploads") => "ListMultipartUploads",
        ("GET", _, true) => "ListObjectsV2",
        ("PUT", _, _) if asks("partNumber") => "UploadPart",
        ("PUT", _, _) if head.value("x-amz-copy-source").is_some() => "CopyObject",
        ("PUT", _, _) => "PutObject",
        ("POST", _, _) if asks("uploads") => "CreateMultipartUpload",
        ("POST", _, _) => "CompleteMultipartUpload",
        ("GET", _, _) if asks("uploadId") => "ListParts",
        ("GET", _, _) => "GetObject",
        ("DELETE", _, _) if asks("uploadId") => "AbortMultipartUpload",
        ("DELETE", _, _) => "DeleteObject",
        _ => "HeadObject",
    }
}

/// The whole answer of a server to a request.
pub async fn answer(server: &mut TcpStream, request: &Request) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let head = Head::read(server, &mut bytes).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let bodiless = request.operation == "HeadObject" || matches!(head.status(), Some("204" | "304"));
    let chunked = head.value("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let mut closes = head.value("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
    let end = match head.number("content-length") {
        _ if bodiless => head.end,
        _ if chunked => loop {
            match end_of_chunks(&bytes, head.end) {
                Some(end) => break end,
                None => fill(server, &mut bytes).await?,
            }
        },
        Some(length) => {
            while bytes.len() < head.end + length {
                fill(server, &mut bytes).await?;
            }
            head.end + length
        }
        None => {
            closes = true;
            server.read_to_end(&mut bytes).await?;
            bytes.len()
        }
    };
    bytes.truncate(end);
    Ok(Answer { bytes, closes, chunked, body_at: head.end })
}

/// Where the last chunk ends; none if it has not come yet.
fn end_of_chunks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let (chunk, next) = chunk(bytes, at)?;
        if chunk.is_empty() {
            return Some(next);
        }
        at = next;
    }
}

/// Where the chunk that begins here has its bytes, and where the next one begins; none if it has not come yet.
fn chunk(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let line = at + bytes.get(at..)?.windows(2).position(|two| two == b"\r\n")?;
    let size = std::str::from_utf8(&bytes[at..line]).ok()?;
    let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).ok()?;
    // The size, the chunk, and the line break behind it.
    let chunk = line + 2..line + 2 + size;
    let next = chunk.end + 2;
    (next <= bytes.len()).then_some((chunk, next))
}

/// The head of a request or an answer.
struct Head {
    text: String,
    end: usize,
}

impl Head {
    async fn read(connection: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<Head>> {
        loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&received[..end]).into_owned();
                return Ok(Some(Head { text, end: end + 4 }));
            }
            if connection.read_buf(received).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let lines = self.text.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }

    /// The status of an answer.
    fn status(&self) -> Option<&str> {
        self.text.split(' ').nth(1)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.value(name)?.parse().ok()
    }
}

async fn fill(connection: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<()> {
    match connection.read_buf(received).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
