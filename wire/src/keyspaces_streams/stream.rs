//! Streams of rows by their ARNs.

use anabranch_model::TableName;

use super::faults::retold;
use crate::context::Context;
use crate::dynamodb::not_found;
use crate::dynamodb_streams::stream::{Known, Named, find};
use crate::fault::Fault;

/// The ARN of a stream of a table of a keyspace.
pub(super) fn arn(context: &Context, keyspace: &str, table: &str, label: &str) -> String {
    context.arn("cassandra", &format!("/keyspace/{keyspace}/table/{table}/stream/{label}"))
}

/// The stream with this ARN, and its keyspace.
pub(super) async fn find_by_arn(context: &Context, arn: &str) -> Result<(Named, String, Known), Fault> {
    let missing = || not_found(format!("Requested resource not found: Stream: {arn:.1024} not found"));
    let (named, keyspace) = parse(arn).ok_or_else(missing)?;
    let known = find(context, &named).await.map_err(retold)?.ok_or_else(missing)?;
    if known.keyspace.as_deref() != Some(keyspace.as_str()) {
        return Err(missing());
    }
    Ok((named, keyspace, known))
}

fn parse(arn: &str) -> Option<(Named, String)> {
    let resource =
        arn.splitn(6, ':').nth(5).filter(|_| arn.starts_with("arn:") && arn.contains(":cassandra:"))?;
    let (keyspace, rest) = resource.strip_prefix("/keyspace/")?.split_once("/table/")?;
    let (table, label) = rest.split_once("/stream/")?;
    Some((Named::of(table, label)?, keyspace.to_owned()))
}

/// A table that a call names.
pub(super) fn table_name(name: &str) -> Result<TableName, Fault> {
    TableName::new(name).map_err(super::faults::fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_names_keyspace_table_and_stream() {
        let label = "2025-11-13T02:13:20.123-changes-42";
        let arn = format!("arn:aws:cassandra:us-east-1:0:/keyspace/shop/table/orders/stream/{label}");
        let (named, keyspace) = parse(&arn).unwrap();
        assert_eq!(
            (named.table.as_str(), named.label.as_str(), keyspace.as_str()),
            ("orders", label, "shop")
        );
        for other in
            ["", "arn:aws:dynamodb:us-east-1:0:/keyspace/a/table/abc/stream/x", &arn[..arn.len() - 12]]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
