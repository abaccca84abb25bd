//! PutMetricData.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::numbers::{Moment, Number};
use super::series::{Series, Values, show};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{at_most, bounded};

/// Most values of one call.
const DATA_MAX: usize = 1_000;
/// Most things that the values of one call are about.
const ENTITIES_MAX: usize = 100;
/// Most dimensions of a value.
const DIMENSIONS_MAX: usize = 30;
/// Most values that are told apart in one datum.
const VALUES_MAX: usize = 150;
/// How old a value may be, in seconds.
const AGE_MAX: f64 = 14.0 * 86_400.0;
/// How far in the future, in seconds.
const LEAD_MAX: f64 = 2.0 * 3_600.0;
/// How far from zero a value may be: 2^360.
const VALUE_MAX: f64 = f64::from_bits((1_023 + 360) << 52);
/// Most samples of one datum: up to here every whole number can be told from the next.
const COUNT_MAX: f64 = (1_u64 << 53) as f64;
/// What values can be measured in.
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    namespace: Option<String>,
    #[serde(default, deserialize_with = "at_most::<_, _, { DATA_MAX }>")]
    metric_data: Vec<Datum>,
    #[serde(default, deserialize_with = "bounded::<_, _, { ENTITIES_MAX }>")]
    entity_metric_data: Vec<EntityData>,
}

/// Values with what they are about; only the values are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntityData {
    #[serde(default, deserialize_with = "at_most::<_, _, { DATA_MAX }>")]
    metric_data: Vec<Datum>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Datum {
    metric_name: Option<String>,
    #[serde(default, deserialize_with = "at_most::<_, _, { DIMENSIONS_MAX }>")]
    dimensions: Vec<Dimension>,
    timestamp: Option<Moment>,
    value: Option<Number>,
    statistic_values: Option<Statistics>,
    #[serde(default, deserialize_with = "at_most::<_, _, { VALUES_MAX }>")]
    values: Vec<Number>,
    #[serde(default, deserialize_with = "at_most::<_, _, { VALUES_MAX }>")]
    counts: Vec<Number>,
    unit: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Dimension {
    name: Option<String>,
    value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Statistics {
    sample_count: Number,
    sum: Number,
    minimum: Number,
    maximum: Number,
}

pub(super) fn handle(context: &Context, request: Request) -> Result<(), Fault> {
    let namespace = text("Namespace", request.namespace, 255)?;
    let now = context.clock.now().as_millis() as f64 / 1_000.0;
    let entities = request.entity_metric_data.into_iter().flat_map(|entity| entity.metric_data);
    let data: Vec<Datum> = request.metric_data.into_iter().chain(entities).collect();
    if data.is_empty() {
        return Err(missing("MetricData"));
    }
    if data.len() > DATA_MAX {
        return Err(invalid(format!("The collection MetricData must not have more than {DATA_MAX} items.")));
    }
    // All of them are checked before the first is shown.
    let read = data.into_iter().map(|datum| read(&namespace, datum, now)).collect::<Result<Vec<_>, _>>()?;
    if !context.cloudwatch.admit(read.iter().map(|(series, _)| series)) {
        let message =
            "there are too many different metrics: this server shows no more until it is started again";
        return Err(Fault {
            query_code: Some("LimitExceeded"),
            ..Fault::client("LimitExceededFault", message)
        });
    }
    for (series, values) in read {
        show(&series, values);
    }
    Ok(())
}

fn read(namespace: &str, datum: Datum, now: f64) -> Result<(Series, Values), Fault> {
    if let Some(Moment(at)) = datum.timestamp
        && !(now - AGE_MAX..=now + LEAD_MAX).contains(&at)
    {
        return Err(invalid(
            "The parameter Timestamp must be within two weeks before and two hours after now.",
        ));
    }
    let series = Series {
        namespace: namespace.to_owned(),
        metric: text("MetricName", datum.metric_name, 255)?,
        dimensions: dimensions(datum.dimensions)?,
        unit: datum.unit.unwrap_or_else(|| "None".to_owned()),
    };
    if !UNITS.contains(&&*series.unit) {
        return Err(invalid("The parameter Unit is not a unit."));
    }
    let values = values(datum.value, datum.statistic_values, &datum.values, &datum.counts)?;
    if !(0.0..=COUNT_MAX).contains(&values.count) {
        return Err(invalid("The number of samples must not be less than zero, or more than 2^53."));
    }
    Ok((series, values))
}

fn values(
    value: Option<Number>,
    statistics: Option<Statistics>,
    values: &[Number],
    counts: &[Number],
) -> Result<Values, Fault> {
    match (value, statistics, values) {
        (Some(value), None, []) => {
            check_value("Value", value)?;
            Ok(Values { count: 1.0, sum: value.0, last: value.0 })
        }
        (None, Some(statistics), []) => {
            let Statistics { sample_count, sum, minimum, maximum } = statistics;
            for (name, value) in [("Sum", sum), ("Minimum", minimum), ("Maximum", maximum)] {
                check_value(name, value)?;
            }
            if minimum.0 > maximum.0 {
                return Err(invalid("The parameter Minimum must not be greater than Maximum."));
            }
            Ok(Values { count: sample_count.0, sum: sum.0, last: maximum.0 })
        }
        (None, None, [.., last]) => {
            if values.len() > VALUES_MAX {
                return Err(invalid(format!(
                    "The parameter Values must not have more than {VALUES_MAX} items."
                )));
            }
            if !counts.is_empty() && counts.len() != values.len() {
                return Err(combination("The parameters Values and Counts must be of the same size."));
            }
            values.iter().try_for_each(|value| check_value("Values", *value))?;
            if !counts.iter().all(|count| (0.0..=COUNT_MAX).contains(&count.0)) {
                return Err(invalid("The parameter Counts must have numbers from zero to 2^53."));
            }
            let weights = counts.iter().map(|count| count.0).chain(std::iter::repeat(1.0));
            let weighted = values.iter().map(|value| value.0).zip(weights);
            let (sum, count) = weighted
                .fold((0.0, 0.0), |(sum, count), (value, weight)| (sum + value * weight, count + weight));
            Ok(Values { count, sum, last: last.0 })
        }
        (None, None, []) => Err(missing("Value")),
        _ => Err(combination("Only one of the parameters Value, Values and StatisticValues can be given.")),
    }
}

/// A sum of values may be larger than any of them can be, but it is finite.
fn check_value(parameter: &str, value: Number) -> Result<(), Fault> {
    if (-VALUE_MAX..=VALUE_MAX).contains(&value.0) {
        return Ok(());
    }
    Err(invalid(format!("The parameter {parameter} must be a number from -2^360 to 2^360.")))
}

fn dimensions(dimensions: Vec<Dimension>) -> Result<String, Fault> {
    if dimensions.len() > DIMENSIONS_MAX {
        return Err(invalid(format!(
            "The collection Dimensions must not have more than {DIMENSIONS_MAX} items."
        )));
    }
    let mut sorted = BTreeMap::new();
    for dimension in dimensions {
        let name = text("Dimensions.Name", dimension.name, 255)?;
        if sorted.insert(name, text("Dimensions.Value", dimension.value, 1_024)?).is_some() {
            return Err(invalid("No two dimensions can have the same name."));
        }
    }
    let spelled = sorted.into_iter().map(|(name, value)| format!("{name}={value}"));
    Ok(spelled.collect::<Vec<_>>().join(","))
}

fn text(parameter: &str, value: Option<String>, chars_max: usize) -> Result<String, Fault> {
    let value = value.filter(|value| !value.is_empty()).ok_or_else(|| missing(parameter))?;
    if value.chars().count() > chars_max || value.chars().any(char::is_control) {
        let message =
            format!("The parameter {parameter} must have 1 to {chars_max} characters that can be seen.");
        return Err(invalid(message));
    }
    Ok(value)
}

fn missing(parameter: &str) -> Fault {
    let message = format!("The parameter {parameter} is required.");
    let fault = Fault::client("MissingRequiredParameterException", message);
    Fault { query_code: Some("MissingParameter"), ..fault }
}

fn invalid(message: impl Into<String>) -> Fault {
    let fault = Fault::client("InvalidParameterValueException", message);
    Fault { query_code: Some("InvalidParameterValue"), ..fault }
}

fn combination(message: &str) -> Fault {
    let fault = Fault::client("InvalidParameterCombinationException", message);
    Fault { query_code: Some("InvalidParameterCombination"), ..fault }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: f64 = 1_763_000_000.0;

    fn datum(value: serde_json::Value) -> Result<(Series, Values), String> {
        let datum = serde_json::from_value(value).unwrap();
        read("App", datum, NOW).map_err(|fault| fault.query_code.unwrap_or_default().to_owned())
    }

    #[test]
    fn values_come_alone_summed_up_or_as_a_list() {
        let series = |value| datum(value).unwrap();
        let (found, values) = series(json!({
            "MetricName": "Latency", "Value": 2.5, "Unit": "Seconds", "Timestamp": NOW,
            "Dimensions": [{"Name": "Zone", "Value": "b"}, {"Name": "Host", "Value": "a"}],
        }));
        assert_eq!((&*found.dimensions, &*found.unit), ("Host=a,Zone=b", "Seconds"));
        assert_eq!(values, Values { count: 1.0, sum: 2.5, last: 2.5 });
        let (_, values) = series(json!({"MetricName": "m", "Values": [1, 2], "Counts": [3, 4]}));
        assert_eq!(values, Values { count: 7.0, sum: 11.0, last: 2.0 });
        let (_, values) = series(json!({"MetricName": "m", "Values": [1, 2]}));
        assert_eq!(values, Values { count: 2.0, sum: 3.0, last: 2.0 });
        let statistics = json!({"SampleCount": 4, "Sum": 10, "Minimum": 1, "Maximum": 5});
        let (_, values) = series(json!({"MetricName": "m", "StatisticValues": statistics}));
        assert_eq!(values, Values { count: 4.0, sum: 10.0, last: 5.0 });
    }

    #[test]
    fn the_largest_values_are_taken() {
        assert_eq!(VALUE_MAX, 2.0_f64.powi(360));
        for (value, sum) in [(2.3e108, 2.3e108), (-VALUE_MAX, -VALUE_MAX), (VALUE_MAX, VALUE_MAX)] {
            let (_, values) =
                datum(json!({"MetricName": "m", "Value": value, "Unit": "Count/Second"})).unwrap();
            assert_eq!(values.sum, sum);
        }
        let (_, values) =
            datum(json!({"MetricName": "m", "Values": [VALUE_MAX], "Counts": [COUNT_MAX]})).unwrap();
        assert!(values.sum.is_finite() && values.count == COUNT_MAX, "{values:?}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let long = "x".repeat(256);
        let statistics = json!({"SampleCount": 4, "Sum": 10, "Minimum": 6, "Maximum": 5});
        let endless = json!({"SampleCount": 4, "Sum": "inf", "Minimum": 1, "Maximum": 5});
        let many = json!({"SampleCount": 1e17, "Sum": 10, "Minimum": 1, "Maximum": 5});
        for (value, code) in [
            (json!({"Value": 1}), "MissingParameter"),
            (json!({"MetricName": "m"}), "MissingParameter"),
            (json!({"MetricName": long, "Value": 1}), "InvalidParameterValue"),
            (json!({"MetricName": "a\nb", "Value": 1}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": "NaN"}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": "inf"}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": 1, "Values": [1]}), "InvalidParameterCombination"),
            (json!({"MetricName": "m", "Values": [1], "Counts": [1, 2]}), "InvalidParameterCombination"),
            (json!({"MetricName": "m", "Values": [1], "Counts": [-2]}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "StatisticValues": statistics}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": 1, "Unit": "Furlongs"}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": 1, "Unit": "seconds"}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": 1, "Unit": ""}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": 2.4e108}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Value": -2.4e108}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Values": [1, "NaN", 1]}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Values": [1], "Counts": [1e300]}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Values": [1, 2], "Counts": [3, -1]}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "Values": [1], "Counts": ["inf"]}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "StatisticValues": endless}), "InvalidParameterValue"),
            (json!({"MetricName": "m", "StatisticValues": many}), "InvalidParameterValue"),
            (
                json!({"MetricName": "m", "Value": 1, "Timestamp": NOW - AGE_MAX - 1.0}),
                "InvalidParameterValue",
            ),
            (
                json!({"MetricName": "m", "Value": 1, "Timestamp": NOW + LEAD_MAX + 1.0}),
                "InvalidParameterValue",
            ),
            (json!({"MetricName": "m", "Value": 1, "Dimensions": [{"Name": "a"}]}), "MissingParameter"),
        ] {
            assert_eq!(datum(value.clone()).unwrap_err(), code, "{value}");
        }
    }
}
