//! Metrics as lines of JSON on standard output, in CloudWatch's embedded metric format: whoever collects the output of
//! the process (Lambda, the agent of CloudWatch, a log driver) has the metrics with it.
//!
//! Counters tell what was added since the last lines, gauges what they stand at, and histograms the distribution since
//! the last lines. Metrics with the same labels share a line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, Timestamp};
use clap::ValueEnum;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::registry::{AtomicStorage, Registry};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output;

/// What the metrics are filed under.
const NAMESPACE: &str = "Anabranch";
/// How often lines are written. Measurements of one interval lie in memory until then.
const INTERVAL: Duration = Duration::from_secs(10);
/// Most metrics in a line, and most values in a distribution: more are not taken.
const PARTS_MAX: usize = 100;

/// Where metrics go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// Lines for CloudWatch on standard output
    Emf,
}

/// Collects metrics, and writes them until it is dropped or told to finish.
pub(crate) struct Emf {
    registry: Arc<Registry<Key, AtomicStorage>>,
    writer: tokio::task::JoinHandle<()>,
}

impl Emf {
    /// Collects from now on.
    pub(crate) fn start() -> Result<Self, Failure> {
        let registry = Arc::new(Registry::atomic());
        metrics::set_global_recorder(Collector(registry.clone())).map_err(|error| {
            Failure::new("metrics", format!("metrics cannot start: {error}"), "report this")
        })?;
        let writer = tokio::spawn(write_regularly(registry.clone()));
        Ok(Emf { registry, writer })
    }

    /// Writes what has come since the last lines.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.writer.abort();
        write(&self.registry)
    }
}

async fn write_regularly(registry: Arc<Registry<Key, AtomicStorage>>) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.tick().await;
    loop {
        interval.tick().await;
        // A reader that has gone away is noticed by the command itself.
        let _ = write(&registry);
    }
}

fn write(registry: &Registry<Key, AtomicStorage>) -> Result<(), Failure> {
    let lines = lines(registry, SystemClock::new().now());
    if lines.is_empty() { Ok(()) } else { output::write_out(lines.as_bytes()) }
}

/// The labels of a metric, in order.
type Labels = Vec<(String, String)>;

/// What has come since the last time, one line for each set of labels.
fn lines(registry: &Registry<Key, AtomicStorage>, now: Timestamp) -> String {
    let mut groups: BTreeMap<Labels, BTreeMap<String, Value>> = BTreeMap::new();
    let mut file = |key: &Key, value: Value| {
        groups.entry(labels(key)).or_default().insert(key.name().to_owned(), value);
    };
    registry.visit_counters(|key, counter| {
        let added = counter.swap(0, Ordering::Relaxed);
        if added > 0 {
            file(key, json!(added));
        }
    });
    registry.visit_gauges(|key, gauge| file(key, json!(f64::from_bits(gauge.load(Ordering::Relaxed)))));
    registry.visit_histograms(|key, histogram| {
        let mut values = Vec::new();
        histogram.clear_with(|some| values.extend_from_slice(some));
        if let Some(distribution) = distribution(&values) {
            file(key, distribution);
        }
    });
    let mut text = String::new();
    for (labels, metrics) in groups {
        let metrics: Vec<_> = metrics.into_iter().collect();
        for some in metrics.chunks(PARTS_MAX) {
            text.push_str(&line(&labels, some, now).to_string());
            text.push('\n');
        }
    }
    text
}

fn labels(key: &Key) -> Labels {
    let mut labels: Labels =
        key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
    labels.sort();
    labels
}

fn line(labels: &Labels, metrics: &[(String, Value)], now: Timestamp) -> Value {
    let names: Vec<_> = labels.iter().map(|(name, _)| name).collect();
    let described: Vec<_> =
        metrics.iter().map(|(name, _)| json!({ "Name": name, "Unit": unit(name) })).collect();
    let mut members: Map<String, Value> =
        labels.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    members.extend(metrics.iter().cloned());
    let directive = json!([{ "Namespace": NAMESPACE, "Dimensions": [names], "Metrics": described }]);
    members
        .insert("_aws".to_owned(), json!({ "Timestamp": now.as_millis(), "CloudWatchMetrics": directive }));
    Value::Object(members)
}

/// The unit of a metric is the end of its name, as Prometheus has it.
fn unit(name: &str) -> &'static str {
    match name.strip_suffix("_total").unwrap_or(name) {
        name if name.ends_with("_seconds") => "Seconds",
        name if name.ends_with("_bytes") => "Bytes",
        _ => "Count",
    }
}

/// Measurements as values with counts: rounded to three digits, and to fewer if there are too many different ones.
fn distribution(measured: &[f64]) -> Option<Value> {
    let first = *measured.first()?;
    let (min, max) =
        measured.iter().fold((first, first), |(min, max), value| (min.min(*value), max.max(*value)));
    let mut counts: Vec<(f64, u64)> = Vec::new();
    for digits in (1..=3).rev() {
        let mut rounded: Vec<f64> = measured.iter().map(|value| round(*value, digits)).collect();
        rounded.sort_by(f64::total_cmp);
        counts = rounded.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        if counts.len() <= PARTS_MAX {
            break;
        }
    }
    // One digit leaves nine values to each power of ten: a hundred span eleven of them, and the rest joins the last.
    let rest: u64 = counts.drain(PARTS_MAX.min(counts.len())..).map(|(_, count)| count).sum();
    if let Some(last) = counts.last_mut() {
        last.1 += rest;
    }
    let (values, counts): (Vec<f64>, Vec<u64>) = counts.into_iter().unzip();
    let sum: f64 = measured.iter().sum();
    Some(json!({
        "Values": values, "Counts": counts,
        "Min": min, "Max": max, "Sum": sum, "Count": measured.len(),
    }))
}

fn round(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let shift = digits - 1 - value.abs().log10().floor() as i32;
    // Dividing by a power of ten gives the nearest number to the decimal one; multiplying by a fraction does not.
    if shift >= 0 {
        (value * 10_f64.powi(shift)).round() / 10_f64.powi(shift)
    } else {
        (value / 10_f64.powi(-shift)).round() * 10_f64.powi(-shift)
    }
}

/// The registry as the place where all metrics of the process go.
struct Collector(Arc<Registry<Key, AtomicStorage>>);

impl Recorder for Collector {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.0.get_or_create_counter(key, |counter| Counter::from_arc(counter.clone()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.0.get_or_create_gauge(key, |gauge| Gauge::from_arc(gauge.clone()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.0.get_or_create_histogram(key, |histogram| Histogram::from_arc(histogram.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_says_what_its_members_are() {
        let registry = Arc::new(Registry::atomic());
        metrics::with_local_recorder(&Collector(registry.clone()), || {
            for _ in 0..3 {
                metrics::counter!("calls_total", "service" => "kinesis").increment(2);
                metrics::histogram!("call_duration_seconds", "service" => "kinesis").record(0.0421);
            }
            metrics::gauge!("open").set(7.0);
        });
        let found = parsed(&lines(&registry, Timestamp::EPOCH.plus(Duration::from_secs(9))));
        assert_eq!(found.len(), 2);
        let call = found.iter().find(|line| line["service"] == "kinesis").unwrap();
        assert_eq!(call["calls_total"], 6);
        assert_eq!(call["call_duration_seconds"]["Values"], json!([0.0421]));
        assert_eq!(call["call_duration_seconds"]["Counts"], json!([3]));
        assert_eq!(call["_aws"]["Timestamp"], 9_000);
        let directive = &call["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "Anabranch");
        assert_eq!(directive["Dimensions"], json!([["service"]]));
        assert_eq!(directive["Metrics"][0], json!({ "Name": "call_duration_seconds", "Unit": "Seconds" }));
        // What was told is not told again; what stands somewhere still stands there.
        let later = parsed(&lines(&registry, Timestamp::EPOCH));
        assert_eq!(later.len(), 1);
        assert_eq!(later[0]["open"], 7.0);
    }

    #[test]
    fn a_distribution_has_few_values_and_counts_all() {
        let measured: Vec<f64> = (1..=10_000).map(|n| f64::from(n) / 1e6).collect();
        let told = distribution(&measured).unwrap();
        let (values, counts) = (told["Values"].as_array().unwrap(), told["Counts"].as_array().unwrap());
        assert!(values.len() <= PARTS_MAX && values.len() == counts.len(), "{} values", values.len());
        assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 10_000);
        assert_eq!((told["Min"].as_f64(), told["Max"].as_f64()), (Some(1e-6), Some(0.01)));
        assert_eq!(distribution(&[]), None);
        let wide: Vec<f64> = (-300..300).map(|power| 10_f64.powi(power)).collect();
        let told = distribution(&wide).unwrap();
        assert_eq!(told["Values"].as_array().unwrap().len(), PARTS_MAX);
    }
}
