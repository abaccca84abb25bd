// The calls around the others by the AWS SDK for JavaScript, version 3: Secrets Manager, STS and CloudWatch, through a crash.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    SecretsManagerClient, CreateSecretCommand, GetSecretValueCommand, PutSecretValueCommand, DeleteSecretCommand,
    ResourceExistsException, ResourceNotFoundException, paginateListSecrets,
} = require("@aws-sdk/client-secrets-manager");
const { STSClient, GetCallerIdentityCommand } = require("@aws-sdk/client-sts");
const { CloudWatchClient, PutMetricDataCommand } = require("@aws-sdk/client-cloudwatch");

const secrets = new SecretsManagerClient({ maxAttempts: 5 });
const { ARN } = await secrets.send(new CreateSecretCommand({ Name: "js/one", SecretString: "{\"a\":1}" }));
await assert.rejects(secrets.send(new CreateSecretCommand({ Name: "js/one", SecretString: "x" })), ResourceExistsException);
await secrets.send(new PutSecretValueCommand({ SecretId: ARN, SecretBinary: Uint8Array.of(0, 255) }));
await crash();
assert.deepEqual((await secrets.send(new GetSecretValueCommand({ SecretId: "js/one" }))).SecretBinary, Uint8Array.of(0, 255));
const previous = new GetSecretValueCommand({ SecretId: ARN, VersionStage: "AWSPREVIOUS" });
assert.equal((await secrets.send(previous)).SecretString, "{\"a\":1}");
await crash(50);
for (let number = 0; number < 100; number++) {
    await secrets.send(new CreateSecretCommand({ Name: `js/many-${number}`, SecretString: String(number) }));
    await new Promise((go) => setTimeout(go, 4));
}
const names = [];
for await (const page of paginateListSecrets({ client: secrets, pageSize: 30 }, {})) {
    names.push(...page.SecretList.map(({ Name }) => Name));
}
assert.equal(new Set(names).size, 101);
assert.equal((await secrets.send(new GetSecretValueCommand({ SecretId: "js/many-99" }))).SecretString, "99");
for (const SecretId of names) {
    await secrets.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true }));
}
await assert.rejects(secrets.send(new GetSecretValueCommand({ SecretId: "js/one" })), ResourceNotFoundException);

assert.equal((await new STSClient().send(new GetCallerIdentityCommand({}))).Account, "000000000000");
await new CloudWatchClient().send(new PutMetricDataCommand({
    Namespace: "js", MetricData: [{ MetricName: "latency", Value: 1.5, Unit: "Seconds", Timestamp: new Date() }],
}));
done();
