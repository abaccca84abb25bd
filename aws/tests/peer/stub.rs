//! A server that answers what a test tells it to, request by request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Whether there is more to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    Yes,
    No,
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Status, further header lines, and body.
    Full(u16, Vec<String>, String),
    /// The head of an answer and a part of its body; then the connection is closed.
    Cut,
    /// The same with these header lines and this part of a body of 500 bytes.
    CutBehind(Vec<String>, String),
    /// The head of an answer without a known end and these bytes of it. Then the connection is closed, or stays open
    /// without another byte.
    Pushed(Vec<u8>, Open),
    /// None: the connection is closed.
    Closed,
    /// None, until whoever asked goes away.
    Never,
    /// This one, when the test says so.
    Late(Arc<Notify>, Box<Answer>),
}

impl Answer {
    /// A success in Kinesis's protocol.
    pub fn ok(body: &str) -> Answer {
        Answer::Full(200, vec!["content-type: application/x-amz-json-1.1".to_string()], body.to_string())
    }

    /// A failure in Kinesis's protocol.
    pub fn failure(status: u16, code: &str, message: &str) -> Answer {
        let body = format!(r#"{{"__type":"{code}","message":"{message}"}}"#);
        Answer::Full(status, vec!["content-type: application/x-amz-json-1.1".to_string()], body)
    }

    /// A success of S3.
    pub fn document(body: &str) -> Answer {
        Answer::Full(200, vec!["content-type: application/xml".to_string()], body.to_string())
    }

    /// A failure of S3.
    pub fn refusal(status: u16, code: &str, message: &str) -> Answer {
        let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
        Answer::Full(status, vec!["content-type: application/xml".to_string()], body)
    }

    /// The same answer with another header line.
    pub fn with(self, line: &str) -> Answer {
        match self {
            Answer::Full(status, mut lines, body) => {
                lines.push(line.to_string());
                Answer::Full(status, lines, body)
            }
            other => other,
        }
    }
}

type Script = dyn FnMut(&str, &str) -> Answer + Send;

/// A server that runs until it is dropped.
pub struct Stub {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Stub {
    /// Starts a server that answers with what `script` makes of the operation and the body.
    pub async fn start(script: impl FnMut(&str, &str) -> Answer + Send + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Mutex<Box<Script>>> = Arc::new(Mutex::new(Box::new(script)));
        let noted = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, script.clone(), noted.clone()));
            }
        });
        Stub { address, asked, task }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The operations that were asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("the list").clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut connection: TcpStream, script: Arc<Mutex<Box<Script>>>, asked: Arc<Mutex<Vec<String>>>) {
    let mut received = Vec::new();
    while let Some((operation, body)) = request(&mut connection, &mut received).await {
        asked.lock().expect("the list").push(operation.clone());
        let mut answer = (script.lock().expect("the script"))(&operation, &body);
        while let Answer::Late(moment, late) = answer {
            moment.notified().await;
            answer = *late;
        }
        let bytes = match &answer {
            Answer::Full(status, lines, body) => {
                let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
                format!("HTTP/1.1 {status} X\r\n{lines}content-length: {}\r\n\r\n{body}", body.len())
                    .into_bytes()
            }
            Answer::Cut => {
                "HTTP/1.1 200 X\r\ncontent-length: 500\r\n\r\n{\"Records\":[".to_string().into_bytes()
            }
            Answer::CutBehind(lines, body) => {
                let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
                format!("HTTP/1.1 200 X\r\n{lines}content-length: 500\r\n\r\n{body}").into_bytes()
            }
            Answer::Pushed(body, _) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: application/vnd.amazon.eventstream\r\n\r\n";
                [head.as_bytes(), body].concat()
            }
            Answer::Closed | Answer::Late(..) => Vec::new(),
            Answer::Never => {
                let _ = connection.read_u8().await;
                return;
            }
        };
        let sent = connection.write_all(&bytes).await;
        if let Answer::Pushed(_, Open::Yes) = answer {
            let _ = connection.read_u8().await;
        }
        if sent.is_err() || !matches!(answer, Answer::Full(..)) {
            return;
        }
    }
}

/// The next request of a connection: its operation and its body.
async fn request(connection: &mut TcpStream, received: &mut Vec<u8>) -> Option<(String, String)> {
    let head_end = loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if connection.read_buf(received).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&received[..head_end]).into_owned();
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_string();
    let head = head.to_ascii_lowercase();
    let header = |name: &str| {
        let line = head.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_string())
    };
    // What has no name is known by its method and address.
    let target = header("x-amz-target");
    let operation = target.map_or(line, |target| target.rsplit('.').next().unwrap_or_default().to_string());
    let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while received.len() < head_end + length {
        if connection.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
    let rest = received.split_off(head_end + length);
    let body = String::from_utf8_lossy(&received[head_end..]).into_owned();
    *received = rest;
    Some((operation, body))
}
