"""What the suites share: a server of ours in a folder of its own, and a list of cases."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import contextmanager
from functools import cache

BINARY = os.environ.get("ANABRANCH", "anabranch")

os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("AWS_REGION", "us-east-1")
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
os.environ.setdefault("AWS_CONFIG_FILE", os.devnull)
os.environ.setdefault("AWS_SHARED_CREDENTIALS_FILE", os.devnull)

# With it the server speaks TLS and lets in only those who sign with a key that it knows.
GUARDED = bool(os.environ.get("ANABRANCH_GUARDED"))
# What a secret may hold that has a meaning elsewhere.
KEY, SECRET = "AKIDCONFORMANCE", "secret/of+the=suites"
# Where clients are told of a root that they shall trust: those of AWS in Python, Node.js, and OpenSSL for all else.
TRUST = ["AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]


class Server:
    """A server on one port for as long as the suite runs, however often it is killed. What the clients have to know of it
    is in the environment."""

    def __init__(self, config=None, guarded=GUARDED, folder=None):
        self.folder = tempfile.TemporaryDirectory(dir=folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"{'https' if guarded else 'http'}://127.0.0.1:{self.port}"
        os.environ["AWS_ENDPOINT_URL"] = self.url
        self.process = None
        self.options = []
        if guarded:
            # The server makes it when it starts, and keeps it.
            self.root = os.path.join(self.folder.name, "data", "tls", "root.pem")
            os.environ.update({name: self.root for name in TRUST}, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
            config = (config or "") + f'[access_keys]\n{KEY} = "{SECRET}"\n'
            self.options = ["--tls"]
        if config:
            path = os.path.join(self.folder.name, "config.toml")
            with open(path, "w") as file:
                file.write(config)
            self.options += ["--config", path]

    def start(self):
        log = open(os.path.join(self.folder.name, "log"), "ab")
        self.process = subprocess.Popen(
            [BINARY, "up", "--data", os.path.join(self.folder.name, "data"),
             "--listen", f"127.0.0.1:{self.port}", "--monitor", "127.0.0.1:0", *self.options],
            stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if "is ready" not in line:
            raise RuntimeError(f"the server did not get ready: {line!r}")
        return self

    def kill(self, away=0):
        """Ends the server as a crash would, and starts it again after so many seconds."""
        self.process.kill()
        self.process.wait()
        time.sleep(away)
        self.start()

    @contextmanager
    def dying(self, every=0.4):
        """Kills the server again and again for as long as the body runs; at the end it is there."""
        enough = threading.Event()

        def kill():
            while not enough.wait(every):
                self.kill()

        killing = threading.Thread(target=kill)
        killing.start()
        try:
            yield
        finally:
            enough.set()
            killing.join()

    def memory(self, figure):
        """A figure of the memory of the server, in KiB, as Linux tells it."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(figure + ":"))

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.folder.cleanup()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


CASES = []


def case(function):
    """Marks a function as a case; it gets the server."""
    CASES.append(function)
    return function


class Skipped(Exception):
    """A case had nothing to try on this machine."""


@cache
def skipped(what):
    """Says what could not be tried on this machine: at once, and to whoever runs the suites, who says so at the end."""
    print(f"skipped: {what}", file=sys.stderr)
    if notes := os.environ.get("ANABRANCH_SKIPPED"):
        with open(notes, "a") as file:
            file.write(f"skipped: {what}\n")


def eventually(check, what, seconds=20):
    """Waits until `check` returns something true, and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"it did not come to pass: {what}")


def through_crashes(server, call, seconds=3):
    """Calls `call(number)` with one number after the other, while the server dies and comes back.

    It returns the numbers that were acknowledged, and those of which nobody knows: the connection broke before the answer.
    """
    # The suites for JavaScript and Java do without.
    from botocore.exceptions import ConnectionError, HTTPClientError

    acknowledged, unknown, number = [], [], 0
    end = time.monotonic() + seconds
    with server.dying():
        while time.monotonic() < end or not (acknowledged and unknown):
            try:
                call(number)
                acknowledged.append(number)
            except (ConnectionError, HTTPClientError):
                unknown.append(number)
                time.sleep(0.02)
            number += 1
    return acknowledged, unknown


def offers_firehose():
    """Whether the server has Firehose. The list of operations in the documentation, which is checked, says so too."""
    import boto3
    from botocore.exceptions import ClientError

    try:
        return boto3.client("firehose").list_delivery_streams() is not None
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnknownOperationException":
            raise
        skipped("Firehose, which the server does not have")
        return False


def node(server, script, seconds=120):
    """Runs a script of ours with Node.js. A line `crash MS` on its output ends the server after that time, and is answered:
    without a time when the server is back, with one at once."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
    child = subprocess.Popen(["node", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = threading.Timer(seconds, child.kill)
    ended.start()
    errors, killing, said = [], [], []
    reading = threading.Thread(target=lambda: errors.append(child.stderr.read()))
    reading.start()
    for line in child.stdout:
        if not line.startswith("crash "):
            said.append(line)
            continue
        pause = int(line.split()[1])
        if pause:
            killing.append(threading.Timer(pause / 1000, server.kill))
            killing[-1].start()
        else:
            server.kill()
        child.stdin.write("\n")
        child.stdin.flush()
    ended.cancel()
    for timer in killing:
        timer.join()
    reading.join()
    assert child.wait() == 0, "".join([*said, *errors])


def run(guarded=GUARDED):
    """Runs all cases, or those whose names contain an argument."""
    wanted = [function for function in CASES
              if not sys.argv[1:] or any(name in function.__name__ for name in sys.argv[1:])]
    failed = without = 0
    if "botocore" in sys.modules:
        # The suites for JavaScript and Java do without.
        import shapes

        shapes.watch()
    with Server(guarded=guarded) as server:
        for function in wanted:
            try:
                function(server)
            except Skipped:
                without += 1
            except Exception:
                failed += 1
                print(f"failed: {function.__name__}", file=sys.stderr)
                traceback.print_exc()
    suite = os.path.basename(sys.argv[0])
    said = f"{len(wanted) - failed - without} passed, {failed} failed" + (f", {without} skipped" if without else "")
    print(f"{suite}{', guarded' if GUARDED else ''}: {said}")
    sys.exit(1 if failed else 0)
