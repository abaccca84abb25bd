//! What a consumer counts, by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;

/// Every metric that was touched; what counters hold is known.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counts {
    /// What a counter holds, over all its labels.
    pub fn of(&self, name: &str) -> u64 {
        self.0.lock().get(name).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    fn touch(&self, key: &Key) -> Arc<AtomicU64> {
        self.0.lock().entry(key.name().to_owned()).or_default().clone()
    }
}

struct Ignored;

impl HistogramFn for Ignored {
    fn record(&self, _: f64) {}
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.touch(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.touch(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.touch(key);
        Histogram::from_arc(Arc::new(Ignored))
    }
}

/// Runs a test with everything counted.
pub fn counted(test: impl AsyncFnOnce(&Counts)) {
    let counts = Counts::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&counts, || runtime.block_on(test(&counts)));
}
