"""A stand-in for SGLang's server: real process, real sockets, OpenAI-compatible completions.

    python server.py --port 30000 --brain engine --pools original

serves the miniature engine; `--brain light` a program that works the problems out, which starts
without torch. `--fault` says what goes wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[3])]

import faults  # noqa: E402
from arithmetic_program import solve  # noqa: E402


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Handler)
        self.options = options
        self.started = time.monotonic()
        self.engine = None
        self.answered = 0
        self.flushes = 0
        self.refused: set[str] = set()
        self.lock = threading.Lock()
        if options.brain == "engine":
            threading.Thread(target=self.load, daemon=True).start()

    def load(self) -> None:
        from served_engine import ServedEngine

        self.engine = ServedEngine(self.options.pools)
        faults.say("The server is fired up and ready to roll!")

    @property
    def healthy(self) -> bool:
        if self.options.fault in ("unhealthy", "silent", "parent-waits"):
            return False
        if time.monotonic() - self.started < self.options.delay:
            return False
        return self.options.brain == "light" or self.engine is not None

    def complete(self, prompt: str, max_tokens: int) -> tuple[str, int, str]:
        fault = self.options.fault
        with self.lock:
            self.answered += 1
            late = self.answered > faults.AFTER
        if late:
            faults.in_mid_run(fault)
        if fault == "nan":
            faults.say("[TP0] Detected errors during sampling! NaN in the logits.")
            return "!!!!!!!!", 8, "length"
        if self.engine is not None:
            one = self.engine.complete(prompt, max_tokens)
            return one.text, one.tokens, one.finish
        text = solve(prompt)
        # Each flush is a round: later ones get more answers wrong, always the same ones.
        if fault == "drift" and sum(prompt.encode()) % 4 < self.flushes - 1:
            text += "1"
        return text, len(text), "stop"

    def refuses(self, prompt: str) -> bool:
        """Whether this is one of the questions that are never answered."""
        if self.options.fault not in ("errors", "drop"):
            return False
        with self.lock:
            if len(self.refused) < faults.LOST:
                self.refused.add(prompt)
            return prompt in self.refused


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path:
            case "/health" | "/health_generate":
                self.reply(200 if self.server.healthy else 503, {})
            case "/v1/models":
                self.reply(200, {"data": [{"id": "stand-in"}]})
            case "/server_info" if not self.server.options.old:
                self.reply(200, self.info())
            case "/get_server_info":
                self.reply(200, self.info())
            case "/flush_cache":
                self.server.flushes += 1
                self.reply(200, {})
            case "/get_model_info":
                self.reply(200, {"model_path": "stand-in"})
            case _:
                self.reply(404, {"error": "no such endpoint"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/completions":
            self.reply(404, {"error": "no such endpoint"})
            return
        if self.server.refuses(body["prompt"]):
            if self.server.options.fault == "drop":
                self.close_connection = True
                self.connection.close()
                return
            self.reply(500, {"error": "internal"})
            return
        text, tokens, finish = self.server.complete(body["prompt"], body["max_tokens"])
        choice = {"index": 0, "text": text, "finish_reason": finish}
        self.reply(200, {"choices": [choice], "usage": {"completion_tokens": tokens}})

    def info(self) -> dict:
        engine = self.server.engine
        state = {}
        if engine is not None and engine.accept_length is not None:
            state["avg_spec_accept_length"] = engine.accept_length
        elif self.server.options.accept_length is not None:
            state["avg_spec_accept_length"] = self.server.options.accept_length
        return {"internal_states": [state, state], "version": "0.0.stand-in"}

    def reply(self, status: int, document: dict) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model-path")
    parser.add_argument("--brain", choices=["light", "engine"], default="light")
    parser.add_argument("--pools", default="corrected")
    parser.add_argument("--fault", default="")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--accept-length", type=float)
    parser.add_argument("--old", action="store_true", help="the endpoints of older releases")
    parser.add_argument("--max-running-requests", type=int)
    parser.add_argument("--context-length", type=int)
    options = parser.parse_args()
    if not options.fault.startswith(("leak", "hold-port")):
        faults.at_start(options.fault)
    server = Server(options)
    if options.fault != "silent":
        faults.say(f"Uvicorn running on http://{options.host}:{options.port}")
    if options.fault.startswith(("leak", "hold-port")):
        faults.at_start(options.fault, server.fileno())
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
