"""Version 3 of the AWS SDK for JavaScript: a script for each service, which has the server killed in the middle."""

from harness import GUARDED, case, node, offers_firehose, run


@case
def kinesis(server):
    node(server, "kinesis_js.mjs")


@case
def s3(server):
    node(server, "s3_js.mjs")


@case
def sqs(server):
    node(server, "sqs_js.mjs")


@case
def dynamodb(server):
    node(server, "dynamodb_js.mjs")


@case
def around(server):
    node(server, "around_js.mjs")


@case
def firehose(server):
    if offers_firehose():
        node(server, "firehose_js.mjs")


if GUARDED:
    @case
    def refusals(server):
        node(server, "guarded_js.mjs")


run()
