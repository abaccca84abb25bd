// Firehose by the AWS SDK for JavaScript, version 3: records come to the bucket, through crashes.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    FirehoseClient, CreateDeliveryStreamCommand, DescribeDeliveryStreamCommand, PutRecordCommand, PutRecordBatchCommand,
    ListDeliveryStreamsCommand, DeleteDeliveryStreamCommand, ResourceNotFoundException,
} = require("@aws-sdk/client-firehose");
const { S3Client, CreateBucketCommand, ListObjectsV2Command, GetObjectCommand } = require("@aws-sdk/client-s3");

const firehose = new FirehoseClient({ maxAttempts: 10 });
const s3 = new S3Client({ maxAttempts: 10, forcePathStyle: true });
const send = (command) => firehose.send(command);
const DeliveryStreamName = "js", Bucket = "js-firehose";
const record = (text) => ({ Data: new TextEncoder().encode(`${text}\n`) });

await s3.send(new CreateBucketCommand({ Bucket }));
await send(new CreateDeliveryStreamCommand({
    DeliveryStreamName,
    ExtendedS3DestinationConfiguration: {
        RoleARN: "arn:aws:iam::000000000000:role/r", BucketARN: `arn:aws:s3:::${Bucket}`, Prefix: "in/",
        BufferingHints: { SizeInMBs: 1, IntervalInSeconds: 1 },
    },
}));
const { DeliveryStreamDescription } = await send(new DescribeDeliveryStreamCommand({ DeliveryStreamName }));
assert.equal(DeliveryStreamDescription.DeliveryStreamStatus, "ACTIVE");
assert.ok((await send(new ListDeliveryStreamsCommand({}))).DeliveryStreamNames.includes(DeliveryStreamName));

const expected = new Set();
await send(new PutRecordCommand({ DeliveryStreamName, Record: record("first") }));
expected.add("first");
await crash();
const Records = Array.from({ length: 500 }, (_, number) => record(`batch ${number}`));
assert.equal((await send(new PutRecordBatchCommand({ DeliveryStreamName, Records }))).FailedPutCount, 0);
Records.forEach((_, number) => expected.add(`batch ${number}`));
await crash(50);
await crash(400);
for (let number = 0; number < 200; number++) {
    await send(new PutRecordCommand({ DeliveryStreamName, Record: record(`later ${number}`) }));
    expected.add(`later ${number}`);
    await new Promise((go) => setTimeout(go, 4));
}

// What was tried again may be there twice.
const delivered = async () => {
    const found = new Set();
    const { Contents } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "in/" }));
    for (const { Key } of Contents ?? []) {
        const text = await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body.transformToString();
        text.split("\n").filter(Boolean).forEach((line) => found.add(line));
    }
    return found;
};
let found = await delivered();
for (let tries = 0; found.size < expected.size && tries < 100; tries++) {
    await new Promise((go) => setTimeout(go, 200));
    found = await delivered();
}
assert.deepEqual(found, expected);
await assert.rejects(send(new PutRecordCommand({ DeliveryStreamName: "none", Record: record("x") })), ResourceNotFoundException);
await send(new DeleteDeliveryStreamCommand({ DeliveryStreamName }));
done();
