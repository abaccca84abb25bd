"""The command lines of AWS: version 1 comes from the registry of Python and speaks SQS in JSON; version 2 is the one that
Debian packages, which speaks SQS in forms and XML. They are called with words, and answer with what they print.
"""

import base64
import json
import os
import subprocess
import sys

from harness import skipped

CLIENTS = os.environ["ANABRANCH_CLIENTS"]
DEBIAN = os.path.join(CLIENTS, "debian")


class CommandLine:
    """One version of the CLI. A name that it makes carries the version, so that both can use one server."""

    def __init__(self, name, command, path, server):
        self.name, self.server = name, server
        self.command = [sys.executable, *command, "--endpoint-url", server.url, "--region", "us-east-1", "--output", "json",
                        "--no-cli-pager" if name == "v2" else "--no-paginate"]
        self.environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "AWS_MAX_ATTEMPTS": "10",
                            "AWS_RETRY_MODE": "standard"}

    def __call__(self, *words, fails=False):
        done = subprocess.run([*self.command, *words], env=self.environment, capture_output=True, timeout=120)
        out, errors = done.stdout.decode(), done.stderr.decode()
        assert fails == (done.returncode != 0), (words, done.returncode, out, errors)
        if fails:
            return errors
        return json.loads(out) if out.lstrip()[:1] in ("{", "[") else out

    def blob(self, text):
        """Bytes as an argument: version 1 takes them as they are, version 2 in base64. Both print base64."""
        return text if self.name == "v1" else base64.b64encode(text.encode()).decode()

    def named(self, what):
        return f"{what}-{self.name}"


def command_lines(server):
    """Both versions, or the one in COMMAND_LINE; and a word about what is not there."""
    lines = [CommandLine("v1", ["-m", "awscli"], os.path.join(CLIENTS, "python"), server)]
    if os.path.isdir(DEBIAN):
        path = os.pathsep.join(os.path.join(DEBIAN, folder) for folder in ("usr/lib/python3/dist-packages", "needed"))
        lines.append(CommandLine("v2", [os.path.join(DEBIAN, "usr/bin/aws")], path, server))
    else:
        skipped("version 2 of the AWS CLI, which is not installed: it is unpacked from Debian's package with apt-get and dpkg-deb")
    return [aws for aws in lines if os.environ.get("COMMAND_LINE", aws.name) == aws.name]
