//! Writers: tasks that each have one append in flight. What they append is made before the clock starts.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::{Error, NewRecord, StreamName, StreamStore};
use anabranch_producer::{Producer, Ticket};
use bytes::Bytes;

use super::tasks::{self, Task};
use crate::failure::Failure;

/// Payload of a record.
pub(crate) const RECORD_BYTES: usize = 1024;
/// Payloads of all writers together: few enough to stay in the processor's cache.
const STOCK_BYTES: usize = 8 << 20;
/// Keys of each writer.
const KEYS: usize = 4096;
/// Bytes of a key.
const KEY_BYTES: usize = 12;
/// Steps of a writer whose records a producer may have at once, the newest included.
const STEPS_UNDER_WAY: usize = 2;

/// What the writers of a round do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Tasks, each with one append in flight.
    pub(crate) writers: usize,
    /// Records of an append.
    pub(crate) records: usize,
}

/// What the writers of a round put in: made before, used again and again, so that they are as warm as a request that has
/// just been received.
pub(crate) struct Payloads {
    load: Load,
    /// Appends of each writer in a round.
    appends: usize,
    /// For each writer its own: no two share a reference count.
    stocks: Vec<Stock>,
}

/// Payloads that no compression makes smaller, and keys that go to all shards.
#[derive(Clone)]
struct Stock {
    /// Each is the payload of one append.
    payloads: Vec<Bytes>,
    /// Keys of the same length, one behind the other.
    keys: Bytes,
}

impl Payloads {
    /// Payloads for rounds of about so many bytes, the same number of appends for every writer.
    pub(crate) fn make(load: Load, bytes: u64) -> Payloads {
        let append_bytes = load.records * RECORD_BYTES;
        let appends = (bytes as usize / append_bytes / load.writers).max(1);
        let count = (STOCK_BYTES / append_bytes / load.writers).clamp(1, appends);
        let stocks = (0..load.writers).map(|writer| Stock::make(writer, count, append_bytes)).collect();
        Payloads { load, appends, stocks }
    }
}

impl Stock {
    fn make(writer: usize, count: usize, append_bytes: usize) -> Stock {
        let seed = |number: usize| (writer * count + number) as u64;
        let payloads = (0..count).map(|number| incompressible(seed(number), append_bytes).into()).collect();
        let keys: String = (0..KEYS).map(|number| format!("{writer:03}-{number:08}")).collect();
        Stock { payloads, keys: keys.into() }
    }

    /// The append with this number.
    fn append(&self, number: usize, records: usize) -> Vec<NewRecord> {
        let payload = &self.payloads[number % self.payloads.len()];
        let record = |index: usize| {
            let key = (number * records + index) % KEYS * KEY_BYTES;
            let data = payload.slice(index * RECORD_BYTES..(index + 1) * RECORD_BYTES);
            NewRecord::new(self.keys.slice(key..key + KEY_BYTES), data)
        };
        (0..records).map(record).collect()
    }
}

/// What writers achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Records that were acknowledged.
    pub(crate) records: u64,
    /// From the first append to the last acknowledgement.
    pub(crate) elapsed: Duration,
}

impl Written {
    /// Records a second.
    pub(crate) fn records_per_second(&self) -> f64 {
        self.records as f64 / self.elapsed.as_secs_f64()
    }

    /// Payload a second.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.records_per_second() * RECORD_BYTES as f64
    }
}

/// One writer.
struct Writer {
    engine: Engine,
    stream: StreamName,
    stock: Stock,
    records: usize,
}

impl Task for Writer {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        for result in self.engine.append(&self.stream, self.stock.append(number, self.records)).await? {
            result?;
        }
        Ok(())
    }
}

/// Lets all writers go until the first has nothing left to write or the time is over.
pub(crate) async fn write(
    engine: &Engine,
    stream: &StreamName,
    payloads: &Payloads,
    at_most: Duration,
) -> Result<Written, Failure> {
    let records = payloads.load.records;
    let writer = |stock: &Stock| Writer {
        engine: engine.clone(),
        stream: stream.clone(),
        stock: stock.clone(),
        records,
    };
    let writers = payloads.stocks.iter().map(writer).collect();
    let done = tasks::race(writers, payloads.appends, at_most).await?;
    Ok(Written { records: done.steps * records as u64, elapsed: done.elapsed })
}

/// One writer that leaves batches, order and retries to a producer. It goes on sending while the store answers, as long
/// as no more than [`STEPS_UNDER_WAY`] of its steps are.
struct Producing {
    producer: Producer,
    stock: Stock,
    records: usize,
    tickets: VecDeque<Ticket>,
}

impl Producing {
    /// Waits for the oldest records until no more than so many are under way.
    async fn wait_for_all_but(&mut self, records: usize) -> Result<(), Failure> {
        while self.tickets.len() > records
            && let Some(ticket) = self.tickets.pop_front()
        {
            ticket.await.map_err(|lost| Error::Unavailable(lost.to_string()))?;
        }
        Ok(())
    }
}

impl Task for Producing {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        for record in self.stock.append(number, self.records) {
            self.tickets.push_back(self.producer.send(record).await?);
        }
        self.wait_for_all_but((STEPS_UNDER_WAY - 1) * self.records).await
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.wait_for_all_but(0).await
    }
}

/// The same through a producer, record by record.
pub(crate) async fn produce(
    producer: &Producer,
    payloads: &Payloads,
    at_most: Duration,
) -> Result<Written, Failure> {
    let records = payloads.load.records;
    let writer = |stock: &Stock| Producing {
        producer: producer.clone(),
        stock: stock.clone(),
        records,
        tickets: VecDeque::with_capacity(STEPS_UNDER_WAY * records),
    };
    let done = tasks::race(payloads.stocks.iter().map(writer).collect(), payloads.appends, at_most).await?;
    Ok(Written { records: done.steps * records as u64, elapsed: done.elapsed })
}

/// Bytes that look like noise, the same for the same seed.
pub(crate) fn incompressible(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut noise = Vec::with_capacity(bytes.next_multiple_of(8));
    while noise.len() < bytes {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        noise.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_append_has_payloads_and_keys_of_its_own() {
        let payloads = Payloads::make(Load { writers: 3, records: 5 }, 64 << 10);
        assert_eq!((payloads.appends, payloads.stocks.len()), (4, 3));
        let stocks = payloads.stocks.iter();
        let records: Vec<NewRecord> =
            stocks.flat_map(|stock| (0..4).flat_map(|number| stock.append(number, 5))).collect();
        assert_eq!(records.len(), 60);
        assert!(records.iter().all(|record| record.data.len() == RECORD_BYTES && record.check().is_ok()));
        assert_eq!(records.iter().map(|record| &record.partition_key).collect::<HashSet<_>>().len(), 60);
        assert_eq!(records.iter().map(|record| &record.data).collect::<HashSet<_>>().len(), 60);
    }

    #[test]
    fn a_stock_does_not_run_out() {
        let payloads = Payloads::make(Load { writers: 8, records: 500 }, 128 << 20);
        assert_eq!(payloads.stocks[0].payloads.len(), 2);
        let keys = payloads.stocks[7].append(1_000_000, 500);
        assert!(keys.iter().all(|record| record.partition_key.len() == KEY_BYTES));
    }

    #[test]
    fn noise_uses_all_bytes_about_as_often() {
        let mut counts = [0u32; 256];
        incompressible(7, 256 << 10).iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (800..1250).contains(count)), "{counts:?}");
        assert_ne!(incompressible(1, 64), incompressible(2, 64));
        assert_eq!(incompressible(1, 13).len(), 13);
    }
}
