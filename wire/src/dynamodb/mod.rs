//! DynamoDB: a file for each operation, and what they share.
//!
//! Read in this order: values (`attribute`), texts that become conditions and updates (`expression`, and `legacy` for
//! what was there before), how tables are described (`schema`, `key_schema`, `throughput`, `encryption`, `settings`,
//! `description`) and made (`whole`), what operations share (`write`, `reading`, `composite`, `capacity`), and how errors are told (`errors`, `explain`).

mod attribute;
mod expression;
mod legacy;

mod names;

mod description;
mod elsewhere;
mod encryption;
mod key_schema;
mod schema;
mod settings;
mod state;
mod tags;
mod throughput;
mod whole;

mod capacity;
mod composite;
mod reading;
mod write;

mod errors;
mod explain;

mod create_table;
mod delete_table;
mod describe_table;
mod list_tables;
mod update_table;

mod delete_item;
mod get_item;
mod put_item;
mod update_item;

mod batch_get_item;
mod batch_write_item;
mod query;
mod scan;
mod transact_get_items;
mod transact_write_items;

mod describe_time_to_live;
mod update_time_to_live;

mod list_tags_of_resource;
mod tag_resource;
mod untag_resource;

mod describe_continuous_backups;
mod describe_endpoints;
mod describe_limits;

use crate::operations::operations;

pub(crate) use attribute::ItemBody;
pub(crate) use errors::{fault, not_found};
pub(crate) use key_schema::{Element, elements};
pub(crate) use schema::view_name;
pub(crate) use state::{State, settle_at_start};

operations! {
    "BatchGetItem" => batch_get_item,
    "BatchWriteItem" => batch_write_item,
    "CreateTable" => create_table,
    "DeleteItem" => delete_item,
    "DeleteTable" => delete_table,
    "DescribeContinuousBackups" => describe_continuous_backups,
    "DescribeEndpoints" => describe_endpoints,
    "DescribeLimits" => describe_limits,
    "DescribeTable" => describe_table,
    "DescribeTimeToLive" => describe_time_to_live,
    "GetItem" => get_item,
    "ListTables" => list_tables,
    "ListTagsOfResource" => list_tags_of_resource,
    "PutItem" => put_item,
    "Query" => query,
    "Scan" => scan,
    "TagResource" => tag_resource,
    "TransactGetItems" => transact_get_items,
    "TransactWriteItems" => transact_write_items,
    "UntagResource" => untag_resource,
    "UpdateItem" => update_item,
    "UpdateTable" => update_table,
    "UpdateTimeToLive" => update_time_to_live,
}
