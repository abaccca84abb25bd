//! Tables and indexes as calls name them.

use anabranch_model::limits::{TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN};
use anabranch_model::{IndexName, TableName};

use super::errors::{NOT_FOUND, not_found};
use crate::fault::Fault;
use crate::validation::{Pattern, Validation};

const INVALID_NAME: &str = "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, \
                            and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'";

/// What names of tables and indexes consist of.
const NAME: Pattern = Pattern {
    text: "[a-zA-Z0-9_.-]+",
    matches: |text| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)),
};

/// Checks the table that a call about items names, together with whatever else is wrong.
pub(super) fn check_table(validation: &mut Validation, name: Option<&str>) {
    validation.required("tableName", &name);
    match name {
        // Of what is empty nothing else is told.
        Some("") => {
            validation.length("tableName", name, 1..=TABLE_NAME_CHARS_MAX);
        }
        Some(arn) if is_arn(arn) => {}
        _ => check_name(validation, "tableName", name),
    }
}

/// Checks the table that a call about tables names. Whether there is a name, and how long it is, is told before anything
/// else; what it consists of is told together with whatever else is wrong.
pub(super) fn check_own_table(validation: &mut Validation, name: Option<&str>) -> Result<(), Fault> {
    let Some(name) = name else {
        return Err(Fault::validation(
            "The parameter 'TableName' is required but was not present in the request",
        ));
    };
    if is_arn(name) {
        return Ok(());
    }
    let length = TABLE_NAME_CHARS_MIN..=TABLE_NAME_CHARS_MAX;
    Validation::default().length("tableName", Some(name), length).done()?;
    validation.pattern("tableName", Some(name), NAME);
    Ok(())
}

/// Checks what a table or an index is called.
pub(super) fn check_name(validation: &mut Validation, field: &str, name: Option<&str>) {
    validation.pattern(field, name, NAME).length(field, name, TABLE_NAME_CHARS_MIN..=TABLE_NAME_CHARS_MAX);
}

/// Checks the tables that a call with many of them names.
pub(super) fn check_tables<'a>(validation: &mut Validation, mut names: impl Iterator<Item = &'a String>) {
    let fits = |name: &str| {
        (TABLE_NAME_CHARS_MIN..=TABLE_NAME_CHARS_MAX).contains(&name.chars().count()) && (NAME.matches)(name)
    };
    validation.map_keys(
        "requestItems",
        names.all(|name| is_arn(name) || fits(name)),
        format_args!(
            "Member must have length less than or equal to {TABLE_NAME_CHARS_MAX}, Member must have length greater than \
             or equal to {TABLE_NAME_CHARS_MIN}, Member must satisfy regular expression pattern: {}",
            NAME.text
        ),
    );
}

fn is_arn(name: &str) -> bool {
    name.starts_with("arn:")
}

/// The table that a call about tables names and has nothing else to check.
pub(super) fn own_table(name: Option<&str>) -> Result<TableName, Fault> {
    let mut validation = Validation::default();
    check_own_table(&mut validation, name)?;
    validation.done()?;
    table_name(name)
}

/// The table that a call names, by its name or its ARN.
pub(super) fn table_name(name: Option<&str>) -> Result<TableName, Fault> {
    Validation::default().required("tableName", &name).done()?;
    let name = name.unwrap_or_default();
    let name = if is_arn(name) { table_of_arn(name)? } else { name };
    TableName::new(name).map_err(|_| Fault::validation(INVALID_NAME))
}

/// The name in the ARN of a table, or of something that belongs to one.
fn table_of_arn(arn: &str) -> Result<&str, Fault> {
    let resource = arn.splitn(6, ':').nth(5).filter(|_| is_arn(arn) && arn.contains(":dynamodb:"));
    let name = resource.and_then(|resource| resource.strip_prefix("table/")?.split('/').next());
    name.filter(|name| !name.is_empty()).ok_or_else(|| no_table(arn))
}

fn no_table(arn: &str) -> Fault {
    let shown: String = arn.chars().take(256).collect();
    Fault::validation(format!("Invalid TableArn: Invalid ResourceArn provided as input {shown}"))
}

/// The ARN of a resource, which is asked for before anything else.
pub(super) fn resource(arn: Option<&str>) -> Result<&str, Fault> {
    arn.ok_or_else(|| Fault::validation("Invalid TableArn"))
}

/// The table that a call names by the ARN of a resource.
pub(super) fn table_of_resource(arn: &str) -> Result<TableName, Fault> {
    let name = table_of_arn(arn)?;
    if arn.contains(&format!(":table/{name}/")) {
        return Err(Fault::validation(format!("Invalid ResourceArn: only tables have tags: {arn:.1024}")));
    }
    TableName::new(name).map_err(|_| no_table(arn))
}

/// The table of an ARN does not exist. The service spells it so.
pub(super) fn resource_not_found(fault: Fault, arn: &str) -> Fault {
    match &*fault.code {
        NOT_FOUND => not_found(format!("Requested resource not found: ResourcArn: {arn:.1024} not found")),
        _ => fault,
    }
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
        assert_eq!(table_of_resource(arn).unwrap().as_str(), "orders");
        for other in ["orders", &format!("{arn}/index/by-date")] {
            assert!(table_of_resource(other).is_err(), "{other}");
        }
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
