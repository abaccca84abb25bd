"""What the KCL for Java runs for each shard in `bench/kcl`: it counts records, says so every second, and checkpoints."""

import json
import os
import sys
import time

log = os.open(os.environ["KCL_COUNTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
checkpointed = time.monotonic()


def say(**message):
    sys.stdout.write("\n" + json.dumps(message) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    action = message["action"]
    if action == "processRecords" and message["records"]:
        os.write(log, f"{len(message['records'])}\n".encode())
    # As often as a worker of ours, and where the protocol wants it.
    due = time.monotonic() - checkpointed > 10 and action == "processRecords"
    if due or action in ("shardEnded", "shutdownRequested"):
        checkpointed = time.monotonic()
        say(action="checkpoint", sequenceNumber=None, subSequenceNumber=None)
        sys.stdin.readline()
    say(action="status", responseFor=action)
