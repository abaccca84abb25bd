// What version 3 of the AWS SDK for JavaScript makes of a server that asks who calls, over TLS: the errors that it knows, and a
// clock that is wrong, which it sets by the server's.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const { KinesisClient, ListStreamsCommand } = require("@aws-sdk/client-kinesis");
const { S3Client, ListBucketsCommand } = require("@aws-sdk/client-s3");
const { SQSClient, ListQueuesCommand } = require("@aws-sdk/client-sqs");
const { DynamoDBClient, ListTablesCommand } = require("@aws-sdk/client-dynamodb");
const { STSClient, GetCallerIdentityCommand } = require("@aws-sdk/client-sts");

const { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
assert.ok(endpoint.startsWith("https:"), endpoint);

const minutes = 60_000, { now } = Date;
for (const [Client, Command, wrongSecret, wrongKey, wrongClock] of [
    [KinesisClient, ListStreamsCommand, "InvalidSignatureException", "UnrecognizedClientException", "InvalidSignatureException"],
    [DynamoDBClient, ListTablesCommand, "InvalidSignatureException", "UnrecognizedClientException", "InvalidSignatureException"],
    [SQSClient, ListQueuesCommand, "SignatureDoesNotMatch", "InvalidClientTokenId", "SignatureDoesNotMatch"],
    [STSClient, GetCallerIdentityCommand, "SignatureDoesNotMatch", "InvalidClientTokenId", "SignatureDoesNotMatch"],
    [S3Client, ListBucketsCommand, "SignatureDoesNotMatch", "InvalidAccessKeyId", "RequestTimeTooSkewed"],
]) {
    const call = async (options) => {
        const client = new Client({ maxAttempts: 1, forcePathStyle: true, ...options });
        try {
            return await client.send(new Command({}));
        } finally {
            client.destroy();
        }
    };
    await call({});
    await call({ credentials: { accessKeyId, secretAccessKey, sessionToken: "a token is signed, and says nothing here" } });
    await assert.rejects(call({ credentials: { accessKeyId, secretAccessKey: "another" } }), { name: wrongSecret });
    await assert.rejects(call({ credentials: { accessKeyId: "AKIDSTRANGER", secretAccessKey } }), { name: wrongKey });
    for (const wrong of [-20 * minutes, 20 * minutes]) {
        Date.now = () => now() + wrong;
        await assert.rejects(call({}), { name: wrongClock });
        await call({ maxAttempts: 2 });
        Date.now = now;
    }
}
done();
