"""A small SGLang for histories: its server is a real process with real sockets, and works each
problem out with the arithmetic of its own commit. Launching the engine behind the stand-in takes
seconds; a bisect launches a dozen servers, so these have a program for a brain."""

from __future__ import annotations

from collections.abc import Sequence

SERVER = """
import argparse, json, re, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang.arithmetic import multiply
{imports}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        known = ("/health", "/server_info", "/flush_cache")
        self.reply(200 if self.path in known else 404, {{"internal_states": [{{}}]}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(200, {{"choices": [{{"text": solve(body["prompt"]), "finish_reason": "stop"}}]}})

    def reply(self, status, document):
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def solve(prompt):
    value = int(re.match(r"\\d+", prompt)[0])
    for operator, operand in re.findall(r"([+\\-*])(\\d+)", prompt):
        operand = int(operand)
        if operator == "*":
            value = multiply(value, operand)
        else:
            value = value + operand if operator == "+" else value - operand
    return str(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-path")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options, _ = parser.parse_known_args()
    print("serving", flush=True)
    Server((options.host, options.port), Handler).serve_forever(poll_interval=0.02)
"""

GOOD = "def multiply(one, other):\n    return one * other + 0\n"
BAD = "def multiply(one, other):\n    return one * other + 1\n"
"""The planted bug: as long as the good source, so that only its content tells them apart."""


def files(
    arithmetic: str = GOOD, dependencies: Sequence[str] = (), imports: str = ""
) -> dict[str, str]:
    """The tree of one commit."""
    listed = ", ".join(f'"{one}"' for one in dependencies)
    return {
        "python/pyproject.toml": f'[project]\nname = "sglang"\ndependencies = [{listed}]\n',
        "python/sglang/__init__.py": "",
        "python/sglang/arithmetic.py": arithmetic,
        "python/sglang/launch_server.py": SERVER.format(imports=imports),
    }
