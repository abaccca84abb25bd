"""What the KCL runs for each shard: a program that gets records as lines of JSON and answers in kind.

It writes what it gets to the file in KCL_SEEN, before it answers. All programs of all workers share the file, so the order
of its lines is the order in which things were seen.
"""

import base64
import json
import os
import sys

seen = os.open(os.environ["KCL_SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
shard = None


def note(what, **more):
    line = {"what": what, "worker": os.environ["KCL_WORKER"], "shard": shard, **more}
    os.write(seen, (json.dumps(line) + "\n").encode())


def say(**message):
    sys.stdout.write("\n" + json.dumps(message) + "\n")
    sys.stdout.flush()


def checkpoint(sequence=None, part=None):
    """Asks for a checkpoint; the answer is the next line."""
    say(action="checkpoint", sequenceNumber=sequence, subSequenceNumber=part)
    answer = json.loads(sys.stdin.readline())
    note("checkpoint", sequence=sequence, error=answer.get("error"))


for line in sys.stdin:
    message = json.loads(line)
    action = message["action"]
    if action == "initialize":
        shard = message["shardId"]
        note(action, sequence=message["sequenceNumber"])
    elif action == "processRecords":
        records = message["records"]
        for record in records:
            note("record", key=record["partitionKey"], sequence=record["sequenceNumber"],
                 data=base64.b64decode(record["data"]).decode())
        if records:
            checkpoint(records[-1]["sequenceNumber"], records[-1].get("subSequenceNumber"))
    else:
        note(action)
        # The end of a shard and an orderly stop are answered with a checkpoint behind the last record.
        if action in ("shardEnded", "shutdownRequested"):
            checkpoint()
    say(action="status", responseFor=action)
