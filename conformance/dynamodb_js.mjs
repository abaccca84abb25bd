// DynamoDB and its streams by the AWS SDK for JavaScript, version 3, and the document client of lib-dynamodb: items, conditions,
// queries in pages, transactions, changes, crashes, and the errors that the SDK has classes for.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    DynamoDBClient, CreateTableCommand, DeleteTableCommand, DescribeTableCommand, ConditionalCheckFailedException,
    ResourceNotFoundException, TransactionCanceledException, waitUntilTableExists, waitUntilTableNotExists,
} = require("@aws-sdk/client-dynamodb");
const {
    DynamoDBDocumentClient, PutCommand, GetCommand, UpdateCommand, DeleteCommand, QueryCommand, BatchWriteCommand,
    BatchGetCommand, TransactWriteCommand, paginateScan, paginateQuery,
} = require("@aws-sdk/lib-dynamodb");
const {
    DynamoDBStreamsClient, DescribeStreamCommand, GetShardIteratorCommand, GetRecordsCommand, ListStreamsCommand,
} = require("@aws-sdk/client-dynamodb-streams");

const dynamodb = new DynamoDBClient({ maxAttempts: 1 });
const documents = DynamoDBDocumentClient.from(dynamodb, { marshallOptions: { removeUndefinedValues: true } });
const send = (command) => documents.send(command);
const TableName = "js-table";

await dynamodb.send(new CreateTableCommand({
    TableName, BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["who", "team"].map((AttributeName) => ({ AttributeName, AttributeType: "S" }))
        .concat([{ AttributeName: "at", AttributeType: "N" }]),
    KeySchema: [{ AttributeName: "who", KeyType: "HASH" }, { AttributeName: "at", KeyType: "RANGE" }],
    GlobalSecondaryIndexes: [{
        IndexName: "teams", KeySchema: [{ AttributeName: "team", KeyType: "HASH" }, { AttributeName: "at", KeyType: "RANGE" }],
        Projection: { ProjectionType: "ALL" },
    }],
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
}));
await waitUntilTableExists({ client: dynamodb, maxWaitTime: 30, minDelay: 1 }, { TableName });

const item = {
    who: "ada", at: 1, team: "red", list: [1, "zwei", null, { deep: [true] }], bytes: Uint8Array.of(0, 255), empty: "",
    set: new Set(["a", "b"]), large: 12345678901234567890n, missing: undefined,
};
await send(new PutCommand({ TableName, Item: item }));
const { Item } = await send(new GetCommand({ TableName, Key: { who: "ada", at: 1 }, ConsistentRead: true }));
const { missing, ...present } = item;
assert.deepEqual(Item, present);
const updated = await send(new UpdateCommand({
    TableName, Key: { who: "ada", at: 1 }, ReturnValues: "ALL_NEW",
    UpdateExpression: "SET #l[1] = :two, hits = if_not_exists(hits, :zero) + :one REMOVE bytes ADD #s :c",
    ConditionExpression: "attribute_exists(who) AND contains(#s, :a)",
    ExpressionAttributeNames: { "#l": "list", "#s": "set" },
    ExpressionAttributeValues: { ":two": 2, ":zero": 0, ":one": 1, ":a": "a", ":c": new Set(["c"]) },
}));
assert.deepEqual(updated.Attributes.list.slice(0, 2), [1, 2]);
assert.deepEqual(updated.Attributes.set, new Set(["a", "b", "c"]));
assert.equal(updated.Attributes.hits, 1);

const again = new PutCommand({
    TableName, Item: { who: "ada", at: 1 }, ConditionExpression: "attribute_not_exists(who)",
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
});
await assert.rejects(send(again), (error) => error instanceof ConditionalCheckFailedException && error.Item.team.S === "red");

for (let first = 0; first < 100; first += 25) {
    const puts = Array.from({ length: 25 }, (_, number) => ({
        PutRequest: { Item: { who: "bob", at: first + number, team: number % 2 ? "blue" : "red", text: "x".repeat(20_000) } },
    }));
    const { UnprocessedItems } = await send(new BatchWriteCommand({ RequestItems: { [TableName]: puts } }));
    assert.deepEqual(UnprocessedItems, {});
}
const collect = async (pages) => {
    const [items, sizes] = [[], []];
    for await (const page of pages) {
        items.push(...page.Items);
        sizes.push(page.Items.length);
    }
    return { items, sizes };
};
const ofBob = { TableName, KeyConditionExpression: "who = :who AND #at >= :at", ExpressionAttributeNames: { "#at": "at" } };
const queried = await collect(paginateQuery({ client: documents }, {
    ...ofBob, ExpressionAttributeValues: { ":who": "bob", ":at": 10 }, ScanIndexForward: false,
}));
assert.deepEqual(queried.items.map(({ at }) => at), Array.from({ length: 90 }, (_, number) => 99 - number));
assert.ok(queried.sizes.length > 1, "a page holds a mebibyte");
const blue = await send(new QueryCommand({
    TableName, IndexName: "teams", KeyConditionExpression: "team = :team", ExpressionAttributeValues: { ":team": "blue" },
    ProjectionExpression: "who, #at", ExpressionAttributeNames: { "#at": "at" },
}));
assert.equal(blue.Count, 48);
assert.equal((await collect(paginateScan({ client: documents, pageSize: 7 }, { TableName }))).items.length, 101);
const both = await send(new BatchGetCommand({
    RequestItems: { [TableName]: { Keys: [{ who: "ada", at: 1 }, { who: "bob", at: 3 }, { who: "eve", at: 0 }] } },
}));
assert.equal(both.Responses[TableName].length, 2);

const transaction = (condition) => new TransactWriteCommand({ TransactItems: [
    { Put: { TableName, Item: { who: "cy", at: 1 } } },
    { Update: { TableName, Key: { who: "ada", at: 1 }, UpdateExpression: "SET hits = :n", ConditionExpression: condition,
        ExpressionAttributeValues: { ":n": 7 } } },
] });
await assert.rejects(send(transaction("attribute_not_exists(who)")), (error) =>
    error instanceof TransactionCanceledException && error.CancellationReasons[1].Code === "ConditionalCheckFailed");
assert.equal((await send(new GetCommand({ TableName, Key: { who: "cy", at: 1 } }))).Item, undefined);
await send(transaction("attribute_exists(who)"));
await send(new DeleteCommand({ TableName, Key: { who: "bob", at: 0 } }));

// A crash: what was acknowledged is there, and a write that is tried again counts once if it has a token.
await crash();
assert.equal((await send(new GetCommand({ TableName, Key: { who: "ada", at: 1 } }))).Item.hits, 7);
const patient = DynamoDBDocumentClient.from(new DynamoDBClient({ maxAttempts: 10 }));
await crash(50);
await crash(400);
for (let number = 0; number < 200; number++) {
    await patient.send(new TransactWriteCommand({ ClientRequestToken: `token-${number}`, TransactItems: [
        { Put: { TableName, Item: { who: "dan", at: number } } },
        { Update: { TableName, Key: { who: "dan", at: -1 }, UpdateExpression: "ADD hits :one", ExpressionAttributeValues: { ":one": 1 } } },
    ] }));
    await new Promise((go) => setTimeout(go, 4));
}
const dan = await patient.send(new QueryCommand({
    TableName, KeyConditionExpression: "who = :who", ExpressionAttributeValues: { ":who": "dan" },
}));
assert.equal(dan.Count, 201);
assert.equal(dan.Items[0].hits, 200);

const streams = new DynamoDBStreamsClient({ maxAttempts: 3 });
const { Table } = await patient.send(new DescribeTableCommand({ TableName }));
const StreamArn = Table.LatestStreamArn;
assert.equal((await streams.send(new ListStreamsCommand({ TableName }))).Streams[0].StreamArn, StreamArn);
const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
const changes = [];
for (const { ShardId } of StreamDescription.Shards) {
    let next = (await streams.send(new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" }))).ShardIterator;
    for (let records = [0]; records.length > 0;) {
        const page = await streams.send(new GetRecordsCommand({ ShardIterator: next }));
        records = page.Records;
        changes.push(...records);
        next = page.NextShardIterator;
    }
}
const ofAda = changes.filter(({ dynamodb }) => dynamodb.Keys.who.S === "ada");
assert.deepEqual(ofAda.map(({ eventName }) => eventName), ["INSERT", "MODIFY", "MODIFY"]);
assert.equal(ofAda[2].dynamodb.OldImage.hits.N, "1");
assert.equal(ofAda[2].dynamodb.NewImage.hits.N, "7");
assert.equal(changes.filter(({ eventName }) => eventName === "REMOVE").length, 1);

await assert.rejects(patient.send(new GetCommand({ TableName: "nothing", Key: { id: 1 } })), ResourceNotFoundException);
await assert.rejects(patient.send(new QueryCommand({ TableName, KeyConditionExpression: "who = :x" })), { name: "ValidationException" });
await patient.send(new DeleteTableCommand({ TableName }));
await waitUntilTableNotExists({ client: patient, maxWaitTime: 30, minDelay: 1 }, { TableName });
done();
