"""S3 by boto3 and the AWS CLI: every operation, transfers in parts, checksums, signed addresses, hostile keys, and a crash
in the middle."""

import base64
import hashlib
import http.client
import io
import os
import re
import socket
import tempfile
import threading
import urllib.error
import urllib.request
import zlib
from datetime import datetime, timedelta, timezone

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from harness import GUARDED, KEY, SECRET, Server, case, eventually, run

MIB = 1 << 20


def client(region="us-east-1", **s3):
    config = Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=60, parameter_validation=False,
                    s3={"addressing_style": "path", **s3})
    return boto3.client("s3", config=config, region_name=region)


def refused(code, call, status=None, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        found = error.response["ResponseMetadata"]["HTTPStatusCode"]
        assert status is None or found == status, (found, error)
        assert error.response["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"], error.response
        return error.response
    raise AssertionError(f"{code} was expected of {arguments}")


def bucket(name):
    s3 = client()
    s3.create_bucket(Bucket=name)
    return s3


def body(s3, name, key, **more):
    return s3.get_object(Bucket=name, Key=key, **more)["Body"].read()


def raw(server, method, path, headers=None, payload=b"", host=None):
    """A request as it is, without anything that a library would add or change, but for a signature where one is asked for."""
    host, headers = host or f"127.0.0.1:{server.port}", dict(headers or {})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    if server.url.startswith("https:"):
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30)
        request = AWSRequest(method, f"https://{host}{path}", {**headers, "Host": host}, payload)
        signer = S3SigV4Auth(Credentials(KEY, SECRET), "s3", "us-east-1")
        signer.payload = lambda _: headers.get("x-amz-content-sha256", hashlib.sha256(payload).hexdigest())
        signer.add_auth(request)
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", host)
    for name, value in headers.items():
        connection.putheader(name, value)
    if payload is not None and "Content-Length" not in headers:
        connection.putheader("Content-Length", str(len(payload)))
    connection.endheaders(payload)
    answer = connection.getresponse()
    found = answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), answer.read()
    connection.close()
    return found


def code_of(answer):
    return re.search(rb"<Code>(.*?)</Code>", answer[2]).group(1).decode()


def crc(width, polynomial, data):
    """A reflected cyclic checksum, bit by bit, as independent of any library as it can be."""
    mask = (1 << width) - 1
    value = mask
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
    return (value ^ mask).to_bytes(width // 8, "big")


ALGORITHMS = {
    "CRC32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "CRC32C": lambda data: crc(32, 0x82F63B78, data),
    "CRC64NVME": lambda data: crc(64, 0x9A6C9329AC4BC9B5, data),
    "SHA1": lambda data: hashlib.sha1(data).digest(),
    "SHA256": lambda data: hashlib.sha256(data).digest(),
}


def checksum(algorithm, data):
    return base64.b64encode(ALGORITHMS[algorithm](data)).decode()


@case
def buckets(server):
    s3 = client()
    for number in range(5):
        s3.create_bucket(Bucket=f"buckets-{number}")
    names = [found["Name"] for found in s3.list_buckets()["Buckets"]]
    assert names == sorted(names) and set(names) >= {f"buckets-{number}" for number in range(5)}, names
    pages = s3.get_paginator("list_buckets").paginate(Prefix="buckets-", PaginationConfig={"PageSize": 2})
    pages = [[found["Name"] for found in page["Buckets"]] for page in pages]
    assert pages == [["buckets-0", "buckets-1"], ["buckets-2", "buckets-3"], ["buckets-4"]], pages
    assert s3.head_bucket(Bucket="buckets-0")["BucketRegion"] == "us-east-1"
    assert s3.get_bucket_location(Bucket="buckets-0")["LocationConstraint"] is None
    s3.create_bucket(Bucket="buckets-0")
    other = client("eu-west-1")
    other.create_bucket(Bucket="buckets-eu", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert other.get_bucket_location(Bucket="buckets-eu")["LocationConstraint"] == "eu-west-1"
    assert other.head_bucket(Bucket="buckets-eu")["BucketRegion"] == "eu-west-1"
    refused("BucketAlreadyOwnedByYou", other.create_bucket, 409, Bucket="buckets-eu",
            CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    refused("404", s3.head_bucket, 404, Bucket="buckets-none")
    refused("NoSuchBucket", s3.list_objects_v2, 404, Bucket="buckets-none")
    refused("NoSuchBucket", s3.delete_bucket, 404, Bucket="buckets-none")
    refused("NoSuchBucket", s3.put_object, 404, Bucket="buckets-none", Key="k", Body=b"x")
    refused("InvalidBucketName", s3.create_bucket, 400, Bucket="Buckets_Upper")
    refused("AccessDenied", s3.get_bucket_location, 403, Bucket="buckets-0", ExpectedBucketOwner="111111111111")
    s3.get_bucket_location(Bucket="buckets-0", ExpectedBucketOwner="000000000000")
    s3.put_object(Bucket="buckets-1", Key="k", Body=b"x")
    refused("BucketNotEmpty", s3.delete_bucket, 409, Bucket="buckets-1")
    s3.delete_object(Bucket="buckets-1", Key="k")
    s3.delete_bucket(Bucket="buckets-1")
    s3.get_waiter("bucket_not_exists").wait(Bucket="buckets-1", WaiterConfig={"Delay": 1})
    s3.get_waiter("bucket_exists").wait(Bucket="buckets-2", WaiterConfig={"Delay": 1})


@case
def what_cannot_be_set_is_told_truthfully(server):
    s3 = bucket("settings")
    s3.put_object(Bucket="settings", Key="k", Body=b"x")
    assert "Status" not in s3.get_bucket_versioning(Bucket="settings")
    assert s3.get_bucket_acl(Bucket="settings")["Grants"][0]["Permission"] == "FULL_CONTROL"
    assert s3.get_object_acl(Bucket="settings", Key="k")["Grants"][0]["Grantee"]["Type"] == "CanonicalUser"
    assert s3.get_object_tagging(Bucket="settings", Key="k")["TagSet"] == []
    assert s3.get_bucket_request_payment(Bucket="settings")["Payer"] == "BucketOwner"
    rules = s3.get_bucket_ownership_controls(Bucket="settings")["OwnershipControls"]["Rules"]
    assert rules == [{"ObjectOwnership": "BucketOwnerEnforced"}], rules
    s3.get_bucket_logging(Bucket="settings")
    s3.get_bucket_accelerate_configuration(Bucket="settings")
    s3.get_bucket_notification_configuration(Bucket="settings")
    for code, call in [
        ("NoSuchCORSConfiguration", s3.get_bucket_cors),
        ("NoSuchLifecycleConfiguration", s3.get_bucket_lifecycle_configuration),
        ("NoSuchBucketPolicy", s3.get_bucket_policy),
        ("NoSuchTagSet", s3.get_bucket_tagging),
        ("NoSuchWebsiteConfiguration", s3.get_bucket_website),
        ("NoSuchPublicAccessBlockConfiguration", s3.get_public_access_block),
        ("ReplicationConfigurationNotFoundError", s3.get_bucket_replication),
        ("ServerSideEncryptionConfigurationNotFoundError", s3.get_bucket_encryption),
        ("ObjectLockConfigurationNotFoundError", s3.get_object_lock_configuration),
    ]:
        refused(code, call, 404, Bucket="settings")
    refused("NotImplemented", s3.put_bucket_versioning, 501, Bucket="settings",
            VersioningConfiguration={"Status": "Enabled"})
    refused("NotImplemented", s3.put_object, 501, Bucket="settings", Key="k", Body=b"x", ServerSideEncryption="aws:kms")
    stored = s3.put_object(Bucket="settings", Key="k", Body=b"x", ServerSideEncryption="AES256")
    assert stored["ServerSideEncryption"] == "AES256", stored
    refused("NotImplemented", s3.put_object, 501, Bucket="settings", Key="k", Body=b"x", StorageClass="GLACIER")
    refused("NotImplemented", s3.put_object, 501, Bucket="settings", Key="k", Body=b"x", Tagging="a=b")
    refused("NotImplemented", s3.put_object_tagging, 501, Bucket="settings", Key="k", Tagging={"TagSet": []})
    refused("AccessControlListNotSupported", s3.put_object, 400, Bucket="settings", Key="k", Body=b"x", ACL="public-read")
    refused("InvalidArgument", s3.get_object, 400, Bucket="settings", Key="k", VersionId="3")
    assert body(s3, "settings", "k", VersionId="null") == b"x"


@case
def an_object_keeps_what_its_writer_said(server):
    s3 = bucket("objects")
    expires = datetime(2027, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    put = s3.put_object(Bucket="objects", Key="a/b", Body=b"hello", ContentType="text/plain", CacheControl="max-age=5",
                        ContentDisposition="attachment; filename=\"x\"", ContentEncoding="gzip", ContentLanguage="de",
                        Expires=expires, Metadata={"Colour": "red", "empty": "", "spaces": "a  b"})
    assert put["ETag"] == '"5d41402abc4b2a76b9719d911017c592"', put
    for found in [s3.get_object(Bucket="objects", Key="a/b"), s3.head_object(Bucket="objects", Key="a/b")]:
        assert found["ContentType"] == "text/plain" and found["CacheControl"] == "max-age=5"
        assert found["ContentEncoding"] == "gzip" and found["ContentLanguage"] == "de"
        assert found["ContentDisposition"] == "attachment; filename=\"x\""
        assert found["ExpiresString"] == "Sat, 02 Jan 2027 03:04:05 GMT", found["ExpiresString"]
        assert found["Metadata"] == {"colour": "red", "empty": "", "spaces": "a  b"}, found["Metadata"]
        assert found["ContentLength"] == 5 and found["ETag"] == put["ETag"] and found["AcceptRanges"] == "bytes"
        assert abs(datetime.now(timezone.utc) - found["LastModified"]) < timedelta(minutes=5)
    found = s3.get_object(Bucket="objects", Key="a/b", ResponseContentType="x/y", ResponseCacheControl="no-store",
                          ResponseContentDisposition="inline", ResponseContentEncoding="br", ResponseContentLanguage="en",
                          ResponseExpires=datetime(2028, 1, 1, tzinfo=timezone.utc))
    assert (found["ContentType"], found["CacheControl"], found["ContentDisposition"]) == ("x/y", "no-store", "inline")
    assert (found["ContentEncoding"], found["ContentLanguage"]) == ("br", "en"), found
    s3.put_object(Bucket="objects", Key="empty")
    found = s3.get_object(Bucket="objects", Key="empty")
    assert found["Body"].read() == b"" and found["ContentLength"] == 0
    assert found["ContentType"] == "binary/octet-stream", found
    attributes = s3.get_object_attributes(Bucket="objects", Key="a/b", ObjectAttributes=["ETag", "ObjectSize", "StorageClass"])
    assert attributes["ObjectSize"] == 5 and attributes["ETag"] == "5d41402abc4b2a76b9719d911017c592", attributes
    refused("NoSuchKey", s3.get_object, 404, Bucket="objects", Key="a")
    refused("404", s3.head_object, 404, Bucket="objects", Key="a/")
    refused("NoSuchKey", s3.get_object_attributes, 404, Bucket="objects", Key="a", ObjectAttributes=["ETag"])
    refused("MetadataTooLarge", s3.put_object, 400, Bucket="objects", Key="k", Metadata={"a": "x" * 2048})
    s3.put_object(Bucket="objects", Key="a/b", Body=b"new")
    assert s3.get_object(Bucket="objects", Key="a/b")["Metadata"] == {}


@case
def ranges(server):
    s3 = bucket("ranges")
    data = os.urandom(300_000)
    s3.put_object(Bucket="ranges", Key="k", Body=data)
    for text, first, end in [("bytes=0-0", 0, 1), ("bytes=10-19", 10, 20), ("bytes=299999-", 299999, 300000),
                             ("bytes=-7", 299993, 300000), ("bytes=5-99999999", 5, 300000),
                             ("bytes=-99999999", 0, 300000), ("bytes=65530-65545", 65530, 65546)]:
        found = s3.get_object(Bucket="ranges", Key="k", Range=text)
        assert found["Body"].read() == data[first:end], text
        assert found["ContentRange"] == f"bytes {first}-{end - 1}/300000", found["ContentRange"]
        assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
        head = s3.head_object(Bucket="ranges", Key="k", Range=text)
        assert head["ContentLength"] == end - first and head["ResponseMetadata"]["HTTPStatusCode"] == 206
    for text in ["bytes=300000-", "bytes=-0", "bytes=300000-300001"]:
        answer = refused("InvalidRange", s3.get_object, 416, Bucket="ranges", Key="k", Range=text)
        assert answer["Error"]["ActualObjectSize"] == "300000", answer
    for text in ["bytes=9-3", "lines=1-2", "bytes=0-1,5-6"]:
        assert body(s3, "ranges", "k", Range=text) == data, text
    s3.put_object(Bucket="ranges", Key="empty")
    refused("InvalidRange", s3.get_object, 416, Bucket="ranges", Key="empty", Range="bytes=0-")
    assert body(s3, "ranges", "k", PartNumber=1) == data
    refused("InvalidPartNumber", s3.get_object, 416, Bucket="ranges", Key="k", PartNumber=2)


@case
def conditions_on_reads(server):
    s3 = bucket("reads")
    tag = s3.put_object(Bucket="reads", Key="k", Body=b"x")["ETag"]
    moment = s3.head_object(Bucket="reads", Key="k")["LastModified"]
    before, after = moment - timedelta(hours=1), moment + timedelta(hours=1)
    for call in [s3.get_object, s3.head_object]:
        what = {"Bucket": "reads", "Key": "k"}
        call(IfMatch=tag, **what)
        call(IfMatch="*", **what)
        call(IfNoneMatch='"other"', **what)
        call(IfModifiedSince=before, **what)
        call(IfUnmodifiedSince=moment, **what)
        call(IfMatch=tag, IfUnmodifiedSince=before, **what)
        call(IfNoneMatch='"other"', IfModifiedSince=after, **what)
        failed = "412" if call == s3.head_object else "PreconditionFailed"
        refused(failed, call, 412, IfMatch='"other"', **what)
        refused(failed, call, 412, IfUnmodifiedSince=before, **what)
        for condition in [{"IfNoneMatch": tag}, {"IfNoneMatch": "*"}, {"IfModifiedSince": moment},
                          {"IfNoneMatch": tag, "IfModifiedSince": before}]:
            answer = refused("304", call, 304, **condition, **what)
            assert answer["ResponseMetadata"]["HTTPHeaders"]["etag"] == tag, answer


@case
def conditions_on_writes(server):
    s3 = bucket("writes")
    first = s3.put_object(Bucket="writes", Key="k", Body=b"1", IfNoneMatch="*")["ETag"]
    refused("PreconditionFailed", s3.put_object, 412, Bucket="writes", Key="k", Body=b"2", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, 412, Bucket="writes", Key="k", Body=b"2", IfMatch='"other"')
    refused("NoSuchKey", s3.put_object, 404, Bucket="writes", Key="none", Body=b"2", IfMatch=first)
    refused("NotImplemented", s3.put_object, 501, Bucket="writes", Key="k", Body=b"2", IfNoneMatch=first)
    assert body(s3, "writes", "k") == b"1"
    second = s3.put_object(Bucket="writes", Key="k", Body=b"2", IfMatch=first)["ETag"]
    refused("PreconditionFailed", s3.delete_object, 412, Bucket="writes", Key="k", IfMatch=first)
    s3.delete_object(Bucket="writes", Key="k", IfMatch=second)
    refused("NoSuchKey", s3.get_object, 404, Bucket="writes", Key="k")
    won, lost = [], []

    def contend(number):
        try:
            client().put_object(Bucket="writes", Key="race", Body=str(number).encode(), IfNoneMatch="*")
            won.append(number)
        except ClientError as error:
            lost.append(error.response["Error"]["Code"])

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and lost == ["PreconditionFailed"] * 11, (won, lost)
    assert body(s3, "writes", "race") == str(won[0]).encode()


@case
def copies(server):
    s3 = bucket("copies")
    s3.create_bucket(Bucket="copies-too")
    tag = s3.put_object(Bucket="copies", Key="a b/ä+%", Body=b"hello", ContentType="text/plain", Metadata={"x": "1"},
                        ChecksumAlgorithm="SHA256")["ETag"]
    source = {"Bucket": "copies", "Key": "a b/ä+%"}
    copied = s3.copy_object(Bucket="copies-too", Key="k", CopySource=source)["CopyObjectResult"]
    assert copied["ETag"] == tag and copied["ChecksumSHA256"] == checksum("SHA256", b"hello"), copied
    found = s3.get_object(Bucket="copies-too", Key="k")
    assert (found["Body"].read(), found["ContentType"], found["Metadata"]) == (b"hello", "text/plain", {"x": "1"})
    s3.copy_object(Bucket="copies-too", Key="k2", CopySource=source, MetadataDirective="REPLACE", Metadata={"y": "2"})
    found = s3.head_object(Bucket="copies-too", Key="k2")
    assert found["Metadata"] == {"y": "2"} and found["ContentType"] == "binary/octet-stream", found
    s3.copy_object(Bucket="copies-too", Key="k3", CopySource="copies/a b/ä+%", ChecksumAlgorithm="SHA1")
    found = s3.get_object_attributes(Bucket="copies-too", Key="k3", ObjectAttributes=["Checksum"])["Checksum"]
    assert found["ChecksumSHA1"] == checksum("SHA1", b"hello"), found
    refused("InvalidRequest", s3.copy_object, 400, Bucket="copies", Key="a b/ä+%", CopySource=source)
    s3.copy_object(Bucket="copies", Key="a b/ä+%", CopySource=source, MetadataDirective="REPLACE", Metadata={"z": "3"})
    assert s3.head_object(Bucket="copies", Key="a b/ä+%")["Metadata"] == {"z": "3"}
    copy = {"Bucket": "copies", "Key": "c", "CopySource": source}
    s3.copy_object(CopySourceIfMatch=tag, CopySourceIfNoneMatch='"other"', **copy)
    refused("PreconditionFailed", s3.copy_object, 412, CopySourceIfMatch='"other"', **copy)
    refused("PreconditionFailed", s3.copy_object, 412, CopySourceIfNoneMatch=tag, **copy)
    past = datetime(2020, 1, 1, tzinfo=timezone.utc)
    refused("PreconditionFailed", s3.copy_object, 412, CopySourceIfUnmodifiedSince=past, **copy)
    s3.copy_object(CopySourceIfModifiedSince=past, **copy)
    refused("NoSuchKey", s3.copy_object, 404, Bucket="copies", Key="c", CopySource="copies/none")
    refused("NoSuchBucket", s3.copy_object, 404, Bucket="copies", Key="c", CopySource="copies-none/k")
    refused("InvalidArgument", s3.copy_object, 400, Bucket="copies", Key="c", CopySource="copies")


@case
def deletions(server):
    s3 = bucket("deletions")
    keys = [f"k{number:04}" for number in range(1000)] + ["<&>\"'", "a b", "ä"]
    for key in keys[-13:]:
        s3.put_object(Bucket="deletions", Key=key, Body=b"x")
    s3.delete_object(Bucket="deletions", Key="never-was")
    tag = s3.put_object(Bucket="deletions", Key="tagged", Body=b"x")["ETag"]
    answer = s3.delete_objects(Bucket="deletions", Delete={"Objects": [
        {"Key": "<&>\"'"}, {"Key": "tagged", "ETag": '"other"'}, {"Key": "none"}, {"Key": "a b", "VersionId": "null"},
        {"Key": "ä", "VersionId": "7"}, {"Key": "x" * 1025}]})
    assert [found["Key"] for found in answer["Deleted"]] == ["<&>\"'", "none", "a b"], answer
    errors = {found["Key"]: found["Code"] for found in answer["Errors"]}
    assert errors == {"tagged": "PreconditionFailed", "ä": "NoSuchVersion", "x" * 1025: "KeyTooLongError"}, errors
    answer = s3.delete_objects(Bucket="deletions", Delete={"Quiet": True, "Objects": [
        {"Key": "tagged", "ETag": tag}, {"Key": "ä"}]})
    assert "Deleted" not in answer and "Errors" not in answer, answer
    answer = s3.delete_objects(Bucket="deletions", Delete={"Objects": [{"Key": key} for key in keys[:1000]]})
    assert len(answer["Deleted"]) == 1000
    assert s3.list_objects_v2(Bucket="deletions")["KeyCount"] == 0
    refused("MalformedXML", s3.delete_objects, 400, Bucket="deletions",
            Delete={"Objects": [{"Key": str(number)} for number in range(1001)]})
    refused("MalformedXML", s3.delete_objects, 400, Bucket="deletions", Delete={"Objects": []})
    refused("NoSuchBucket", s3.delete_objects, 404, Bucket="deletions-none", Delete={"Objects": [{"Key": "k"}]})


@case
def listings(server):
    s3 = bucket("listings")
    keys = sorted(["a", "a/b", "a/b/c", "a/d", "b/", "b/x y", "ä/ö", "z+%&<>\"", "n\nl", "zz/1", "zz/2"],
                  key=lambda key: key.encode())
    for key in keys:
        s3.put_object(Bucket="listings", Key=key, Body=key.encode())
    for size in [1, 2, 3, 1000]:
        for name in ["list_objects", "list_objects_v2"]:
            pages = list(s3.get_paginator(name).paginate(Bucket="listings", PaginationConfig={"PageSize": size}))
            found = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
            assert found == keys, (name, size, found)
            assert all(len(page.get("Contents", [])) <= size for page in pages)
            entries, prefixes = [], []
            for page in s3.get_paginator(name).paginate(Bucket="listings", Delimiter="/", PaginationConfig={"PageSize": size}):
                entries += [entry["Key"] for entry in page.get("Contents", [])]
                prefixes += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
            assert entries == [key for key in keys if "/" not in key], (name, size, entries)
            assert prefixes == ["a/", "b/", "zz/", "ä/"], (name, size, prefixes)
    entry = s3.list_objects_v2(Bucket="listings", Prefix="a/b/", FetchOwner=True)["Contents"][0]
    assert entry["ETag"] == '"' + hashlib.md5(b"a/b/c").hexdigest() + '"' and entry["Size"] == 5, entry
    assert entry["Owner"]["ID"] and entry["StorageClass"] == "STANDARD"
    assert "Owner" not in s3.list_objects_v2(Bucket="listings")["Contents"][0]
    found = s3.list_objects_v2(Bucket="listings", StartAfter="a/d")
    assert [entry["Key"] for entry in found["Contents"]] == [key for key in keys if key.encode() > b"a/d"]
    assert found["StartAfter"] == "a/d" and found["KeyCount"] == len(found["Contents"])
    found = s3.list_objects_v2(Bucket="listings", MaxKeys=0)
    assert (found["KeyCount"], found["IsTruncated"]) == (0, False), found
    found = s3.list_objects_v2(Bucket="listings", Prefix="a/", Delimiter="/")
    assert [entry["Key"] for entry in found["Contents"]] == ["a/b", "a/d"] and found["CommonPrefixes"] == [{"Prefix": "a/b/"}]
    found = s3.list_objects(Bucket="listings", Delimiter="/", MaxKeys=2)
    assert found["IsTruncated"] and found["NextMarker"] == "a/", found
    versions = s3.list_object_versions(Bucket="listings", Prefix="a")["Versions"]
    assert [(found["Key"], found["VersionId"], found["IsLatest"]) for found in versions] == \
        [(key, "null", True) for key in keys if key.startswith("a")], versions
    refused("InvalidArgument", s3.list_objects_v2, 400, Bucket="listings", ContinuationToken="nonsense")
    refused("InvalidArgument", s3.list_objects_v2, 400, Bucket="listings", MaxKeys=-1)
    refused("InvalidArgument", s3.list_objects_v2, 400, Bucket="listings", EncodingType="base64")
    answer = raw(server, "GET", "/listings?list-type=2")
    assert answer[0] == 200 and "<Key>z+%&amp;&lt;&gt;&quot;</Key>".encode() in answer[2], answer
    first = s3.list_objects_v2(Bucket="listings", MaxKeys=3)
    s3.delete_object(Bucket="listings", Key=first["Contents"][-1]["Key"])
    rest = s3.list_objects_v2(Bucket="listings", ContinuationToken=first["NextContinuationToken"])
    assert [entry["Key"] for entry in rest["Contents"]] == keys[3:], rest


@case
def many_keys(server):
    s3 = bucket("many")
    for number in range(1203):
        s3.put_object(Bucket="many", Key=f"{number % 3}/{number:05}", Body=b"")
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket="many"))
    assert [page["KeyCount"] for page in pages] == [1000, 203]
    assert len({entry["Key"] for page in pages for entry in page["Contents"]}) == 1203
    boto3.resource("s3").Bucket("many").objects.all().delete()
    assert s3.list_objects_v2(Bucket="many")["KeyCount"] == 0


@case
def uploads_in_parts(server):
    s3 = bucket("parts")
    where = {"Bucket": "parts", "Key": "big"}
    upload = s3.create_multipart_upload(ContentType="x/y", Metadata={"m": "1"}, **where)["UploadId"]
    data = {number: os.urandom(5 * MIB) for number in (1, 2)} | {7: b"end"}
    tags = {}
    for number in (7, 2, 1):
        answer = s3.upload_part(PartNumber=number, UploadId=upload, Body=data[number], **where)
        tags[number] = answer["ETag"]
        assert answer["ETag"] == '"' + hashlib.md5(data[number]).hexdigest() + '"'
    pages = s3.get_paginator("list_parts").paginate(UploadId=upload, PaginationConfig={"PageSize": 2}, **where)
    found = [(part["PartNumber"], part["Size"], part["ETag"]) for page in pages for part in page["Parts"]]
    assert found == [(number, len(data[number]), tags[number]) for number in (1, 2, 7)], found
    refused("NoSuchKey", s3.get_object, 404, **where)
    listed = s3.list_multipart_uploads(Bucket="parts")["Uploads"]
    assert [(found["Key"], found["UploadId"]) for found in listed] == [("big", upload)], listed

    def complete(parts, **more):
        listed = [{"PartNumber": number, "ETag": tag} for number, tag in parts]
        return s3.complete_multipart_upload(UploadId=upload, MultipartUpload={"Parts": listed}, **where, **more)

    whole = [(number, tags[number]) for number in (1, 2, 7)]
    refused("InvalidPartOrder", complete, 400, parts=[whole[1], whole[0]])
    refused("InvalidPart", complete, 400, parts=[whole[0], (2, '"other"')])
    refused("InvalidPart", complete, 400, parts=[whole[0], (3, tags[2])])
    refused("MalformedXML", complete, 400, parts=[])
    refused("InvalidRequest", complete, 400, parts=whole, MpuObjectSize=5)
    refused("NoSuchUpload", s3.upload_part, 404, PartNumber=1, UploadId="none", Body=b"x", **where)
    refused("InvalidArgument", s3.upload_part, 400, PartNumber=10001, UploadId=upload, Body=b"x", **where)
    refused("InvalidArgument", s3.upload_part, 400, PartNumber=0, UploadId=upload, Body=b"x", **where)
    server.kill()
    done = complete(whole, IfNoneMatch="*", MpuObjectSize=10 * MIB + 3)
    md5s = b"".join(hashlib.md5(data[number]).digest() for number in (1, 2, 7))
    assert done["ETag"] == f'"{hashlib.md5(md5s).hexdigest()}-3"', done
    found = s3.get_object(**where)
    assert found["Body"].read() == data[1] + data[2] + data[7]
    assert (found["ContentType"], found["Metadata"], found["ETag"]) == ("x/y", {"m": "1"}, done["ETag"])
    assert body(s3, "parts", "big", Range=f"bytes={5 * MIB - 2}-{5 * MIB + 1}") == data[1][-2:] + data[2][:2]
    assert s3.get_object_attributes(ObjectAttributes=["ObjectParts"], **where)["ObjectParts"]["TotalPartsCount"] == 3
    refused("NoSuchUpload", s3.list_parts, 404, UploadId=upload, **where)

    small = s3.create_multipart_upload(**where)["UploadId"]
    parts = [s3.upload_part(PartNumber=number, UploadId=small, Body=b"x", **where)["ETag"] for number in (1, 2)]
    refused("EntityTooSmall", s3.complete_multipart_upload, 400, UploadId=small, MultipartUpload={
        "Parts": [{"PartNumber": 1, "ETag": parts[0]}, {"PartNumber": 2, "ETag": parts[1]}]}, **where)
    s3.abort_multipart_upload(UploadId=small, **where)
    refused("NoSuchUpload", s3.abort_multipart_upload, 404, UploadId=small, **where)

    copy = s3.create_multipart_upload(Bucket="parts", Key="copy")["UploadId"]
    to = {"Bucket": "parts", "Key": "copy", "UploadId": copy}
    one = s3.upload_part_copy(PartNumber=1, CopySource="parts/big", CopySourceRange=f"bytes=0-{6 * MIB - 1}", **to)
    two = s3.upload_part_copy(PartNumber=2, CopySource=where, **to)
    refused("InvalidArgument", s3.upload_part_copy, 400, PartNumber=3, CopySource=where, CopySourceRange="0-5", **to)
    refused("PreconditionFailed", s3.upload_part_copy, 412, PartNumber=3, CopySource=where, CopySourceIfMatch='"x"', **to)
    s3.complete_multipart_upload(MultipartUpload={"Parts": [
        {"PartNumber": 1, "ETag": one["CopyPartResult"]["ETag"]}, {"PartNumber": 2, "ETag": two["CopyPartResult"]["ETag"]}]}, **to)
    whole = data[1] + data[2] + data[7]
    assert body(s3, "parts", "copy") == whole[:6 * MIB] + whole


@case
def listings_of_uploads(server):
    s3 = bucket("uploads")
    keys = ["a/1", "a/2", "b", "b", "c/1"]
    for key in keys:
        s3.create_multipart_upload(Bucket="uploads", Key=key)
    for size in [1, 2, 1000]:
        pages = s3.get_paginator("list_multipart_uploads").paginate(Bucket="uploads", PaginationConfig={"PageSize": size})
        found = [(entry["Key"], entry["UploadId"]) for page in pages for entry in page.get("Uploads", [])]
        assert [key for key, _ in found] == keys and len(set(found)) == 5, (size, found)
        pages = s3.get_paginator("list_multipart_uploads").paginate(Bucket="uploads", Delimiter="/",
                                                                    PaginationConfig={"PageSize": size})
        uploads, prefixes = [], []
        for page in pages:
            uploads += [entry["Key"] for entry in page.get("Uploads", [])]
            prefixes += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        assert (uploads, prefixes) == (["b", "b"], ["a/", "c/"]), (size, uploads, prefixes)
    found = s3.list_multipart_uploads(Bucket="uploads", Prefix="a/")["Uploads"]
    assert [entry["Key"] for entry in found] == ["a/1", "a/2"]


@case
def transfers(server):
    s3 = bucket("transfers")
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=4)
    with tempfile.TemporaryDirectory() as folder:
        there, back = os.path.join(folder, "there"), os.path.join(folder, "back")
        data = os.urandom(24 * MIB + 5)
        with open(there, "wb") as file:
            file.write(data)
        s3.upload_file(there, "transfers", "file", Config=config, ExtraArgs={"Metadata": {"a": "b"}})
        s3.download_file("transfers", "file", back, Config=config)
        with open(back, "rb") as file:
            assert file.read() == data
        head = s3.head_object(Bucket="transfers", Key="file", ChecksumMode="ENABLED")
        assert head["ETag"].endswith('-5"') and head["Metadata"] == {"a": "b"}, head
        with open(there, "rb") as file:
            assert s3.put_object(Bucket="transfers", Key="stream", Body=file)["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
    s3.upload_fileobj(io.BytesIO(data), "transfers", "object", Config=config)
    buffer = io.BytesIO()
    s3.download_fileobj("transfers", "object", buffer)
    assert buffer.getvalue() == data
    s3.copy({"Bucket": "transfers", "Key": "file"}, "transfers", "copied", Config=config)
    assert body(s3, "transfers", "copied") == data
    lines = s3.get_object(Bucket="transfers", Key="stream")["Body"].iter_chunks(MIB)
    assert hashlib.md5(b"".join(lines)).digest() == hashlib.md5(data).digest()


@case
def resources(server):
    s3 = boto3.resource("s3")
    found = s3.create_bucket(Bucket="resources")
    thing = found.put_object(Key="a", Body=b"1", Metadata={"x": "y"})
    assert thing.get()["Body"].read() == b"1" and s3.Object("resources", "a").metadata == {"x": "y"}
    s3.Object("resources", "b").copy_from(CopySource="resources/a")
    assert [entry.key for entry in found.objects.filter(Prefix="")] == ["a", "b"]
    assert found in list(s3.buckets.all())
    s3.Object("resources", "a").wait_until_exists()
    found.objects.all().delete()
    found.object_versions.delete()
    found.delete()


@case
def checksums(server):
    s3 = bucket("checksums")
    data = os.urandom(20_000)
    for algorithm in ALGORITHMS:
        value = checksum(algorithm, data)
        put = s3.put_object(Bucket="checksums", Key=algorithm, Body=data, **{f"Checksum{algorithm}": value})
        assert put[f"Checksum{algorithm}"] == value and put["ChecksumType"] == "FULL_OBJECT", put
        got = s3.get_object(Bucket="checksums", Key=algorithm, ChecksumMode="ENABLED")
        assert got[f"Checksum{algorithm}"] == value, got
        assert f"Checksum{algorithm}" not in s3.head_object(Bucket="checksums", Key=algorithm)
        attributes = s3.get_object_attributes(Bucket="checksums", Key=algorithm, ObjectAttributes=["Checksum"])
        assert attributes["Checksum"][f"Checksum{algorithm}"] == value, attributes
        wrong = checksum(algorithm, data + b"x")
        refused("BadDigest", s3.put_object, 400, Bucket="checksums", Key="bad", Body=data, **{f"Checksum{algorithm}": wrong})
        refused("InvalidRequest", s3.put_object, 400, Bucket="checksums", Key="bad", Body=data, **{f"Checksum{algorithm}": "x"})
    for algorithm in ["CRC32", "SHA1", "SHA256"]:
        put = s3.put_object(Bucket="checksums", Key="computed", Body=data, ChecksumAlgorithm=algorithm)
        assert put[f"Checksum{algorithm}"] == checksum(algorithm, data), put
    md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
    s3.put_object(Bucket="checksums", Key="md5", Body=data, ContentMD5=md5)
    refused("BadDigest", s3.put_object, 400, Bucket="checksums", Key="bad", Body=data + b"x", ContentMD5=md5)
    refused("InvalidDigest", s3.put_object, 400, Bucket="checksums", Key="bad", Body=data, ContentMD5="eA==")
    refused("NotImplemented", s3.create_multipart_upload, 501, Bucket="checksums", Key="bad", ChecksumAlgorithm="XXHASH64")
    refused("NoSuchKey", s3.get_object, 404, Bucket="checksums", Key="bad")


@case
def checksums_of_parts(server):
    s3 = bucket("composites")
    parts = [os.urandom(5 * MIB), b"the end"]
    for algorithm, kind in [("CRC32", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("SHA1", "COMPOSITE"), ("SHA256", "COMPOSITE")]:
        where = {"Bucket": "composites", "Key": algorithm + kind}
        upload = s3.create_multipart_upload(ChecksumAlgorithm=algorithm, ChecksumType=kind, **where)
        assert (upload["ChecksumAlgorithm"], upload["ChecksumType"]) == (algorithm, kind), upload
        where["UploadId"] = upload["UploadId"]
        listed = []
        for number, data in enumerate(parts, 1):
            put = s3.upload_part(PartNumber=number, Body=data, ChecksumAlgorithm=algorithm, **where)
            assert put[f"Checksum{algorithm}"] == checksum(algorithm, data), put
            listed.append({"PartNumber": number, "ETag": put["ETag"], f"Checksum{algorithm}": put[f"Checksum{algorithm}"]})
        found = s3.list_parts(**where)
        assert (found["ChecksumAlgorithm"], found["ChecksumType"]) == (algorithm, kind), found
        assert found["Parts"][0][f"Checksum{algorithm}"] == checksum(algorithm, parts[0])
        whole = b"".join(parts) if kind == "FULL_OBJECT" else b"".join(ALGORITHMS[algorithm](data) for data in parts)
        expected = checksum(algorithm, whole)
        wrong = [{**part, f"Checksum{algorithm}": checksum(algorithm, b"other")} for part in listed]
        refused("InvalidPart", s3.complete_multipart_upload, 400, MultipartUpload={"Parts": wrong}, **where)
        refused("BadDigest", s3.complete_multipart_upload, 400, MultipartUpload={"Parts": listed}, ChecksumType=kind,
                **{f"Checksum{algorithm}": checksum(algorithm, b"other")}, **where)
        done = s3.complete_multipart_upload(MultipartUpload={"Parts": listed}, ChecksumType=kind,
                                            **{f"Checksum{algorithm}": expected}, **where)
        shown = expected if kind == "FULL_OBJECT" else expected + "-2"
        assert (done[f"Checksum{algorithm}"], done["ChecksumType"]) == (shown, kind), done
        head = s3.head_object(Bucket="composites", Key=algorithm + kind, ChecksumMode="ENABLED")
        assert (head[f"Checksum{algorithm}"], head["ChecksumType"]) == (shown, kind), head
    refused("InvalidRequest", s3.create_multipart_upload, 400, Bucket="composites", Key="k", ChecksumAlgorithm="SHA256",
            ChecksumType="FULL_OBJECT")
    where = {"Bucket": "composites", "Key": "unasked"}
    upload = s3.create_multipart_upload(**where)
    assert "ChecksumAlgorithm" not in upload, upload
    put = s3.upload_part(PartNumber=1, Body=b"hello", UploadId=upload["UploadId"], **where)
    listed = s3.list_parts(UploadId=upload["UploadId"], **where)["Parts"]
    assert not any(name.startswith("Checksum") for name in listed[0]), listed
    parts = {"Parts": [{"PartNumber": 1, "ETag": put["ETag"]}]}
    done = s3.complete_multipart_upload(MultipartUpload=parts, UploadId=upload["UploadId"], **where)
    head = s3.head_object(ChecksumMode="ENABLED", **where)
    for found in [done, head]:
        assert (found["ChecksumCRC64NVME"], found["ChecksumType"]) == (checksum("CRC64NVME", b"hello"), "FULL_OBJECT"), found


def chunked(data, size, trailers):
    pieces = [data[at:at + size] for at in range(0, len(data), size)]
    text = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return text + b"0\r\n" + b"".join(f"{name}:{value}\r\n".encode() for name, value in trailers) + b"\r\n"


@case
def bodies_in_chunks(server):
    s3 = bucket("chunks")
    data = os.urandom(200_000)
    for algorithm in ALGORITHMS:
        name = "x-amz-checksum-" + algorithm.lower()
        head = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "Content-Encoding": "aws-chunked",
                "x-amz-decoded-content-length": str(len(data)), "x-amz-trailer": name,
                "x-amz-sdk-checksum-algorithm": algorithm}
        good = chunked(data, 65536, [(name, checksum(algorithm, data))])
        answer = raw(server, "PUT", f"/chunks/{algorithm}", head, good)
        assert answer[0] == 200 and answer[1][name] == checksum(algorithm, data), answer
        found = s3.get_object(Bucket="chunks", Key=algorithm)
        assert found["Body"].read() == data and "ContentEncoding" not in found, found
        for payload, code in [
            (chunked(data, 65536, [(name, checksum(algorithm, b"other"))]), "BadDigest"),
            (chunked(data, 65536, []), "MalformedTrailerError"),
            (chunked(data, 65536, [(name, "nonsense")]), "InvalidRequest"),
            (chunked(data[:-1], 65536, [(name, checksum(algorithm, data[:-1]))]), "IncompleteBody"),
            (chunked(data + b"x", 65536, [(name, checksum(algorithm, data + b"x"))]), "IncompleteBody"),
            (good[:100_000], "IncompleteBody"),
            (b"zz" + good, "InvalidChunkFormat"),
            (good + b"more", "InvalidChunkFormat"),
        ]:
            answer = raw(server, "PUT", "/chunks/bad", head, payload)
            assert answer[0] == 400 and code_of(answer) == code, (algorithm, code, answer)
    refused("NoSuchKey", s3.get_object, 404, Bucket="chunks", Key="bad")
    missing = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-trailer": "x-amz-checksum-crc32"}
    answer = raw(server, "PUT", "/chunks/bad", missing, chunked(data, 65536, []))
    assert answer[0] == 411 and code_of(answer) == "MissingContentLength", answer
    hashed = hashlib.sha256(data).hexdigest()
    assert raw(server, "PUT", "/chunks/hashed", {"x-amz-content-sha256": hashed}, data)[0] == 200
    answer = raw(server, "PUT", "/chunks/bad", {"x-amz-content-sha256": hashed}, data + b"x")
    assert answer[0] == 400 and code_of(answer) == "XAmzContentSHA256Mismatch", answer


def fetch(url, method="GET", data=None, headers=None):
    request = urllib.request.Request(url, method=method, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@case
def signed_addresses(server):
    bucket("signed").put_object(Bucket="signed", Key="a b", Body=b"hello")
    for version in ["s3v4", "s3"]:
        s3 = boto3.client("s3", config=Config(signature_version=version, s3={"addressing_style": "path"}))
        url = s3.generate_presigned_url("get_object", Params={"Bucket": "signed", "Key": "a b"}, ExpiresIn=60)
        assert fetch(url) == (200, b"hello"), url
        url = s3.generate_presigned_url("put_object", Params={"Bucket": "signed", "Key": version}, ExpiresIn=60)
        assert fetch(url, "PUT", b"put " + version.encode(), {"Content-Type": ""})[0] == 200
        assert body(client(), "signed", version) == b"put " + version.encode()
        url = s3.generate_presigned_url("head_object", Params={"Bucket": "signed", "Key": "none"}, ExpiresIn=60)
        assert fetch(url, "HEAD") == (404, b"")
    s3 = boto3.client("s3", config=Config(signature_version="s3v4"))
    url = s3.generate_presigned_url("get_object", ExpiresIn=60, Params={
        "Bucket": "signed", "Key": "a b", "ResponseContentType": "x/y"})
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.headers["Content-Type"] == "x/y"
    old = re.sub(r"X-Amz-Date=\d{8}", "X-Amz-Date=20200101", re.sub(r"%2F\d{8}%2F", "%2F20200101%2F", url))
    status, text = fetch(old)
    assert status == 403 and b"<Code>AccessDenied</Code>" in text and b"expired" in text, (status, text)
    status, text = fetch(url.replace("X-Amz-Expires=60", "X-Amz-Expires=604801"))
    assert status == 400 and b"AuthorizationQueryParametersError" in text, (status, text)


@case
def hostile_keys(server):
    s3 = bucket("hostile")
    keys = ["..", "../../etc/passwd", "/", "//", "/a", "a//b", "a/", ".", "./a", "a/../b", "\0", "a\0b", "\r\n", "\x7f", " ",
            "%", "%2F", "%252F", "+", "a?b#c&d=e", "é", "e\u0301", "\u202e", "\ufffe", "😀", "x" * 1024, "ä" * 512,
            "con", "CON", "a\\b", "'\"<>&;|`$(x)", "_anabranch/v1/status"]
    for key in keys:
        s3.put_object(Bucket="hostile", Key=key, Body=key.encode())
    for key in keys:
        assert body(s3, "hostile", key) == key.encode(), key
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="hostile", PaginationConfig={"PageSize": 7})
    found = [entry["Key"] for page in pages for entry in page["Contents"]]
    assert found == sorted(keys, key=lambda key: key.encode()), found
    refused("KeyTooLongError", s3.put_object, 400, Bucket="hostile", Key="x" * 1025, Body=b"")
    refused("KeyTooLongError", s3.put_object, 400, Bucket="hostile", Key="ä" * 512 + "x", Body=b"")
    for path in ["/hostile/%ff", "/hostile/%", "/hostile/%c3%28", "/hostile?prefix=%ff"]:
        answer = raw(server, "GET", path)
        assert answer[0] == 400 and code_of(answer) == "InvalidURI", (path, answer)
    server.kill()
    for key in keys:
        assert body(s3, "hostile", key) == key.encode(), key
    for key in keys:
        s3.delete_object(Bucket="hostile", Key=key)
    assert s3.list_objects_v2(Bucket="hostile")["KeyCount"] == 0


@case
def hosts_that_name_a_bucket(server):
    bucket("virtual.host").put_object(Bucket="virtual.host", Key="a/b", Body=b"hello")
    answer = raw(server, "GET", "/a/b", host=f"virtual.host.localhost:{server.port}")
    assert answer[0] == 200 and answer[2] == b"hello", answer
    known = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *more, **rest: known(
        "127.0.0.1" if str(host).endswith(".localhost") else host, *more, **rest)
    try:
        # No client of TLS takes a name of one part for one with a bucket before it.
        endpoint = f"https://s3.localhost:{server.port}" if GUARDED else f"http://localhost:{server.port}"
        s3 = boto3.client("s3", endpoint_url=endpoint,
                          config=Config(s3={"addressing_style": "virtual"}))
        s3.create_bucket(Bucket="virtual-too")
        s3.put_object(Bucket="virtual-too", Key="/x", Body=b"there")
        assert body(s3, "virtual-too", "/x") == b"there"
        assert s3.list_objects_v2(Bucket="virtual-too")["KeyCount"] == 1
    finally:
        socket.getaddrinfo = known
    assert body(client(), "virtual-too", "/x") == b"there"


@case
def nonsense_is_refused(server):
    s3 = bucket("nonsense")
    upload = s3.create_multipart_upload(Bucket="nonsense", Key="k")["UploadId"]
    bombs = [b"", b"x", b"<Delete>", b"<Delete></Other>", b"\xff\xfe", b"<!DOCTYPE Delete [<!ENTITY a 'b'>]><Delete>&a;</Delete>",
             b"<Delete>" * 5000, b"<Delete><Object></Object></Delete>", b"<Delete><Object><Key></Key></Object></Delete>",
             b"<Delete>" + b"<Object/>" * 100_000 + b"</Delete>"]
    for payload in bombs:
        answer = raw(server, "POST", "/nonsense?delete", {}, payload)
        assert answer[0] == 400 and code_of(answer) == "MalformedXML", (payload[:50], answer)
        answer = raw(server, "POST", f"/nonsense/k?uploadId={upload}", {}, payload)
        # Whoever sends nothing has named no part.
        code = "MalformedXML" if payload else "InvalidRequest"
        assert answer[0] == 400 and code_of(answer) == code, (payload[:50], answer)
    for method, path, code in [("POST", "/nonsense", "NotImplemented"), ("PUT", "/", "MethodNotAllowed"),
                               ("PATCH", "/nonsense/k", "MethodNotAllowed"), ("GET", "/nonsense?analytics", "NotImplemented")]:
        assert code_of(raw(server, method, path)) == code, (method, path)
    answer = raw(server, "HEAD", "/nonsense/none")
    assert answer[0] == 404 and answer[2] == b"" and answer[1]["x-amz-request-id"], answer
    answer = raw(server, "GET", "/nonsense/n%3Cne")
    assert b"<Resource>" not in answer[2] and b"<Key>n&lt;ne</Key>" in answer[2], answer


@case
def a_refused_body_does_not_break_the_connection(server):
    s3 = client()
    data = os.urandom(12 * MIB)
    for _ in range(3):
        refused("NoSuchBucket", s3.put_object, 404, Bucket="no-such-bucket", Key="k", Body=data)
    answer = raw(server, "PUT", "/no-such-bucket/k", {}, data)
    assert answer[0] == 404, answer


@case
def memory_does_not_grow_with_objects(server):
    s3 = bucket("memory")
    size = 256 * MIB
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        s3.put_object(Bucket="memory", Key="k", Body=file)
    count = sum(len(piece) for piece in s3.get_object(Bucket="memory", Key="k")["Body"].iter_chunks(MIB))
    assert count == size
    with open(f"/proc/{server.process.pid}/status") as status:
        most = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    assert most < size // 2, f"{most >> 20} MiB"


@case
def what_was_acknowledged_survives_a_crash(server):
    s3 = bucket("crash")
    acknowledged, stop = {}, threading.Event()

    def write(thread):
        own, number = client(), 0
        while not stop.is_set():
            key, data = f"{thread}/{number}", os.urandom(1000 if number % 3 else 3 * MIB)
            try:
                own.put_object(Bucket="crash", Key=key, Body=data)
            except Exception:
                return
            acknowledged[key] = hashlib.md5(data).hexdigest()
            number += 1

    for _ in range(2):
        threads = [threading.Thread(target=write, args=(f"{len(acknowledged)}-{number}",)) for number in range(4)]
        before = len(acknowledged)
        for thread in threads:
            thread.start()
        eventually(lambda: len(acknowledged) >= before + 40, "40 objects", seconds=60)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        stop.clear()
        for key, md5 in list(acknowledged.items()):
            assert hashlib.md5(body(s3, "crash", key)).hexdigest() == md5, key
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket="crash"):
            for entry in page["Contents"]:
                if entry["Key"] not in acknowledged:
                    data = body(s3, "crash", entry["Key"])
                    assert f'"{hashlib.md5(data).hexdigest()}"' == entry["ETag"], "whole or not at all"


def older_addresses(guarded, known):
    """Addresses that boto3 signs in the older way, and what somebody makes of them who has no key."""
    named = {"Bucket": "guarded"}
    for style in ["path", "virtual"]:
        signer = known(version="s3", s3={"addressing_style": style})
        host = f"127.0.0.1:{guarded.port}" if style == "path" else f"guarded.localhost:{guarded.port}"
        prefix = "/guarded" if style == "path" else ""

        def ask(operation, method, body=b"", headers=None, change=lambda path: path, **parameters):
            url = signer.generate_presigned_url(operation, Params={**named, **parameters}, ExpiresIn=60, HttpMethod=method)
            found = re.sub("^https?://[^/]*/guarded", prefix, url)
            found = found if found.startswith("/") else "/" + found
            return raw(guarded, method, change(found), headers, body, host=host)

        key = {"Key": f"older {style}/ä+%"}
        more = {"Metadata": {"A": "b c"}, "ContentType": "text/x", "ACL": "private"}
        typed = {"Content-Type": "text/x"}
        assert ask("put_object", "PUT", b"hello", typed, **key, **more)[0] == 200
        assert code_of(ask("put_object", "PUT", b"x", **key, **more)) == "SignatureDoesNotMatch", "another type"
        assert code_of(ask("put_object", "PUT", b"x", {"x-amz-acl": "public-read"}, **key)) == "SignatureDoesNotMatch"
        status, headers, got = ask("get_object", "GET", **key, ResponseContentDisposition="a; b+c", VersionId="null")
        assert (status, got, headers["content-disposition"]) == (200, b"hello", "a; b+c"), (status, got)
        assert (headers["x-amz-meta-a"], headers["content-type"]) == ("b c", "text/x"), headers
        assert ask("head_object", "HEAD", **key)[0] == 200
        listed = ask("list_objects_v2", "GET", Prefix="older ", Delimiter="/")
        assert listed[0] == 200 and b"<CommonPrefixes>" in listed[2], listed
        assert ask("get_bucket_location", "GET")[0] == ask("head_bucket", "HEAD")[0] == 200
        begun = ask("create_multipart_upload", "POST", **key)
        upload = {**key, "UploadId": re.search(b"<UploadId>(.*)</UploadId>", begun[2])[1].decode()}
        assert ask("upload_part", "PUT", b"part", **upload, PartNumber=1)[0] == 200
        assert b"<PartNumber>1<" in ask("list_parts", "GET", **upload)[2]
        assert ask("abort_multipart_upload", "DELETE", **upload)[0] == 204
        for change, code in [
                (lambda path: path.replace("older%20", "other%20"), "SignatureDoesNotMatch"),
                (lambda path: path + "&acl", "SignatureDoesNotMatch"),
                (lambda path: path + "&x-amz-meta-b=c", "SignatureDoesNotMatch"),
                (lambda path: re.sub("Expires=.", "Expires=9", path), "SignatureDoesNotMatch"),
                (lambda path: re.sub("Expires=.", "Expires=0", path), "AccessDenied"),
                (lambda path: path.replace("AWSAccessKeyId=AKIDADA", "AWSAccessKeyId=AKIDBOB"), "InvalidAccessKeyId"),
                (lambda path: path.replace("Expires=", "Later="), "AccessDenied")]:
            answer = ask("get_object", "GET", change=change, **key)
            assert code_of(answer) == code and answer[0] == 403, (answer, code)
        assert ask("delete_object", "DELETE", **key)[0] == 204
        assert code_of(ask("get_object", "GET", **key)) == "NoSuchKey"


@case
def only_those_with_a_key_are_let_in(server):
    before = os.environ["AWS_ENDPOINT_URL"]
    try:
        with Server('[access_keys]\nAKIDADA = "secret/of+ada"\n', guarded=False) as guarded:
            def known(service="s3", key="AKIDADA", secret="secret/of+ada", **more):
                config = Config(retries={"max_attempts": 0}, signature_version=more.pop("version", None), **more)
                return boto3.client(service, config=config, aws_access_key_id=key, aws_secret_access_key=secret)

            s3 = known()
            s3.create_bucket(Bucket="guarded")
            for key in ["a", "a b", "ä/ö", "+%&=?#", "//", "..", "a\n", "~*'()!", "%2F"]:
                s3.put_object(Bucket="guarded", Key=key, Body=key.encode(), Metadata={"a": "b  c"})
                assert body(s3, "guarded", key) == key.encode(), key
            keys = [entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(
                Bucket="guarded", Delimiter="~", PaginationConfig={"PageSize": 2}) for entry in page.get("Contents", [])]
            assert len(keys) == 8, keys
            s3.upload_fileobj(io.BytesIO(os.urandom(12 * MIB)), "guarded", "parts", Config=TransferConfig(
                multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB))
            s3.copy_object(Bucket="guarded", Key="copy", CopySource={"Bucket": "guarded", "Key": "ä/ö"})
            s3.delete_objects(Bucket="guarded", Delete={"Objects": [{"Key": "a"}]})
            signer = known(version="s3v4")
            url = signer.generate_presigned_url("get_object", Params={"Bucket": "guarded", "Key": "a b"}, ExpiresIn=60)
            assert fetch(url) == (200, b"a b"), url
            assert fetch(url.replace("a%20b", "copy"))[0] == 403
            url = signer.generate_presigned_url("put_object", Params={"Bucket": "guarded", "Key": "put"}, ExpiresIn=60)
            assert fetch(url, "PUT", b"x", {"Content-Type": ""})[0] == 200
            older_addresses(guarded, known)
            refused("SignatureDoesNotMatch", known(secret="other").get_object, 403, Bucket="guarded", Key="put")
            refused("InvalidAccessKeyId", known(key="AKIDBOB").get_object, 403, Bucket="guarded", Key="put")
            assert code_of(raw(guarded, "GET", "/guarded/put")) == "AccessDenied"
            kinesis = known("kinesis")
            kinesis.create_stream(StreamName="guarded", ShardCount=1)
            assert kinesis.list_streams()["StreamNames"] == ["guarded"]
            refused("InvalidSignatureException", known("kinesis", secret="other").list_streams, 400)
            refused("UnrecognizedClientException", known("kinesis", key="AKIDBOB").list_streams, 400)
    finally:
        os.environ["AWS_ENDPOINT_URL"] = before


if __name__ == "__main__":
    run()
