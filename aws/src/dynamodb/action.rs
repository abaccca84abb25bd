//! Every call that tables make, with the quotas of an account.
//!
//! An account may make 2,500 calls a second that make, change or describe tables, all together; those that change
//! something are few, and kept far below.

use crate::action::{Action, Resource, Service, actions};

const fn dynamodb(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::Dynamodb, name, resource)
}

actions! {
    CREATE_TABLE = dynamodb("CreateTable", Resource::Table).control(25);
    DELETE_TABLE = dynamodb("DeleteTable", Resource::Table).control(25);
    UPDATE_TABLE = dynamodb("UpdateTable", Resource::Table).control(25);
    UPDATE_TIME_TO_LIVE = dynamodb("UpdateTimeToLive", Resource::Table).control(25);
    DESCRIBE_TABLE = dynamodb("DescribeTable", Resource::Table).control(500).repeatable();
    DESCRIBE_TIME_TO_LIVE = dynamodb("DescribeTimeToLive", Resource::Table).control(500).repeatable();
    LIST_TABLES = dynamodb("ListTables", Resource::Account).control(100).repeatable();
    GET_ITEM = dynamodb("GetItem", Resource::Table).repeatable();
    BATCH_GET_ITEM = dynamodb("BatchGetItem", Resource::Table).repeatable();
    TRANSACT_GET_ITEMS = dynamodb("TransactGetItems", Resource::Table).allowed_by("GetItem").repeatable();
    QUERY = dynamodb("Query", Resource::Index).repeatable();
    SCAN = dynamodb("Scan", Resource::Index).repeatable();
    // Whether a write may be repeated depends on what it writes.
    PUT_ITEM = dynamodb("PutItem", Resource::Table);
    UPDATE_ITEM = dynamodb("UpdateItem", Resource::Table);
    DELETE_ITEM = dynamodb("DeleteItem", Resource::Table);
    // Puts and deletes without conditions: done twice they are done.
    BATCH_WRITE_ITEM = dynamodb("BatchWriteItem", Resource::Table).repeatable();
    // Puts, updates and deletes of a transaction need the permission of their own; the token makes it repeatable.
    TRANSACT_WRITE_ITEMS =
        dynamodb("TransactWriteItems", Resource::Table).allowed_by("ConditionCheckItem").repeatable();
}
