//! Tables and indexes as calls name them.

use anabranch_model::{IndexName, TableName};

use super::errors::not_found;
use crate::fault::Fault;
use crate::validation::Validation;

const INVALID_NAME: &str = "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, \
                            and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'";

/// The table that a call names, by its name or its ARN.
pub(super) fn table_name(name: Option<&str>) -> Result<TableName, Fault> {
    Validation::default().required("tableName", &name).done()?;
    let name = name.unwrap_or_default();
    let name = if name.starts_with("arn:") { table_of_arn(name)? } else { name };
    TableName::new(name).map_err(|_| Fault::validation(INVALID_NAME))
}

/// The name in the ARN of a table, or of something that belongs to one.
fn table_of_arn(arn: &str) -> Result<&str, Fault> {
    let resource = arn.splitn(6, ':').nth(5).filter(|_| arn.contains(":dynamodb:"));
    let name = resource.and_then(|resource| resource.strip_prefix("table/")?.split('/').next());
    name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let shown: String = arn.chars().take(256).collect();
        Fault::validation(format!("Invalid TableArn: Invalid ResourceArn provided as input {shown}"))
    })
}

/// The table that a call names by the ARN of a resource.
pub(super) fn table_of_resource(arn: Option<&str>) -> Result<TableName, Fault> {
    Validation::default().required("resourceArn", &arn).done()?;
    let arn = arn.unwrap_or_default();
    if !arn.starts_with("arn:") {
        let shown: String = arn.chars().take(256).collect();
        return Err(Fault::validation(format!("Invalid ResourceArn: ARNs must start with 'arn:': {shown}")));
    }
    let name = table_of_arn(arn)?;
    if arn.contains(&format!(":table/{name}/")) {
        return Err(Fault::validation(format!("Invalid ResourceArn: only tables have tags: {arn:.1024}")));
    }
    TableName::new(name)
        .map_err(|_| not_found(format!("Requested resource not found: ResourcArn: {name} not found")))
}

/// An index that a call names.
pub(super) fn index_name(name: &str) -> Result<IndexName, Fault> {
    IndexName::new(name).map_err(|_| Fault::validation(INVALID_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_or_pointed_at() {
        let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";
        for name in ["orders", arn, &format!("{arn}/stream/2026"), &format!("{arn}/index/by-date")] {
            assert_eq!(table_name(Some(name)).unwrap().as_str(), "orders", "{name}");
        }
        assert_eq!(table_of_resource(Some(arn)).unwrap().as_str(), "orders");
    }

    #[test]
    fn what_names_no_table_is_refused() {
        for name in ["ab", "a b c", "a/bc", &"x".repeat(256), "", "../../etc"] {
            assert_eq!(table_name(Some(name)).unwrap_err().message, INVALID_NAME, "{name}");
        }
        for arn in [
            "arn:",
            "arn:aws:dynamodb:r:0:table/",
            "arn:aws:sqs:r:0:table/orders",
            "arn:aws:dynamodb:r:0:x/orders",
        ] {
            assert_eq!(table_name(Some(arn)).unwrap_err().code, "ValidationException", "{arn}");
        }
        assert!(table_name(None).unwrap_err().message.contains("Value null at 'tableName'"));
    }
}
