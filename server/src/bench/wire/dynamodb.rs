//! What clients do with tables: put and get items of 1 KiB, and query a hundred of them.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::connection::{Connection, Operation, Service};
use super::peer::Peer;
use crate::bench::tasks::{self, Task};
use crate::bench::writers::incompressible;
use crate::failure::Failure;

const TABLE: &str = "bench";
/// Items that are put and got, each of a partition of its own.
const ITEMS: usize = 1_000;
/// Items that a query answers.
const QUERIED: usize = 100;
const CONNECTIONS: usize = 16;
const QUERY_CONNECTIONS: usize = 4;
/// How often a table that is being made is looked at, and how many times.
const WAIT: Duration = Duration::from_millis(50);
const WAITS_MAX: usize = 200;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Put,
    Get,
    Query,
}

fn operation(name: &'static str) -> Operation {
    Operation::of(Service::DynamoDb, name)
}

fn item(id: &str, at: usize) -> Value {
    let text = BASE64_STANDARD.encode(incompressible(at as u64, 768));
    json!({ "id": { "S": id }, "at": { "N": at.to_string() }, "text": { "S": text } })
}

/// Makes the table with the items that are got and queried.
pub(super) async fn prepare(peer: &Peer) -> Result<(), Failure> {
    let mut connection = Connection::to(&peer.address).await?;
    let request = json!({
        "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "id", "AttributeType": "S" }, { "AttributeName": "at", "AttributeType": "N" },
        ],
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }, { "AttributeName": "at", "KeyType": "RANGE" }],
    });
    connection.ask(&operation("CreateTable"), &request).await?;
    let mut waits = 0;
    while connection.ask(&operation("DescribeTable"), &json!({ "TableName": TABLE })).await?["Table"]["TableStatus"]
        != "ACTIVE"
    {
        waits += 1;
        if waits > WAITS_MAX {
            return Err(Failure::new(
                "bench",
                "the table did not become active",
                "look at the log of the server",
            ));
        }
        crate::runtime::pause(WAIT).await;
    }
    for body in bodies(Call::Put).into_iter().chain((0..QUERIED).map(|at| put(&item("queried", at)))) {
        connection.call(&operation("PutItem"), body).await?;
    }
    Ok(())
}

fn put(item: &Value) -> Bytes {
    json!({ "TableName": TABLE, "Item": item }).to_string().into()
}

fn bodies(call: Call) -> Vec<Bytes> {
    let id = |number: usize| format!("item {number}");
    match call {
        Call::Put => (0..ITEMS).map(|number| put(&item(&id(number), number))).collect(),
        Call::Get => {
            let key = |number: usize| json!({ "id": { "S": id(number) }, "at": { "N": number.to_string() } });
            let get = |number| json!({ "TableName": TABLE, "Key": key(number), "ConsistentRead": true });
            (0..ITEMS).map(|number| get(number).to_string().into()).collect()
        }
        Call::Query => {
            let query = json!({
                "TableName": TABLE, "KeyConditionExpression": "id = :id",
                "ExpressionAttributeValues": { ":id": { "S": "queried" } },
            });
            vec![query.to_string().into()]
        }
    }
}

struct Caller {
    connection: Connection,
    operation: Operation,
    bodies: Vec<Bytes>,
    first: usize,
    /// What an answer has at least; fewer bytes are no items.
    bytes_min: usize,
}

impl Task for Caller {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let body = self.bodies[(self.first + number) % self.bodies.len()].clone();
        let answer = self.connection.call(&self.operation, body).await?;
        if answer.len() >= self.bytes_min {
            return Ok(());
        }
        Err(Failure::new("bench", "an answer without the items", "look at the log of the server"))
    }
}

/// Calls a second.
pub(super) async fn calls(peer: &Peer, call: Call, at_most: Duration) -> Result<f64, Failure> {
    let (name, connections, bytes_min) = match call {
        Call::Put => ("PutItem", CONNECTIONS, 0),
        Call::Get => ("GetItem", CONNECTIONS, 1024),
        Call::Query => ("Query", QUERY_CONNECTIONS, QUERIED * 1024),
    };
    let bodies = bodies(call);
    let caller = |(number, connection)| Caller {
        connection,
        operation: operation(name),
        bodies: bodies.clone(),
        first: number * ITEMS / CONNECTIONS,
        bytes_min,
    };
    let callers: Vec<Caller> =
        Connection::many(&peer.address, connections).await?.into_iter().enumerate().map(caller).collect();
    Ok(tasks::race(callers, usize::MAX, at_most).await?.per_second())
}
