//! UpdateTimeToLive.

use anabranch_model::table::Alteration;
use serde::{Deserialize, Serialize};

use super::errors::table_fault;
use super::names::{check_own_table, table_name};
use super::state::changing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    time_to_live_specification: Option<Specification>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Specification {
    enabled: Option<bool>,
    attribute_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    time_to_live_specification: Specification,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    const FIELD: &str = "timeToLiveSpecification";
    let mut validation = Validation::default();
    check_own_table(&mut validation, request.table_name.as_deref())?;
    validation.required(FIELD, &request.time_to_live_specification);
    if let Some(specification) = &request.time_to_live_specification {
        let name = format!("{FIELD}.attributeName");
        validation.required(&format!("{FIELD}.enabled"), &specification.enabled);
        validation.required(&name, &specification.attribute_name);
        validation.length(&name, specification.attribute_name.as_deref(), 1..=255);
    }
    validation.done()?;
    let table = table_name(request.table_name.as_deref())?;
    let Some(specification) = request.time_to_live_specification else {
        return Err(Fault::validation("TimeToLiveSpecification is missing"));
    };
    let attribute = specification.attribute_name.clone().filter(|_| specification.enabled == Some(true));
    let _changing = changing(context).await?;
    let before = context.ports.tables.table(&table).await.map_err(table_fault)?.options.time_to_live;
    let named = specification.attribute_name.as_ref();
    let why = match (&before, &attribute) {
        (Some(before), None) if Some(before) != named => Some(format!(
            "TimeToLive is active on a different AttributeName: current AttributeName is {before}"
        )),
        (Some(before), Some(attribute)) if before != attribute => Some(format!(
            "TimeToLive is active on a different AttributeName: current AttributeName is {before}"
        )),
        (Some(_), Some(_)) => Some("TimeToLive is already enabled".to_string()),
        (None, None) => Some("TimeToLive is already disabled".to_string()),
        _ => None,
    };
    if let Some(why) = why {
        return Err(Fault::validation(why));
    }
    context.ports.tables.alter(&table, Alteration::TimeToLive(attribute)).await.map_err(table_fault)?;
    Ok(Response { time_to_live_specification: specification })
}
