"""The Kinesis Client Library for Java on a server that speaks TLS and asks who calls: with fan-out, which is HTTP/2, and through
a crash. A worker of ours takes a shard from it, and signs and trusts as it does. Runs with ANABRANCH_GUARDED.
"""

import time

from harness import GUARDED, case, eventually, run
from kcl_fleet import Application


@case
def java_and_ours_over_tls(server):
    assert GUARDED, "this suite is about a server that asks who calls"
    application = Application(server, "FANOUT", "kcl-guarded")
    try:
        application.work("w1")
        application.wait_for_shards(0, 1)
        application.work_of_ours("w2")
        application.wait("records of the second worker", lambda: application.seen("record", worker="w2"))
        application.wait("an end of handovers", lambda: not any(
            "checkpointOwner" in lease for lease in application.leases().values()))
        server.kill()
        behind = application.writer.acknowledged
        eventually(lambda: application.writer.acknowledged > behind + 20, "more records")
        application.finish()
        time.sleep(1)
        assert application.stop(), "a worker was ended"
        application.check_records()
    finally:
        application.writer.ended.set()
        application.stop(grace=5)


run()
