// Kinesis by the AWS SDK for JavaScript, version 3, which speaks HTTP/2: on a plain port with prior knowledge, over TLS by ALPN:
// records, a subscription through a split, a crash, and the errors that the SDK has classes for.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    KinesisClient, CreateStreamCommand, DescribeStreamSummaryCommand, PutRecordCommand, PutRecordsCommand,
    GetShardIteratorCommand, GetRecordsCommand, ListShardsCommand, SplitShardCommand, RegisterStreamConsumerCommand,
    SubscribeToShardCommand, DeleteStreamCommand, ResourceNotFoundException, waitUntilStreamExists,
} = require("@aws-sdk/client-kinesis");

const kinesis = new KinesisClient({ maxAttempts: 1 });
const send = (command) => kinesis.send(command);
const StreamName = `js-${process.pid}`;
const shard = "shardId-000000000000";

await send(new CreateStreamCommand({ StreamName, ShardCount: 1 }));
await waitUntilStreamExists({ client: kinesis, maxWaitTime: 30 }, { StreamName });

const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
await send(new PutRecordCommand({ StreamName, Data: bytes("0"), PartitionKey: "k" }));
const batch = Array.from({ length: 49 }, (_, index) => ({ Data: bytes(String(index + 1)), PartitionKey: "k" }));
const put = await send(new PutRecordsCommand({ StreamName, Records: batch }));
assert.equal(put.FailedRecordCount, 0);

const place = { StreamName, ShardId: shard, ShardIteratorType: "TRIM_HORIZON" };
const { ShardIterator } = await send(new GetShardIteratorCommand(place));
const page = await send(new GetRecordsCommand({ ShardIterator }));
const expected = Array.from({ length: 50 }, (_, index) => String(index));
assert.deepEqual(page.Records.map((record) => text(record.Data)), expected);
assert.ok(page.Records[0].ApproximateArrivalTimestamp instanceof Date);

const { StreamDescriptionSummary } = await send(new DescribeStreamSummaryCommand({ StreamName }));
const { StreamARN } = StreamDescriptionSummary;
const { Consumer } = await send(new RegisterStreamConsumerCommand({ StreamARN, ConsumerName: "app" }));
const subscription = await send(new SubscribeToShardCommand({
    ConsumerARN: Consumer.ConsumerARN, ShardId: shard, StartingPosition: { Type: "TRIM_HORIZON" },
}));

// More records come while the subscription runs; then the shard ends.
const writing = (async () => {
    for (let number = 50; number < 100; number++) {
        await send(new PutRecordCommand({ StreamName, Data: bytes(String(number)), PartitionKey: "k" }));
    }
    await send(new SplitShardCommand({ StreamName, ShardToSplit: shard, NewStartingHashKey: "1000" }));
})();
const seen = [];
let children;
for await (const event of subscription.EventStream) {
    const { Records, ChildShards } = event.SubscribeToShardEvent;
    seen.push(...Records.map((record) => text(record.Data)));
    children = ChildShards ?? children;
}
await writing;
assert.deepEqual(seen, Array.from({ length: 100 }, (_, index) => String(index)));
assert.equal(children.length, 2);
const { Shards } = await send(new ListShardsCommand({ StreamName, ShardFilter: { Type: "AT_TRIM_HORIZON" } }));
assert.deepEqual(Shards.map((shard) => shard.ShardId), [shard]);

await assert.rejects(send(new DescribeStreamSummaryCommand({ StreamName: "nothing" })), ResourceNotFoundException);

// A crash between calls, and two during calls: whoever tries again is answered, and what was acknowledged is there.
await crash();
const patient = new KinesisClient({ maxAttempts: 10 });
const acknowledged = [];
const child = children[0].ShardId, ExplicitHashKey = children[0].HashKeyRange.StartingHashKey;
await crash(50);
await crash(400);
for (let number = 0; number < 300; number++) {
    const command = new PutRecordCommand({ StreamName, Data: bytes(`later ${number}`), PartitionKey: "k", ExplicitHashKey });
    acknowledged.push((await patient.send(command)).SequenceNumber);
    await new Promise((go) => setTimeout(go, 3));
}
let next = (await patient.send(new GetShardIteratorCommand({ ...place, ShardId: child }))).ShardIterator;
const there = [];
for (let behind = true; behind;) {
    const more = await patient.send(new GetRecordsCommand({ ShardIterator: next }));
    there.push(...more.Records.map((record) => record.SequenceNumber));
    next = more.NextShardIterator;
    behind = more.Records.length > 0 || more.MillisBehindLatest > 0;
}
assert.deepEqual(acknowledged.filter((number) => !there.includes(number)), []);
assert.deepEqual(there, [...there].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)));
patient.destroy();
const fresh = new KinesisClient({ maxAttempts: 1 });
await fresh.send(new DeleteStreamCommand({ StreamName, EnforceConsumerDeletion: true }));
fresh.destroy();
kinesis.destroy();
done();
