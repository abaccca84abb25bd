// Read before the SDK of RStreams (`node -r`): version 2 of the SDK for JavaScript, on which it stands, does not know
// AWS_ENDPOINT_URL. The SDK of RStreams stays as it is. It has agents for TLS only: over TLS it keeps them, and needs no more than
// NODE_EXTRA_CA_CERTS; a plain address gets plain ones.
const { createRequire } = require("node:module");

const endpoint = process.env.AWS_ENDPOINT_URL;
const AWS = createRequire(`${process.cwd()}/`)("aws-sdk");
AWS.config.update({ endpoint, s3ForcePathStyle: true });
if (endpoint.startsWith("http:")) {
    require("node:https").Agent = require("node:http").Agent;
}
