"""A headless Chromium, through chromedriver: pages as pictures, and what is wrong with them.

Protocol: WebDriver (W3C), and Chrome DevTools for what it lacks: colour schemes, sizes of phones, whole pages.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

CONTRAST = 4.5
"""The least of text, WCAG 2.2 level AA."""
FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]
CHROME = {"browserName": "chrome", "goog:chromeOptions": {"args": FLAGS}, "goog:loggingPrefs": {"browser": "ALL"}}
LOOK = Path(__file__).with_name("look.js").read_text()


class Browser:
    """One window. Whoever makes it closes it."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = ["chromedriver", f"--port={self._port}", "--log-level=SEVERE"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._session = ""
        try:
            self._listening()
            self._session = "/session/" + self._ask("/session", {"capabilities": {"alwaysMatch": CHROME}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def _listening(self) -> None:
        end = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self._port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.1)
        raise SystemExit("chromedriver does not start")

    def _ask(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            connection.request(method, self._session + path, json.dumps(body), {"Content-Type": "application/json"})
            value = json.load(connection.getresponse())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise SystemExit(f"the browser: {value['message']}")
        return value

    def _devtools(self, command: str, **parameters: Any) -> Any:
        return self._ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url: str, width: int, height: int, *, dark: bool = False, scale: int = 1) -> None:
        """Shows a page in a window of that size; a narrow one is a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
        self._devtools("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._devtools("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page."""
        return self._ask("/execute/sync", {"script": script, "args": list(arguments)})

    def missing(self, words: Iterable[str]) -> list[str]:
        """Which of the words cannot be read on the page within a minute: figures change, and words with them."""
        end = time.monotonic() + 60
        while True:
            text = str(self.run("return document.body.innerText"))
            missing = [word for word in words if word not in text]
            if not missing or time.monotonic() > end:
                return missing
            time.sleep(0.1)

    def wrong(self, width: int, height: int) -> list[str]:
        """What is wrong with it, as far as a machine can tell."""
        logged = [
            entry["message"]
            for entry in self._ask("/se/log", {"type": "browser"})
            if entry["level"] in ("SEVERE", "WARNING")
        ]
        return [*self.run(LOOK, width, height, CONTRAST), *logged]

    def picture(self, file: Path) -> None:
        """The whole page as a PNG of 128 colours, below the fold too."""
        shot = self._devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        whole = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
        whole.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)

    def close(self) -> None:
        """Ends the browser."""
        try:
            if self._session:
                self._ask("", {}, "DELETE")
        finally:
            self._process.terminate()
            self._process.wait(60)
