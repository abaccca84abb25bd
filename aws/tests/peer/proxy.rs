//! A faulty way to a server: what stands between a client and a service when answers are late, lost, cut or doubled.
//!
//! ```text
//!   client ──▶ request ──▶ plan ──▶ no fault ─▶ server ─▶ answer ──▶ client
//!                            └────▶ fault: with or without the server, with another answer or none
//! ```
//!
//! Each request gets the fault that the plan of the test says. What was done is counted, so that a test can show that
//! it was not spared.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_aws::Aws;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::wire::{self, Request};

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The request is held back for a while.
    Delay,
    /// The service's own word that it is asked too often, and the service is not asked.
    Throttle,
    /// The connection is closed, and the service is not asked.
    Refuse,
    /// The service is asked, and the connection is closed instead of an answer.
    Drop,
    /// The service is asked, and no answer ever comes.
    Hang,
    /// The service is asked when whoever asked has given up.
    Late,
    /// The service is asked, and the answer is that it failed inside.
    Fail,
    /// The service is asked, and the connection is closed in the middle of the answer.
    Cut,
    /// The service is asked twice, and the answer is the first one.
    Double,
    /// The service is asked twice, and the answer is the second one.
    Echo,
    /// Of the records of one request the service is given some, and refuses the others for the load of their shard. Of a
    /// request without records nothing is refused.
    Partly,
    /// The service's own word that what is asked for is being changed by somebody else, and the service is not asked.
    Busy,
}

/// Which fault a request gets, if any.
pub type Plan = dyn FnMut(&Request) -> Option<Fault> + Send;

/// Sees each request that the service has answered, and its answer, before anybody else does.
pub type Watch = dyn FnMut(&Request, &wire::Answer) + Send;

/// How long a request is held back.
const DELAY: Duration = Duration::from_millis(60);
/// Bytes of an answer without a known end that pass before it is cut. Not a round number of events.
const CUT_BEHIND: usize = 701;

/// A faulty way to one server, for as long as it is held.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    server: SocketAddr,
    plan: Mutex<Box<Plan>>,
    watch: Mutex<Box<Watch>>,
    faults: Mutex<BTreeMap<Fault, usize>>,
    asked: Mutex<BTreeMap<String, usize>>,
}

impl Proxy {
    pub async fn start(
        server: SocketAddr,
        plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static,
    ) -> Proxy {
        Proxy::watched(server, plan, |_, _| ()).await
    }

    /// The same with somebody who watches.
    pub async fn watched(
        server: SocketAddr,
        plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static,
        watch: impl FnMut(&Request, &wire::Answer) + Send + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            server,
            plan: Mutex::new(Box::new(plan)),
            watch: Mutex::new(Box::new(watch)),
            faults: Mutex::default(),
            asked: Mutex::default(),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = serving.clone();
                // An error is a connection that is gone, on one side or the other.
                tokio::spawn(async move { drop(shared.serve(client).await) });
            }
        });
        Proxy { address, shared, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection that goes this way.
    pub async fn connect(&self, attempt_max: Option<Duration>) -> Aws {
        super::connect_with(&format!("http://{}", self.address), super::SECRET, attempt_max).await
    }

    /// How many requests had this fault.
    pub fn count(&self, fault: Fault) -> usize {
        self.shared.count(fault)
    }

    /// How often an operation was asked for.
    pub fn asked(&self, operation: &str) -> usize {
        self.shared.asked.lock().expect("the counts").get(operation).copied().unwrap_or(0)
    }

    /// Says what happened on this way, and fails if one of these faults never did.
    pub fn saw(&self, faults: &[Fault]) {
        let asked: usize = self.shared.asked.lock().expect("the counts").values().sum();
        eprintln!("{asked} requests, {:?}", self.shared.faults.lock().expect("the counts"));
        for fault in faults {
            assert!(self.count(*fault) > 0, "no request had the fault {fault:?}");
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn count(&self, fault: Fault) -> usize {
        self.faults.lock().expect("the counts").get(&fault).copied().unwrap_or(0)
    }

    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut received = Vec::new();
        while let Some(request) = wire::request(&mut client, &mut received).await? {
            let fault = (self.plan.lock().expect("the plan"))(&request);
            *self.asked.lock().expect("the counts").entry(request.operation.clone()).or_default() += 1;
            if let Some(fault) = fault {
                *self.faults.lock().expect("the counts").entry(fault).or_default() += 1;
            }
            if !self.carry(&mut client, &request, fault).await? {
                break;
            }
        }
        Ok(())
    }

    /// Carries one request and its answer. Says whether the connection may be used again.
    async fn carry(
        &self,
        client: &mut TcpStream,
        request: &Request,
        fault: Option<Fault>,
    ) -> io::Result<bool> {
        match fault {
            Some(Fault::Refuse) => return Ok(false),
            Some(Fault::Throttle) => {
                client.write_all(&throttled(request)).await?;
                return Ok(true);
            }
            Some(Fault::Busy) => {
                client.write_all(&refusal(400, "ResourceInUseException", "it is being changed")).await?;
                return Ok(true);
            }
            // Whoever goes away in the meantime has not asked.
            Some(Fault::Delay) if tokio::time::timeout(DELAY, gone(client)).await.is_ok() => {
                return Ok(false);
            }
            _ => {}
        }
        if request.is_endless() {
            return self.carry_endless(client, request, fault).await;
        }
        if fault == Some(Fault::Late) {
            gone(client).await;
        }
        if fault == Some(Fault::Partly)
            && let Some((kept, refused)) = part(request, self.count(Fault::Partly))
        {
            client.write_all(&self.ask_partly(kept.as_ref(), &refused).await?).await?;
            return Ok(true);
        }
        let mut answer = self.ask(request).await?;
        match fault {
            Some(Fault::Drop | Fault::Late) => return Ok(false),
            Some(Fault::Hang) => {
                gone(client).await;
                return Ok(false);
            }
            Some(Fault::Cut) => {
                client.write_all(&answer.bytes[..answer.middle()]).await?;
                return Ok(false);
            }
            Some(Fault::Fail) => {
                client.write_all(&failed(request)).await?;
                return Ok(true);
            }
            Some(Fault::Double) => drop(self.ask(request).await?),
            Some(Fault::Echo) => answer = self.ask(request).await?,
            _ => {}
        }
        client.write_all(&answer.bytes).await?;
        Ok(!answer.closes)
    }

    /// The same for an answer that is a stream of events. There is nothing to lose in one that never began.
    async fn carry_endless(
        &self,
        client: &mut TcpStream,
        request: &Request,
        fault: Option<Fault>,
    ) -> io::Result<bool> {
        let bytes_max = match fault {
            Some(Fault::Fail) => {
                client.write_all(&failed(request)).await?;
                return Ok(true);
            }
            Some(Fault::Hang) => {
                gone(client).await;
                return Ok(false);
            }
            // Each cut comes later than the one before, so that there is an end to them.
            Some(Fault::Cut) => CUT_BEHIND * self.count(Fault::Cut),
            _ => usize::MAX,
        };
        self.relay(client, request, bytes_max).await.map(|()| false)
    }

    /// The server's answer, on a connection of its own.
    async fn ask(&self, request: &Request) -> io::Result<wire::Answer> {
        let mut server = TcpStream::connect(self.server).await?;
        server.write_all(&request.bytes).await?;
        let answer = wire::answer(&mut server, request).await?;
        (self.watch.lock().expect("whoever watches"))(request, &answer);
        Ok(answer)
    }

    /// The server's answer to what is kept of a request, with a refusal at each of these places.
    async fn ask_partly(&self, kept: Option<&Request>, refused: &[usize]) -> io::Result<Vec<u8>> {
        let mut body = json!({ "Records": [] });
        if let Some(kept) = kept {
            let answer = self.ask(kept).await?;
            body = serde_json::from_slice(&answer.body())?;
            // A request that is refused as a whole has no outcomes of records.
            if !body["Records"].is_array() {
                return Ok(answer.bytes);
            }
        }
        let outcomes = body["Records"].as_array_mut().expect("outcomes");
        for place in refused {
            let code = "ProvisionedThroughputExceededException";
            outcomes.insert(*place, json!({ "ErrorCode": code, "ErrorMessage": "Rate exceeded" }));
        }
        body["FailedRecordCount"] = json!(refused.len());
        Ok(response(200, &body.to_string()))
    }

    /// Passes on an answer that goes on and on, as far as `bytes_max`, until one side has enough.
    async fn relay(&self, client: &mut TcpStream, request: &Request, bytes_max: usize) -> io::Result<()> {
        let mut server = TcpStream::connect(self.server).await?;
        server.write_all(&request.bytes).await?;
        let mut left = bytes_max;
        let mut buffer = vec![0; 16 << 10];
        while left > 0 {
            let read = tokio::select! {
                read = server.read(&mut buffer) => read?,
                () = gone(client) => 0,
            };
            if read == 0 {
                break;
            }
            client.write_all(&buffer[..read.min(left)]).await?;
            left -= read.min(left);
        }
        Ok(())
    }
}

/// Every other record of a request, and the places of those that are left out; none if it is no request for records.
/// Whether the first one is kept changes from `turn` to `turn`.
fn part(request: &Request, turn: usize) -> Option<(Option<Request>, Vec<usize>)> {
    let mut body: Json = serde_json::from_str(&request.body()).ok()?;
    let records = body["Records"].as_array_mut()?;
    let refused: Vec<usize> = (0..records.len()).filter(|place| place % 2 == turn % 2).collect();
    let mut places = 0..;
    records.retain(|_| !refused.contains(&places.next().unwrap_or_default()));
    let kept = !records.is_empty();
    Some((kept.then(|| request.with_body(&body.to_string())), refused))
}

/// Returns when the client has gone, or has more to ask before it has an answer, which none does.
async fn gone(client: &TcpStream) {
    let _ = client.peek(&mut [0]).await;
}

/// What a service answers to those who ask too often.
fn throttled(request: &Request) -> Vec<u8> {
    let (service, operation) = request.target.split_once('.').unwrap_or((&request.target, ""));
    let moves_data = ["Get", "Put", "Update", "Delete", "Batch", "Transact", "Query", "Scan"]
        .iter()
        .any(|verb| operation.starts_with(verb) && !operation.ends_with("Table"));
    match service {
        "" => document(request, 503, "SlowDown", "Please reduce your request rate."),
        "AmazonSQS" => refusal(400, "com.amazonaws.sqs#RequestThrottled", "slow down"),
        _ if moves_data => refusal(400, "ProvisionedThroughputExceededException", "slow down"),
        "Kinesis_20131202" => refusal(400, "LimitExceededException", "Rate exceeded for stream"),
        _ => refusal(400, "ThrottlingException", "slow down"),
    }
}

fn failed(request: &Request) -> Vec<u8> {
    let message = "something went wrong inside";
    match request.is_of_s3() {
        true => document(request, 500, "InternalError", message),
        false => refusal(500, "InternalFailure", message),
    }
}

fn refusal(status: u16, code: &str, message: &str) -> Vec<u8> {
    response(status, &format!(r#"{{"__type":"{code}","message":"{message}"}}"#))
}

fn response(status: u16, body: &str) -> Vec<u8> {
    let head = "content-type: application/x-amz-json-1.1";
    format!("HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A refusal of S3. An answer to a request for the head of something has no body, and so no word.
fn document(request: &Request, status: u16, code: &str, message: &str) -> Vec<u8> {
    let body = match request.operation.as_str() {
        "HeadObject" => String::new(),
        _ => format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"),
    };
    let head = "content-type: application/xml";
    format!("HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
