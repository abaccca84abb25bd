//! `bench wire`: our server beside servers that others wrote, by the same client, in turn, over plain connections.
//!
//! What must hold: ours is durable before it answers, with the settings that a user gets; the peers run as they are given.
//! All see the same bytes, round by round in turn, and a figure compares with the fastest of the peers that it names. A stub
//! that answers at once shows that the client could do more.
//!
//! | file | what it owns |
//! |---|---|
//! | `connection` | a connection, and calls whose bytes are ready |
//! | `peer` | a server that is measured, as the command line names it |
//! | `kinesis`, `sqs`, `dynamodb` | what clients do with a service |
//! | `goals` | which figure is to be how many times which peer |

mod connection;
mod dynamodb;
mod goals;
mod kinesis;
mod peer;
mod sqs;

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::Setting;
use super::machine::Machine;
use super::process::Server;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::stub;
use crate::failure::Failure;
use crate::quantity::grouped;
use connection::Service;
use dynamodb::Call;
use goals::{GOALS, Measured};
use kinesis::Bodies;
use peer::Peer;

/// Messages that wait in one queue, and in the other.
const WAITING: [usize; 2] = [200_000, 200];
/// How long a server is filled with messages at most.
const FILLED_WITHIN: Duration = Duration::from_secs(15);
/// As fast with many that wait as with few.
const WAITING_GOAL: f64 = 0.8;
/// Records after which memory is looked at for the first time, and for the last.
const MEMORY_RECORDS: [u64; 2] = [100_000, 1_000_000];
const MEMORY_GOAL: f64 = 1.25;

/// Arguments of `bench wire`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WireArgs {
    /// A server to measure beside ours; SERVICES are of kinesis, sqs, dynamodb and durable
    #[arg(long = "peer", value_name = "NAME:SERVICES:URL")]
    peers: Vec<Peer>,
}

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>, args: &WireArgs) -> Result<Report, Failure> {
    let report = Report::new("wire", Machine::with(setting.place.root()), setting.bounds);
    let server = Server::start(&setting.place.folder("wire")?).await?;
    let mut peers = vec![Peer::ours(&server.url), stub_peer()?];
    peers.extend(args.peers.iter().cloned());
    let mut bench = Bench {
        peers,
        rounds: setting.bounds.rounds,
        at_most: setting.bounds.duration(),
        bodies: Bodies::make(),
        progress: Progress::new(7 * (setting.bounds.rounds + 1)),
        report,
    };
    let wants = |case: &str| setting.bounds.wants(case);
    if wants("put_record") {
        bench.puts().await?;
    }
    if wants("get_records") {
        bench.reads().await?;
    }
    if wants("send") || wants("receive") {
        bench.messages().await?;
    }
    let calls = [("put_item", Call::Put), ("get_item", Call::Get), ("query", Call::Query)];
    let calls: Vec<_> = calls.into_iter().filter(|(name, _)| wants(name)).collect();
    if !calls.is_empty() {
        bench.items(&calls).await?;
    }
    if wants("waiting") {
        bench.waiting().await?;
    }
    drop(server);
    if wants("memory") {
        let server = Server::start(&setting.place.folder("memory")?).await?;
        bench.memory(&server).await?;
    }
    Ok(bench.report)
}

/// Where the limit of the client is.
fn stub_peer() -> Result<Peer, Failure> {
    let answers = [
        ("PutRecords", json!({ "FailedRecordCount": 0 })),
        ("PutRecord", json!({ "ShardId": "shardId-000000000000" })),
        ("CreateStream", json!({})),
        (
            "DescribeStream",
            json!({ "StreamDescription": { "StreamStatus": "ACTIVE", "Shards": [{ "ShardId": "shardId-000000000000" }] } }),
        ),
        ("CreateTable", json!({})),
        ("DescribeTable", json!({ "Table": { "TableStatus": "ACTIVE" } })),
        ("PutItem", json!({})),
        ("GetItem", json!({ "Item": { "text": { "S": "x".repeat(1024) } } })),
        ("Query", json!({ "Items": [{ "text": { "S": "x".repeat(100 << 10) } }] })),
    ];
    let answers = answers.into_iter().map(|(name, answer)| (name, answer.to_string())).collect();
    let address = stub::start(answers)
        .map_err(|error| Failure::new("system", format!("no stub: {error}"), "try again"))?;
    Ok(Peer {
        name: goals::STUB.to_owned(),
        services: vec![Service::Kinesis, Service::DynamoDb],
        durable: false,
        address: address.to_string(),
    })
}

struct Bench {
    /// Ours is the first, the stub the second.
    peers: Vec<Peer>,
    rounds: usize,
    at_most: Duration,
    bodies: Bodies,
    progress: Progress,
    report: Report,
}

/// What one server did in all rounds, and why it did no more.
struct Line<const K: usize> {
    peer: usize,
    rounds: Vec<[f64; K]>,
    failed: Option<Failure>,
}

impl Bench {
    async fn puts(&mut self) -> Result<(), Failure> {
        let lines = self.prepared(Service::Kinesis, async |peer| kinesis::prepare(peer).await).await;
        let lines = self
            .turns("put records", lines, async |peer| {
                let batches = kinesis::put_records(peer, &self.bodies, self.at_most).await?;
                Ok([batches, kinesis::put_record(peer, &self.bodies, self.at_most).await?])
            })
            .await;
        self.tell(["put_records", "put_record"], Unit::RecordsPerSecond, lines)
    }

    async fn reads(&mut self) -> Result<(), Failure> {
        // What takes minutes to fill is left out, and so is what has nothing to read.
        let prepare = async |peer: &Peer| {
            if peer.name == goals::STUB || (peer.durable && peer.address != self.peers[0].address) {
                return Err(Failure::new("bench", "not measured", ""));
            }
            kinesis::prepare_reads(peer, &self.bodies).await
        };
        let lines = self.prepared(Service::Kinesis, prepare).await;
        let lines = self
            .turns("get records", lines, async |peer| Ok([kinesis::get_records(peer, self.at_most).await?]))
            .await;
        self.tell(["get_records"], Unit::RecordsPerSecond, lines)
    }

    async fn messages(&mut self) -> Result<(), Failure> {
        let lines = self.prepared(Service::Sqs, async |_| Ok(())).await;
        let lines = self
            .turns("send", lines, async |peer| {
                // A queue of its own for each round: what a server keeps is not in its way in the next.
                let url = sqs::prepare(peer, "bench-send").await?;
                let sent = sqs::send(peer, &url, self.at_most).await?;
                sqs::remove(peer, &url).await?;
                Ok([sent])
            })
            .await;
        self.tell(["send"], Unit::OperationsPerSecond, lines)?;
        // Some look at all messages that wait, so every server gets as many, or what it takes in some seconds.
        let queue = "bench-receive";
        let prepare = async |peer: &Peer| {
            let url = sqs::prepare(peer, queue).await?;
            sqs::fill_within(peer, &url, WAITING[0], FILLED_WITHIN).await
        };
        let lines = self.prepared(Service::Sqs, prepare).await;
        let lines = self
            .turns("receive", lines, async |peer| {
                let url = sqs::prepare(peer, queue).await?;
                Ok([sqs::burst(peer, &url, self.at_most).await?])
            })
            .await;
        self.tell(["receive"], Unit::OperationsPerSecond, lines)
    }

    /// One table serves all calls. Who could not make it is told of once.
    async fn items(&mut self, calls: &[(&'static str, Call)]) -> Result<(), Failure> {
        let mut lines = self.prepared(Service::DynamoDb, async |peer| dynamodb::prepare(peer).await).await;
        let able: Vec<usize> =
            lines.iter().filter(|line| line.failed.is_none()).map(|line| line.peer).collect();
        for (name, call) in calls {
            let measured = self
                .turns(name, lines, async |peer| Ok([dynamodb::calls(peer, *call, self.at_most).await?]))
                .await;
            self.tell([*name], Unit::OperationsPerSecond, measured)?;
            lines = able.iter().map(|peer| Line { peer: *peer, rounds: Vec::new(), failed: None }).collect();
        }
        Ok(())
    }

    /// Ours with many messages waiting, beside ours with few.
    async fn waiting(&mut self) -> Result<(), Failure> {
        self.progress.say("messages that wait");
        let ours = &self.peers[0];
        let many = sqs::prepare(ours, "bench-many").await?;
        let few = sqs::prepare(ours, "bench-few").await?;
        sqs::fill(ours, &many, WAITING[0]).await?;
        sqs::fill(ours, &few, WAITING[1]).await?;
        let (mut of_many, mut of_few) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            of_many.push(sqs::burst(ours, &many, self.at_most).await?);
            of_few.push(sqs::burst(ours, &few, self.at_most).await?);
            self.progress.step();
        }
        let what = "messages received and deleted with 200,000 waiting, beside the same with 200 waiting";
        let unit = Unit::OperationsPerSecond;
        let figure = Figure::beside("waiting", what, unit, Spread::of(of_many), Spread::of(of_few));
        self.report.figures.push(figure.aim(Goal::RatioAtLeast(WAITING_GOAL)));
        Ok(())
    }

    /// Ours after a million records, beside ours after the first of them.
    async fn memory(&mut self, server: &Server) -> Result<(), Failure> {
        self.progress.say("a million records");
        let ours = Peer::ours(&server.url);
        kinesis::prepare(&ours).await?;
        let (mut written, mut memory) = (0.0, Vec::new());
        for records in MEMORY_RECORDS {
            while written < records as f64 {
                let part = Duration::from_millis(200);
                written += kinesis::put_records(&ours, &self.bodies, part).await? * part.as_secs_f64();
            }
            memory.push(server.resident_mib());
        }
        let what =
            "resident memory of the server after a million records of 1 KiB, beside that after 100,000";
        let (few, many) = (Spread::of(vec![memory[0]]), Spread::of(vec![memory[1]]));
        let figure = Figure::beside("memory", what, Unit::Mebibytes, many, few);
        self.report.figures.push(figure.aim(Goal::RatioAtMost(MEMORY_GOAL)));
        Ok(())
    }

    /// The servers that have a service.
    fn with(&self, service: Service) -> impl Iterator<Item = usize> {
        (0..self.peers.len()).filter(move |peer| self.peers[*peer].services.contains(&service))
    }

    /// A line for each server that has a service, after what has to be there was made.
    async fn prepared<const K: usize>(
        &self,
        service: Service,
        prepare: impl AsyncFn(&Peer) -> Result<(), Failure>,
    ) -> Vec<Line<K>> {
        let mut lines = Vec::new();
        for peer in self.with(service) {
            self.progress.say(format!("prepare {}", self.peers[peer].name));
            let failed = prepare(&self.peers[peer]).await.err();
            lines.push(Line { peer, rounds: Vec::new(), failed });
        }
        lines
    }

    /// All servers in turn, round by round; the first round does not count. One that fails is out.
    async fn turns<const K: usize>(
        &self,
        what: &str,
        mut lines: Vec<Line<K>>,
        call: impl AsyncFn(&Peer) -> Result<[f64; K], Failure>,
    ) -> Vec<Line<K>> {
        for round in 0..=self.rounds {
            for line in lines.iter_mut().filter(|line| line.failed.is_none()) {
                let peer = &self.peers[line.peer];
                self.progress.say(format!("{what}, {}", peer.name));
                match call(peer).await {
                    Ok(values) if round > 0 => line.rounds.push(values),
                    Ok(_) => {}
                    Err(failure) => line.failed = Some(failure),
                }
            }
            self.progress.step();
        }
        lines
    }

    /// Figures and notes of what was measured together.
    fn tell<const K: usize>(
        &mut self,
        names: [&'static str; K],
        unit: Unit,
        lines: Vec<Line<K>>,
    ) -> Result<(), Failure> {
        for (column, name) in names.into_iter().enumerate() {
            let spread =
                |line: &Line<K>| Spread::of(line.rounds.iter().map(|values| values[column]).collect());
            let measured: Vec<Measured<'_>> = lines
                .iter()
                .filter(|line| !line.rounds.is_empty())
                .map(|line| Measured { peer: &self.peers[line.peer], spread: spread(line) })
                .collect();
            let Some(ours) = measured.first().filter(|first| first.peer.address == self.peers[0].address)
            else {
                continue;
            };
            for goal in GOALS.iter().filter(|goal| goal.of == name) {
                self.report.figures.push(goal.figure(unit, &ours.spread, &measured));
            }
            let each = measured
                .iter()
                .map(|one| format!("{} {}", one.peer.name, grouped(one.spread.median.round() as u64)));
            self.report.notes.push(format!("{name} a second: {}", each.collect::<Vec<_>>().join(", ")));
        }
        for line in lines {
            let Some(failure) = line.failed else { continue };
            if line.peer == 0 {
                return Err(failure);
            }
            let (why, _) = failure.words();
            self.report.notes.push(format!("{} is out: {why}", self.peers[line.peer].name));
        }
        Ok(())
    }
}
