// S3 by the AWS SDK for JavaScript, version 3: objects, bodies that stream with their checksum behind them, uploads in
// parts by lib-storage, signed addresses, crashes, and the errors that the SDK has classes for.
// The server is the one at AWS_ENDPOINT_URL.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { crash, done } from "./crash.mjs";

// The SDK is where the caller says, and not beside this file.
const require = createRequire(`${process.env.ANABRANCH_CLIENTS}/`);
const {
    S3Client, CreateBucketCommand, PutObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command,
    DeleteObjectsCommand, DeleteBucketCommand, CopyObjectCommand, NoSuchKey, NotFound, paginateListObjectsV2,
} = require("@aws-sdk/client-s3");
const { Upload } = require("@aws-sdk/lib-storage");
const { getSignedUrl } = require("@aws-sdk/s3-request-presigner");

const s3 = new S3Client({ maxAttempts: 1, forcePathStyle: true });
const send = (command) => s3.send(command);
const Bucket = `js-${process.pid}`;
await send(new CreateBucketCommand({ Bucket }));

const bytesOf = async (Key) => {
    const found = await send(new GetObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
    return Buffer.from(await found.Body.transformToByteArray());
};
const md5 = (data) => `"${createHash("md5").update(data).digest("hex")}"`;

const small = Buffer.from("hello");
const put = await send(new PutObjectCommand({ Bucket, Key: "a b/ü+%", Body: small, Metadata: { x: "1" } }));
assert.equal(put.ETag, md5(small));
assert.ok(put.ChecksumCRC32, "the SDK adds a checksum by itself");
assert.deepEqual(await bytesOf("a b/ü+%"), small);
const head = await send(new HeadObjectCommand({ Bucket, Key: "a b/ü+%" }));
assert.deepEqual(head.Metadata, { x: "1" });

const large = randomBytes(3_000_000);
for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]) {
    const pieces = [large.subarray(0, 1_000_000), large.subarray(1_000_000)];
    await send(new PutObjectCommand({
        Bucket, Key: ChecksumAlgorithm, Body: Readable.from(pieces), ContentLength: large.length, ChecksumAlgorithm,
    }));
    assert.deepEqual(await bytesOf(ChecksumAlgorithm), large, ChecksumAlgorithm);
}

const huge = randomBytes(17 * 1024 * 1024);
const upload = new Upload({ client: s3, params: { Bucket, Key: "huge", Body: Readable.from([huge]) }, queueSize: 3 });
const whole = await upload.done();
assert.match(whole.ETag, /-4"$/);
assert.deepEqual(await bytesOf("huge"), huge);

// A crash between calls; then two while an upload in parts is under way, which goes on when the server is back.
await crash();
assert.deepEqual(await bytesOf("huge"), huge);
const patient = new S3Client({ maxAttempts: 10, forcePathStyle: true });
await crash(50);
await crash(400);
await new Upload({ client: patient, params: { Bucket, Key: "huge", Body: huge }, queueSize: 2 }).done();
await new Promise((go) => setTimeout(go, 1000));
assert.deepEqual(await bytesOf("huge"), huge);
const range = await send(new GetObjectCommand({ Bucket, Key: "huge", Range: "bytes=5242878-5242881" }));
assert.deepEqual(Buffer.from(await range.Body.transformToByteArray()), huge.subarray(5242878, 5242882));

await send(new CopyObjectCommand({ Bucket, Key: "copy", CopySource: `${Bucket}/${encodeURIComponent("a b/ü+%")}` }));
assert.deepEqual(await bytesOf("copy"), small);

const getUrl = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: "a b/ü+%" }), { expiresIn: 60 });
assert.equal(await (await fetch(getUrl)).text(), "hello");
const putCommand = new PutObjectCommand({ Bucket, Key: "by-url", Metadata: { y: "2" } });
const putUrl = await getSignedUrl(s3, putCommand, { expiresIn: 60 });
assert.ok(putUrl.includes("x-amz-checksum-crc32=AAAAAA"), "the checksum of a body that is not there yet");
assert.equal((await fetch(putUrl, { method: "PUT", body: "there" })).status, 200);
assert.equal((await bytesOf("by-url")).toString(), "there");
const byUrl = await send(new HeadObjectCommand({ Bucket, Key: "by-url" }));
assert.deepEqual(byUrl.Metadata, { y: "2" }, "what the address says counts");

await assert.rejects(send(new GetObjectCommand({ Bucket, Key: "none" })), NoSuchKey);
await assert.rejects(send(new HeadObjectCommand({ Bucket, Key: "none" })), NotFound);
const once = new PutObjectCommand({ Bucket, Key: "copy", Body: "x", IfNoneMatch: "*" });
await assert.rejects(send(once), { name: "PreconditionFailed" });

const keys = [];
for await (const page of paginateListObjectsV2({ client: s3, pageSize: 2 }, { Bucket })) {
    keys.push(...(page.Contents ?? []).map((entry) => entry.Key));
}
const expected = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", "a b/ü+%", "by-url", "copy", "huge"];
assert.deepEqual(keys, expected);
await send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })) } }));
assert.equal((await send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
await send(new DeleteBucketCommand({ Bucket }));
done();
