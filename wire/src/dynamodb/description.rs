//! A table as answers describe it.

use anabranch_model::table::{IndexOptions, IndexScope, IndexSummary, TableState, TableSummary};
use anabranch_model::{HashKey, TableName};
use serde::Serialize;

use super::encryption;
use super::key_schema::{Element, elements};
use super::schema::{
    Definition, ProjectionBody, StreamSpecification, Throughput, definitions, projection_body,
};
use super::settings::Settings;
use super::state::is_new;
use super::throughput::{OnDemand, Warm, WarmDescription};
use crate::context::Context;
use crate::dynamodb_streams;
use crate::time::Time;

/// A table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Description {
    table_name: String,
    table_arn: String,
    table_id: String,
    table_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_date_time: Option<Time>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attribute_definitions: Vec<Definition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key_schema: Vec<Element>,
    item_count: u64,
    table_size_bytes: u64,
    provisioned_throughput: ThroughputDescription,
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_mode_summary: Option<BillingMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table_class_summary: Option<TableClass>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_secondary_indexes: Vec<Index>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    local_secondary_indexes: Vec<Index>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_specification: Option<StreamSpecification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_stream_label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_stream_arn: Option<String>,
    #[serde(rename = "SSEDescription", skip_serializing_if = "Option::is_none")]
    encryption: Option<encryption::Description>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_demand_throughput: Option<OnDemand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_throughput: Option<WarmDescription>,
    deletion_protection_enabled: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ThroughputDescription {
    number_of_decreases_today: u64,
    #[serde(flatten)]
    ordered: Throughput,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct BillingMode {
    billing_mode: &'static str,
    last_update_to_pay_per_request_date_time: Time,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TableClass {
    table_class: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Index {
    index_name: String,
    index_arn: String,
    key_schema: Vec<Element>,
    projection: ProjectionBody,
    item_count: u64,
    index_size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backfilling: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned_throughput: Option<ThroughputDescription>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_demand_throughput: Option<OnDemand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_throughput: Option<WarmDescription>,
}

impl Description {
    /// What is said of a table that is being deleted: how it was made is left out.
    pub(super) fn of_deleted(self) -> Description {
        Description {
            creation_date_time: None,
            attribute_definitions: Vec::new(),
            key_schema: Vec::new(),
            global_secondary_indexes: Vec::new(),
            local_secondary_indexes: Vec::new(),
            ..self
        }
    }
}

/// The ARN of a table.
pub(super) fn table_arn(context: &Context, table: &TableName) -> String {
    context.arn("dynamodb", &format!("table/{table}"))
}

/// Describes a table.
pub(super) fn describe(context: &Context, summary: &TableSummary, settings: &Settings) -> Description {
    let TableSummary { name, options, .. } = summary;
    let indexes = |scope: IndexScope| {
        let pairs = options.indexes.iter().zip(&summary.indexes).filter(|(index, _)| index.scope == scope);
        pairs.map(|(index, state)| describe_index(context, summary, index, state, settings)).collect()
    };
    let state = if is_new(context, summary) { TableState::Creating } else { summary.state };
    let label = dynamodb_streams::label_of(summary);
    let arn = table_arn(context, name);
    Description {
        table_id: table_id(summary),
        table_status: status(state),
        creation_date_time: Some(Time(summary.created_at)),
        attribute_definitions: definitions(options),
        key_schema: elements(&options.key),
        item_count: summary.items,
        table_size_bytes: summary.bytes,
        provisioned_throughput: throughput(settings.throughput),
        billing_mode_summary: settings.throughput.is_none().then_some(BillingMode {
            billing_mode: "PAY_PER_REQUEST",
            last_update_to_pay_per_request_date_time: Time(summary.created_at),
        }),
        table_class_summary: settings.table_class.clone().map(|table_class| TableClass { table_class }),
        global_secondary_indexes: indexes(IndexScope::Global),
        local_secondary_indexes: indexes(IndexScope::Local),
        stream_specification: options.changes.map(StreamSpecification::of),
        latest_stream_arn: label.as_ref().map(|label| format!("{arn}/stream/{label}")),
        latest_stream_label: label,
        encryption: settings.key.as_deref().map(|key| encryption::Description::of(context, key)),
        on_demand_throughput: settings.on_demand,
        warm_throughput: settings.warm.map(Warm::described),
        deletion_protection_enabled: settings.deletion_protection,
        table_name: name.to_string(),
        table_arn: arn,
    }
}

fn describe_index(
    context: &Context,
    table: &TableSummary,
    index: &IndexOptions,
    state: &IndexSummary,
    settings: &Settings,
) -> Index {
    let global = index.scope == IndexScope::Global;
    let ordered = settings.index_throughput.get(index.name.as_str()).copied();
    let is_new = is_new(context, table);
    let shown = if is_new { TableState::Creating } else { state.state };
    Index {
        index_name: index.name.to_string(),
        index_arn: format!("{}/index/{}", table_arn(context, &table.name), index.name),
        key_schema: elements(&index.key),
        projection: projection_body(&index.projection),
        item_count: state.items,
        index_size_bytes: state.bytes,
        index_status: global.then_some(status(shown)),
        // An index that is made with its table has nothing to catch up with.
        backfilling: (global && !is_new && state.state == TableState::Creating).then_some(true),
        provisioned_throughput: global.then(|| throughput(ordered)),
        on_demand_throughput: settings.index_on_demand.get(index.name.as_str()).copied(),
        warm_throughput: settings.index_warm.get(index.name.as_str()).copied().map(Warm::described),
    }
}

fn throughput(ordered: Option<Throughput>) -> ThroughputDescription {
    ThroughputDescription { number_of_decreases_today: 0, ordered: ordered.unwrap_or_default() }
}

/// Where a table or an index stands.
pub(super) fn status(state: TableState) -> &'static str {
    match state {
        TableState::Creating => "CREATING",
        TableState::Active => "ACTIVE",
        TableState::Updating => "UPDATING",
        TableState::Deleting => "DELETING",
    }
}

/// The same for one table always, and another one for a younger table of the same name. It is spelled as a random UUID is.
fn table_id(summary: &TableSummary) -> String {
    const VERSION: (u128, u128) = (0xf << 76, 4 << 76);
    const VARIANT: (u128, u128) = (0b11 << 62, 0b10 << 62);
    let seed = format!("{}/{}", summary.name, summary.created_at.as_millis());
    let hash = HashKey::of(seed.as_bytes()).get() & !(VERSION.0 | VARIANT.0) | VERSION.1 | VARIANT.1;
    let hash = format!("{hash:032x}");
    format!("{}-{}-{}-{}-{}", &hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..])
}
