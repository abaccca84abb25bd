// SQS by the AWS SDK for JavaScript, version 3: batches, attributes, long polling, FIFO, dead letters, crashes, and the errors
// that the SDK has classes for. The SDK checks the MD5 of every body by itself.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    SQSClient, CreateQueueCommand, GetQueueUrlCommand, GetQueueAttributesCommand, SendMessageCommand, SendMessageBatchCommand,
    ReceiveMessageCommand, DeleteMessageCommand, DeleteMessageBatchCommand, ChangeMessageVisibilityCommand, DeleteQueueCommand,
    QueueDoesNotExist, ReceiptHandleIsInvalid, paginateListQueues,
} = require("@aws-sdk/client-sqs");

const sqs = new SQSClient({ maxAttempts: 1 });
const send = (command) => sqs.send(command);
const make = async (QueueName, Attributes = {}) => (await send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl;
const receive = async (QueueUrl, more = {}) =>
    (await send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, ...more }))).Messages ?? [];

const QueueUrl = await make("js", { VisibilityTimeout: "600" });
assert.equal((await send(new GetQueueUrlCommand({ QueueName: "js" }))).QueueUrl, QueueUrl);
const MessageAttributes = {
    text: { DataType: "String", StringValue: "grün" }, bytes: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 255) },
    number: { DataType: "Number.int", StringValue: "7" },
};
const sent = await send(new SendMessageCommand({ QueueUrl, MessageBody: "ü <&>", MessageAttributes }));
const [got] = await receive(QueueUrl, { MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] });
assert.equal(got.MessageId, sent.MessageId);
assert.equal(got.Body, "ü <&>");
assert.deepEqual(got.MessageAttributes.bytes.BinaryValue, Uint8Array.of(0, 255));
assert.equal(got.MessageAttributes.text.StringValue, "grün");
assert.equal(got.Attributes.ApproximateReceiveCount, "1");
await send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: got.ReceiptHandle }));

// A receive that waits gets what comes while it does.
const waiting = receive(QueueUrl, { WaitTimeSeconds: 20 });
const Entries = Array.from({ length: 10 }, (_, number) => ({ Id: String(number), MessageBody: `message ${number}` }));
const batch = await send(new SendMessageBatchCommand({ QueueUrl, Entries }));
assert.equal(batch.Successful.length, 10);
const held = await waiting;
assert.ok(held.length > 0);

// A crash: what is in flight stays so, and its handles stay good.
await crash();
await send(new DeleteMessageBatchCommand({
    QueueUrl, Entries: held.map(({ ReceiptHandle }, number) => ({ Id: String(number), ReceiptHandle })),
}));
let left = 10 - held.length;
while (left > 0) {
    const more = await receive(QueueUrl, { WaitTimeSeconds: 1 });
    assert.ok(more.length > 0, `${left} are lost`);
    for (const { ReceiptHandle } of more) {
        await send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    }
    left -= more.length;
}

// Crashes during calls: whoever tries again is answered, and what was acknowledged is there.
const patient = new SQSClient({ maxAttempts: 10 });
const acknowledged = new Set();
await crash(50);
await crash(400);
for (let number = 0; number < 200; number++) {
    const answer = await patient.send(new SendMessageCommand({ QueueUrl, MessageBody: `later ${number}` }));
    acknowledged.add(answer.MessageId);
    await new Promise((go) => setTimeout(go, 4));
}
for (let more = [0]; more.length > 0;) {
    more = (await patient.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }))).Messages ?? [];
    more.forEach(({ MessageId }) => acknowledged.delete(MessageId));
}
assert.equal(acknowledged.size, 0);

const fifo = await make("js.fifo", { FifoQueue: "true", ContentBasedDeduplication: "true" });
for (const MessageBody of ["1", "2", "1", "3"]) {
    await send(new SendMessageCommand({ QueueUrl: fifo, MessageBody, MessageGroupId: "g" }));
}
assert.deepEqual((await receive(fifo)).map(({ Body }) => Body), ["1", "2", "3"]);
assert.deepEqual(await receive(fifo), [], "the group waits");

const dead = await make("js-dead");
const { Attributes } = await send(new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames: ["QueueArn"] }));
const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: 1 });
const source = await make("js-source", { RedrivePolicy });
await send(new SendMessageCommand({ QueueUrl: source, MessageBody: "bad" }));
const [bad] = await receive(source);
await send(new ChangeMessageVisibilityCommand({ QueueUrl: source, ReceiptHandle: bad.ReceiptHandle, VisibilityTimeout: 0 }));
assert.deepEqual(await receive(source), []);
assert.equal((await receive(dead, { WaitTimeSeconds: 5 }))[0].Body, "bad");

await assert.rejects(send(new GetQueueUrlCommand({ QueueName: "none" })), QueueDoesNotExist);
await assert.rejects(send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: "forged" })), ReceiptHandleIsInvalid);
const urls = [];
for await (const page of paginateListQueues({ client: sqs, pageSize: 2 }, { QueueNamePrefix: "js" })) {
    urls.push(...(page.QueueUrls ?? []));
}
assert.deepEqual(new Set(urls), new Set([QueueUrl, fifo, dead, source]));
for (const queue of urls) {
    await send(new DeleteQueueCommand({ QueueUrl: queue }));
}
done();
