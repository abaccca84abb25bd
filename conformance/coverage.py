"""Asks a server for every operation that botocore knows of the services we speak, and writes down which it has.

An operation counts if the answer is anything but the service's error for an operation that it does not know. The result is
`docs/wire-coverage.md`; without `--write` it must be what is there already.
"""

import os
import re
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from harness import Server

SERVICES = ["kinesis", "sqs", "dynamodb", "dynamodbstreams", "keyspacesstreams", "firehose", "s3", "secretsmanager", "sts",
            "cloudwatch"]
UNKNOWN = {"UnknownOperationException", "UnknownOperation", "InvalidAction", "NotImplemented", "MissingAction"}
# Nothing in its request tells it from ListBuckets, which is what is answered. There are no such buckets.
ALIKE = {"ListDirectoryBuckets"}
# What no call can tell: that something is kept, and not more.
NOTES = """
## What is kept and has no effect

Some settings make sense in the service only. They are kept, and described to whoever asks for them:

* **Keys of encryption** (StartStreamEncryption, the `SSESpecification` of a table, `KmsMasterKeyId` of a queue). Records,
  items and messages say that they are encrypted with the key; what lies on the disk is not, and is as safe as the disk. S3 and
  Firehose refuse such keys.
* **Policies** of streams and queues. Whoever has an access key may do everything. Tables refuse them.
* **Throughput** that is ordered, limited or kept ready for a table, an index or a stream. Limits of shards are switched on for the
  whole server (`shard_limits`).
* **Roles** of delivery streams, and the **classes of storage** of tables.

What EnableEnhancedMonitoring switches on is counted: `/metrics` has it as `anabranch_kinesis_shard_*`, with the labels `stream` and
`shard`. DeleteDeliveryStream delivers what waits before it deletes; if that fails, it is refused, unless
`AllowForceDelete` gives up what waits."""
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "wire-coverage.md")


def dummy(shape, name=""):
    """A value for a member that must be there, so that a request can be sent at all."""
    kind = shape.type_name
    if kind == "structure":
        return {member: dummy(shape.members[member], member) for member in shape.required_members}
    if kind in ("list", "map"):
        return [] if kind == "list" else {}
    if kind in ("integer", "long", "float", "double"):
        return 1
    if kind == "boolean":
        return True
    if kind == "blob":
        return b""
    if kind == "timestamp":
        return 0
    return "coverage-bucket" if name == "Bucket" else "x"


def has(client, operation):
    """Whether the server has an operation."""
    model = client.meta.service_model.operation_model(operation)
    arguments = dummy(model.input_shape) if model.input_shape else {}
    method = next(name for name, other in client.meta.method_to_api_mapping.items() if other == operation)
    try:
        getattr(client, method)(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"] not in UNKNOWN
    except BotoCoreError as error:
        raise AssertionError(f"{operation} cannot be asked for: {error}") from error
    return True


def survey():
    lines = ["# Which operations are there", "",
             "Made by `conformance/coverage.py`, which asks a server for every operation that botocore knows. What is not there is",
             "answered with the service's own error for an operation that it does not know.", "",
             "| service | there | of |", "|---|---|---|"]
    details = []
    # Some operations would put a name before the address, which leads nowhere here.
    config = Config(retries={"max_attempts": 0}, parameter_validation=False, inject_host_prefix=False,
                    s3={"addressing_style": "path"},
                    read_timeout=10)
    for service in SERVICES:
        client = boto3.client(service, config=config)
        names = client.meta.service_model.operation_names
        there = [name for name in names if name not in ALIKE and has(client, name)]
        lines.append(f"| {service} | {len(there)} | {len(names)} |")
        missing = [name for name in names if name not in there]
        details += ["", f"## {service}", "", "There: " + (", ".join(there) or "nothing") + ".", ""]
        details += ["Not there: " + (", ".join(missing) or "nothing") + "."]
    return "\n".join(lines + NOTES.split("\n") + details) + "\n"


def main():
    with Server():
        found = survey()
    if "--write" in sys.argv:
        with open(PATH, "w") as file:
            file.write(found)
        return
    with open(PATH) as file:
        written = file.read()
    if written != found:
        print("docs/wire-coverage.md is not what the server has: run conformance/coverage.py --write", file=sys.stderr)
        sys.exit(1)
    print("coverage.py: " + re.sub(r"\s+", " ", "; ".join(re.findall(r"^\| (\w+ \| \d+ \| \d+)", found, re.M))))


if __name__ == "__main__":
    main()
