//! Every call that tables make, with the quotas of an account.
//!
//! An account may make 2,500 calls a second that make, change or describe tables, all together; those that change
//! something are few, and kept far below.

use crate::action::{Action, Resource, Service, Use, actions};

const fn dynamodb(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::Dynamodb, name, need, resource)
}

actions! {
    CREATE_TABLE = dynamodb("CreateTable", Use::Manage, Resource::Table).control(25);
    DELETE_TABLE = dynamodb("DeleteTable", Use::Manage, Resource::Table).control(25);
    UPDATE_TABLE = dynamodb("UpdateTable", Use::Manage, Resource::Table).control(25);
    UPDATE_TIME_TO_LIVE = dynamodb("UpdateTimeToLive", Use::Manage, Resource::Table).control(25);
    DESCRIBE_TABLE = dynamodb("DescribeTable", Use::Look, Resource::Table).control(500).repeatable();
    DESCRIBE_TIME_TO_LIVE = dynamodb("DescribeTimeToLive", Use::Look, Resource::Table).control(500).repeatable();
    LIST_TABLES = dynamodb("ListTables", Use::Look, Resource::Account).control(100).repeatable();
    GET_ITEM = dynamodb("GetItem", Use::Read, Resource::Table).repeatable();
    BATCH_GET_ITEM = dynamodb("BatchGetItem", Use::Read, Resource::Table).repeatable();
    TRANSACT_GET_ITEMS = dynamodb("TransactGetItems", Use::Read, Resource::Table).allowed_by("GetItem").repeatable();
    QUERY = dynamodb("Query", Use::Read, Resource::Index).repeatable();
    SCAN = dynamodb("Scan", Use::Read, Resource::Index).repeatable();
    // Whether a write may be repeated depends on what it writes.
    PUT_ITEM = dynamodb("PutItem", Use::Write, Resource::Table);
    UPDATE_ITEM = dynamodb("UpdateItem", Use::Write, Resource::Table);
    DELETE_ITEM = dynamodb("DeleteItem", Use::Write, Resource::Table);
    // Puts and deletes without conditions: done twice they are done.
    BATCH_WRITE_ITEM = dynamodb("BatchWriteItem", Use::Write, Resource::Table).repeatable();
    // The token makes it repeatable.
    TRANSACT_WRITE_ITEMS =
        dynamodb("TransactWriteItems", Use::Write, Resource::Table)
        .allowed_by("ConditionCheckItem")
        .needing_also(&["PutItem", "UpdateItem", "DeleteItem"])
        .repeatable();
}
