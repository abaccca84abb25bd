//! What our server is to reach beside which of the others.

use super::peer::Peer;
use crate::bench::report::{Figure, Goal as Aim, Unit};
use crate::bench::statistics::Spread;

/// The name of the stub, which is nobody's rival.
pub(super) const STUB: &str = "stub";

/// Who is compared with.
#[derive(Clone, Copy, Debug)]
enum Beside {
    /// Those that keep everything in memory.
    Memory,
    /// Those that keep what they acknowledge.
    Durable,
    /// One of them.
    Named(&'static str),
}

/// A figure with what it is to reach.
pub(super) struct Goal {
    /// What is measured.
    pub(super) of: &'static str,
    name: &'static str,
    what: &'static str,
    beside: Beside,
    least: f64,
}

const fn goal(of: &'static str, name: &'static str, what: &'static str, beside: Beside, least: f64) -> Goal {
    Goal { of, name, what, beside, least }
}

const PUT_RECORDS: &str = "PutRecords of 500 records of 1 KiB over 4 connections";
const PUT_ITEM: &str = "PutItem of 1 KiB over 16 connections";
const GET_ITEM: &str = "GetItem of 1 KiB over 16 connections";
const QUERY: &str = "Query of 100 items of 1 KiB over 4 connections";

/// All of them.
pub(super) const GOALS: [Goal; 12] = [
    goal("put_records", "put_records", PUT_RECORDS, Beside::Memory, 2.0),
    goal("put_records", "put_records_durable", PUT_RECORDS, Beside::Durable, 20.0),
    goal("put_record", "put_record", "PutRecord of 1 KiB over 64 connections", Beside::Memory, 1.0),
    goal(
        "get_records",
        "get_records",
        "GetRecords, 1,000 at a time, of 4 shards at once",
        Beside::Memory,
        2.0,
    ),
    goal("send", "send", "SendMessageBatch of 10 messages of 1 KiB over 64 connections", Beside::Memory, 1.0),
    goal(
        "receive",
        "receive",
        "ReceiveMessage of 10 messages and DeleteMessageBatch over 64 connections, 200,000 waiting",
        Beside::Memory,
        10.0,
    ),
    goal("put_item", "put_item_moto", PUT_ITEM, Beside::Named("moto"), 5.0),
    goal("put_item", "put_item_dynalite", PUT_ITEM, Beside::Named("dynalite"), 2.0),
    goal("get_item", "get_item_moto", GET_ITEM, Beside::Named("moto"), 5.0),
    goal("get_item", "get_item_dynalite", GET_ITEM, Beside::Named("dynalite"), 2.0),
    goal("query", "query_moto", QUERY, Beside::Named("moto"), 5.0),
    goal("query", "query_dynalite", QUERY, Beside::Named("dynalite"), 2.0),
];

/// What a server did.
pub(super) struct Measured<'a> {
    pub(super) peer: &'a Peer,
    pub(super) spread: Spread,
}

impl Goal {
    /// The figure: ours, which is the first that was measured, beside the fastest that it is compared with.
    pub(super) fn figure(&self, unit: Unit, ours: &Spread, measured: &[Measured<'_>]) -> Figure {
        let rivals = measured.iter().skip(1).filter(|one| self.rivals(one.peer));
        let fastest = rivals.max_by(|one, two| one.spread.median.total_cmp(&two.spread.median));
        let Some(fastest) = fastest else {
            return Figure::with_ratio(self.name, self.what, unit, ours.clone(), None, None);
        };
        let what = format!("{}, beside {}", self.what, fastest.peer.name);
        Figure::beside(self.name, what, unit, ours.clone(), fastest.spread.clone())
            .aim(Aim::RatioAtLeast(self.least))
    }

    fn rivals(&self, peer: &Peer) -> bool {
        peer.name != STUB
            && match self.beside {
                Beside::Memory => !peer.durable,
                Beside::Durable => peer.durable,
                Beside::Named(name) => peer.name == name,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str, services: &str) -> Peer {
        format!("{name}:{services}:http://h:1").parse().unwrap()
    }

    fn figure(name: &str, measured: &[Measured<'_>]) -> Figure {
        let goal = GOALS.iter().find(|goal| goal.name == name).unwrap();
        goal.figure(Unit::RecordsPerSecond, &measured[0].spread, measured)
    }

    #[test]
    fn the_fastest_of_its_kind_counts() {
        let peers = [
            peer("ours", "kinesis,durable"),
            peer(STUB, "kinesis"),
            peer("slow", "kinesis"),
            peer("fast", "kinesis"),
            peer("disk", "kinesis,durable"),
        ];
        let values = [90.0, 1000.0, 10.0, 30.0, 5.0];
        let measured: Vec<Measured<'_>> = peers
            .iter()
            .zip(values)
            .map(|(peer, value)| Measured { peer, spread: Spread::of(vec![value]) })
            .collect();
        let memory = figure("put_records", &measured);
        assert_eq!((memory.ratio, memory.met), (Some(3.0), Some(true)));
        assert!(memory.what.ends_with("beside fast"), "{}", memory.what);
        let durable = figure("put_records_durable", &measured);
        assert_eq!((durable.ratio, durable.met), (Some(18.0), Some(false)));
        assert_eq!(figure("query_moto", &measured).met, None);
    }
}
