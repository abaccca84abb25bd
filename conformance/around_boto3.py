"""The calls that clients make around the others, by boto3: STS, CloudWatch and Secrets Manager, through a crash."""

import os
import time
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import case, run, through_crashes


def client(service, **options):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}, **options))


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        return
    raise AssertionError(f"{code} was expected of {arguments}")


def metrics(server):
    with open(os.path.join(server.folder.name, "data", "LOCK")) as lock:
        monitor = next(line.split()[1] for line in lock if line.startswith("monitor "))
    with urllib.request.urlopen(f"http://{monitor}/metrics") as answer:
        return answer.read().decode().splitlines()


@case
def who_calls(_):
    identity = client("sts").get_caller_identity()
    assert identity["Account"] == "000000000000" and identity["Arn"].startswith("arn:aws:iam::")


@case
def figures(server):
    data = [{"MetricName": "Latency", "Value": 2.5, "Unit": "Seconds", "Timestamp": time.time(),
             "Dimensions": [{"Name": "Host", "Value": "a"}]},
            {"MetricName": "Latency", "Values": [1.0, 2.0], "Counts": [1.0, 3.0], "Unit": "Seconds",
             "Dimensions": [{"Name": "Host", "Value": "a"}]}]
    client("cloudwatch").put_metric_data(Namespace="App", MetricData=data)
    # Large bodies come compressed.
    many = [{"MetricName": f"m{number % 10}", "Value": 1, "Unit": "Count"} for number in range(1000)]
    client("cloudwatch", request_min_compression_size_bytes=1).put_metric_data(Namespace="Many", MetricData=many)
    shown = metrics(server)
    latency = [line for line in shown if 'metric="Latency"' in line and 'dimensions="Host=a"' in line]
    values = {line.split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in latency}
    assert values == {"anabranch_cloudwatch_values_total": 5, "anabranch_cloudwatch_sum": 9.5,
                      "anabranch_cloudwatch_last": 2.0}, values
    assert any('namespace="Many"' in line and line.endswith(" 100") for line in shown)
    refused("InvalidParameterValue", client("cloudwatch").put_metric_data, Namespace="App",
            MetricData=[{"MetricName": "m", "Value": 1, "Timestamp": 1}])


@case
def secrets(server):
    secrets = client("secretsmanager")
    arn = secrets.create_secret(Name="app/db", SecretString="one")["ARN"]
    refused("ResourceExistsException", secrets.create_secret, Name="app/db", SecretString="two")
    secrets.put_secret_value(SecretId=arn, SecretBinary=b"\0\xff")
    server.kill()
    assert secrets.get_secret_value(SecretId="app/db")["SecretBinary"] == b"\0\xff"
    assert secrets.get_secret_value(SecretId=arn, VersionStage="AWSPREVIOUS")["SecretString"] == "one"
    assert len(secrets.describe_secret(SecretId=arn)["VersionIdsToStages"]) == 2
    names = [secret["Name"] for page in secrets.get_paginator("list_secrets").paginate() for secret in page["SecretList"]]
    assert names == ["app/db"]
    secrets.delete_secret(SecretId=arn)
    refused("InvalidRequestException", secrets.get_secret_value, SecretId=arn)
    secrets.restore_secret(SecretId=arn)
    secrets.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)
    refused("ResourceNotFoundException", secrets.get_secret_value, SecretId=arn)


@case
def crashes_during_calls_lose_no_secret(server):
    secrets = client("secretsmanager")
    acknowledged, unknown = through_crashes(
        server, lambda number: secrets.create_secret(Name=f"shaken/{number}", SecretString=str(number)))
    pages = secrets.get_paginator("list_secrets").paginate()
    found = {int(secret["Name"].split("/")[1]) for page in pages for secret in page["SecretList"]}
    assert set(acknowledged) <= found <= set(acknowledged) | set(unknown)
    assert all(secrets.get_secret_value(SecretId=f"shaken/{number}")["SecretString"] == str(number) for number in found)


run()
