"""A scaler that says what a test has it say, where scale.sh asks."""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

from enginetest.processes import await_that

# It is called as `feedwater scaler` is, with `--http unix:PATH` at the end. Who asks there asks the test.
PROGRAM = """#!/usr/bin/env bash
for word; do :; done
echo "$*" >"{folder}/scaler.call"
echo $$ >"{folder}/scaler.pid"
ln -s "{folder}/scaler.socket" "${{word#unix:}}"
exec sleep 1000
"""


class Server(ThreadingMixIn, UnixStreamServer):
    """Answers each request in a thread of its own."""

    daemon_threads = True


class PlayedScaler:
    """The program, and who answers in its place."""

    def __init__(self, folder: Path):
        self.folder, self.answer = folder, (200, '{"wanted":0}')
        self.program = folder / "scaler"
        self.program.write_text(PROGRAM.format(folder=folder))
        self.program.chmod(0o755)
        played = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, text = played.answer
                self.send_response(code)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = Server(str(folder / "scaler.socket"), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def want(self, n: int) -> None:
        """From now on it wants so many nodes."""
        self.answer = (200, json.dumps({"wanted": n}, separators=(",", ":")) + "\n")

    @property
    def pid(self) -> int:
        """The number of its process, which has to be there soon."""
        file = self.folder / "scaler.pid"
        return int(await_that("the scaler is started", lambda: file.exists() and file.read_text().strip(), 20.0))

    @property
    def asked_in(self) -> Path:
        """The folder of the socket by which scale.sh asks."""
        assert self.pid
        return Path((self.folder / "scaler.call").read_text().split("--http unix:")[1].strip()).parent

    def end(self) -> None:
        """Its process ends."""
        os.kill(self.pid, signal.SIGKILL)

    def fall_silent(self) -> None:
        """Its process goes on, and answers nobody."""
        self._server.shutdown()
        self._server.server_close()
