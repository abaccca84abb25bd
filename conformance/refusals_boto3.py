"""Who is let in over TLS, and what the others are told: by boto3 to every service, and by its two command lines and ours.

Each service has words of its own for what is wrong with a signature, and clients act on them.
"""

import datetime
import os
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

import boto3
import botocore.auth
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError, SSLError

from command_lines import command_lines
from harness import BINARY, KEY, case, run

# A call of each service that asks for nothing in particular.
CALLS = {
    "kinesis": ("list_streams", {}), "dynamodb": ("list_tables", {}), "dynamodbstreams": ("list_streams", {}),
    "keyspacesstreams": ("list_streams", {}), "firehose": ("list_delivery_streams", {}), "secretsmanager": ("list_secrets", {}),
    "sqs": ("list_queues", {}), "sts": ("get_caller_identity", {}), "s3": ("list_buckets", {}),
    "cloudwatch": ("put_metric_data", {"Namespace": "n", "MetricData": [{"MetricName": "m", "Value": 1}]}),
}
OF_JSON = {"secret": "InvalidSignatureException", "key": "UnrecognizedClientException", "clock": "InvalidSignatureException",
           "nothing": "MissingAuthenticationTokenException", "header": "IncompleteSignatureException"}
# Services that are or were called by forms.
OF_FORMS = {"secret": "SignatureDoesNotMatch", "key": "InvalidClientTokenId", "clock": "SignatureDoesNotMatch",
            "nothing": "MissingAuthenticationToken", "header": "IncompleteSignature"}
OF_S3 = {"secret": "SignatureDoesNotMatch", "key": "InvalidAccessKeyId", "clock": "RequestTimeTooSkewed",
         "nothing": "AccessDenied", "header": "AuthorizationHeaderMalformed"}
CODES = {service: OF_JSON for service in CALLS} | {"sqs": OF_FORMS, "sts": OF_FORMS, "cloudwatch": OF_FORMS, "s3": OF_S3}


def call(service, change=None, **options):
    """Calls a service; true if it let us in, and its code if it did not."""
    config = Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}, **options.pop("config", {}))
    client = boto3.client(service, config=config, **options)
    if change:
        client.meta.events.register("before-send", change)
    operation, arguments = CALLS[service]
    try:
        getattr(client, operation)(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Message"], error
        return error.response["Error"]["Code"]
    return True


@contextmanager
def clock(minutes):
    """The clock of the client is wrong by so much."""
    right = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *words, **more: right(*words, **more) + datetime.timedelta(minutes=minutes)
    try:
        yield
    finally:
        botocore.auth.get_current_datetime = right


def break_header(request, **_):
    request.headers["Authorization"] = request.headers["Authorization"].replace(b"SignedHeaders=", b"Signed=")


@case
def every_service_lets_in_who_has_the_key(server):
    for service in CALLS:
        assert call(service) is True, service
    server.kill()
    for service in CALLS:
        assert call(service, aws_session_token="a token is signed, and says nothing here") is True, service
        for minutes in (-14, 14):
            with clock(minutes):
                assert call(service) is True, (service, minutes)


@case
def every_service_refuses_the_others_in_its_words(_):
    for service, codes in CODES.items():
        assert call(service, aws_secret_access_key="another", aws_access_key_id=KEY) == codes["secret"], service
        assert call(service, aws_access_key_id="AKIDSTRANGER", aws_secret_access_key="x") == codes["key"], service
        for minutes in (-20, 20):
            with clock(minutes):
                assert call(service) == codes["clock"], (service, minutes)
        assert call(service, config={"signature_version": UNSIGNED}) == codes["nothing"], service
        assert call(service, break_header) == codes["header"], service


@case
def a_server_that_is_not_known_is_not_talked_to(_):
    for service in ("kinesis", "s3"):
        try:
            call(service, verify=True)
        except SSLError:
            continue
        raise AssertionError(f"{service}: nobody has vouched for it")


@case
def addresses_are_signed_for_one_thing_and_a_time(_):
    def fetch(url, method="GET", data=None):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method, data=data), timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def sign(operation="get_object", key="a b", **options):
        client = boto3.client("s3", config=Config(signature_version="s3v4", s3={"addressing_style": "path"}), **options)
        return client.generate_presigned_url(operation, Params={"Bucket": "addresses", "Key": key}, ExpiresIn=60)

    boto3.client("s3").create_bucket(Bucket="addresses")
    assert fetch(sign("put_object"), "PUT", b"hello")[0] == 200
    assert fetch(sign()) == (200, b"hello")
    assert fetch(sign(aws_session_token="a token")) == (200, b"hello")
    with clock(-10):
        expired = sign()
    with clock(20):
        early = sign()
    for url, status, code in [
            (sign().replace("a%20b", "other"), 403, b"SignatureDoesNotMatch"),
            (sign() + "&versionId=null", 403, b"SignatureDoesNotMatch"),
            (sign(aws_access_key_id=KEY, aws_secret_access_key="another"), 403, b"SignatureDoesNotMatch"),
            (sign(aws_access_key_id="AKIDSTRANGER", aws_secret_access_key="x"), 403, b"InvalidAccessKeyId"),
            (expired, 403, b"AccessDenied"), (early, 403, b"RequestTimeTooSkewed")]:
        found, text = fetch(url)
        assert found == status and b"<Code>" + code + b"</Code>" in text, (url, found, text)
    assert fetch(sign(), "PUT", b"x")[0] == 403, "it is signed for reading"


@case
def command_lines_are_told_the_same(server):
    for aws in command_lines(server):
        aws("sts", "get-caller-identity")
        for stranger, codes in [
                ({"AWS_SECRET_ACCESS_KEY": "another"}, ("InvalidSignatureException", "SignatureDoesNotMatch")),
                ({"AWS_ACCESS_KEY_ID": "AKIDSTRANGER"}, ("UnrecognizedClientException", "InvalidAccessKeyId"))]:
            aws.environment.update(stranger)
            for code, *words in [(codes[0], "kinesis", "list-streams"), (codes[1], "s3", "ls")]:
                said = aws(*words, fails=True)
                assert code in said, (aws.name, said)


@case
def our_command_line_signs_and_trusts_as_the_others_do(server):
    def ran(*words, **more):
        command = [BINARY, *words, "--engine", "aws", "--endpoint", server.url, "--region", "us-east-1"]
        return subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=60)

    boto3.client("kinesis").create_stream(StreamName="ours", ShardCount=1)
    boto3.client("kinesis").get_waiter("stream_exists").wait(StreamName="ours", WaiterConfig={"Delay": 1})
    there = ran("stream", "ls")
    assert there.returncode == 0 and "ours" in there.stdout, there
    # Records come by push as well, over HTTP/2.
    boto3.client("kinesis").put_record(StreamName="ours", Data=b"hello", PartitionKey="k")
    followed = ran("stream", "tail", "ours", "--from", "trim-horizon", "--limit", "1")
    assert followed.returncode == 0 and "hello" in followed.stdout, followed
    refused = ran("stream", "ls", AWS_SECRET_ACCESS_KEY="another")
    assert refused.returncode != 0 and "signature" in refused.stderr.lower(), refused


run(guarded=True)
