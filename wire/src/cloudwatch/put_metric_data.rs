//! PutMetricData.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::numbers::{Moment, Number};
use super::series::{Series, Values, show};
use crate::context::Context;
use crate::fault::Fault;

/// Most values of one call.
const DATA_MAX: usize = 1_000;
/// Most dimensions of a value.
const DIMENSIONS_MAX: usize = 30;
/// Most values that are told apart in one datum.
const VALUES_MAX: usize = 150;
/// How old a value may be, in seconds.
const AGE_MAX: f64 = 14.0 * 86_400.0;
/// How far in the future, in seconds.
const LEAD_MAX: f64 = 2.0 * 3_600.0;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    namespace: Option<String>,
    #[serde(default)]
    metric_data: Vec<Datum>,
    #[serde(default)]
    entity_metric_data: Vec<EntityData>,
}

/// Values with what they are about; only the values are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntityData {
    #[serde(default)]
    metric_data: Vec<Datum>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Datum {
    metric_name: Option<String>,
    #[serde(default)]
    dimensions: Vec<Dimension>,
    timestamp: Option<Moment>,
    value: Option<Number>,
    statistic_values: Option<Statistics>,
    #[serde(default)]
    values: Vec<Number>,
    #[serde(default)]
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
    if series.unit.len() > 64 {
        return Err(invalid("The parameter Unit is not a unit."));
    }
    let values = values(datum.value, datum.statistic_values, &datum.values, &datum.counts)?;
    if ![values.count, values.sum, values.last].iter().all(|number| number.is_finite()) || values.count < 0.0
    {
        return Err(invalid("The value must be a finite number, and a count not less than zero."));
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
        (Some(Number(value)), None, []) => Ok(Values { count: 1.0, sum: value, last: value }),
        (None, Some(statistics), []) => {
            let Statistics { sample_count, sum, minimum, maximum } = statistics;
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
    fn what_makes_no_sense_is_refused() {
        let long = "x".repeat(256);
        let statistics = json!({"SampleCount": 4, "Sum": 10, "Minimum": 6, "Maximum": 5});
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
