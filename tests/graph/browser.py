"""A headless Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BINARY = next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page in one browser."""

    def __init__(self, width: int = 1280, height: int = 860) -> None:
        assert BINARY is not None
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        their_read, self.write_end = os.pipe()
        self.read_end, their_write = os.pipe()
        # The protocol's pipes are the descriptors 3 and 4 of the browser.
        command = (
            f'exec "$0" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run '
            f"--remote-debugging-pipe --window-size={width},{height} "
            f'--user-data-dir="$1" 3<&{their_read} 4>&{their_write}'
        )
        self.process = subprocess.Popen(
            ["bash", "-c", command, BINARY, self.profile.name],
            pass_fds=(their_read, their_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_read)
        os.close(their_write)
        self.number = 0
        self.waiting = b""
        self.events: list[dict] = []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def close(self) -> None:
        self.session = None
        try:
            self.call("Browser.close")
        except EOFError:
            pass
        self.process.wait(timeout=30)
        os.close(self.write_end)
        os.close(self.read_end)
        self.profile.cleanup()

    def _read(self) -> dict:
        while b"\0" not in self.waiting:
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.waiting += more
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **params) -> dict:
        self.number += 1
        message: dict = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def run(self, script: str):
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        mouse = "Input.dispatchMouseEvent"
        self.call(mouse, type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for part in (0.3, 1.0):
            at = {"x": x + dx * part, "y": y + dy * part}
            self.call(mouse, type="mouseMoved", button="left", buttons=1, **at)
        self.call(mouse, type="mouseReleased", x=x + dx, y=y + dy, button="left", clickCount=1)

    def wheel(self, x: float, y: float, by: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def key(self, key: str, text: str = "") -> None:
        code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)
        named = {"key": key, "code": key if code else "", "windowsVirtualKeyCode": code}
        if text or key == "Enter":
            named["text"] = text or "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def pixels(self, points: list[tuple[float, float]]) -> list[list[int]]:
        """The colours, red, green and blue, at points of what the page looks like now."""
        picture = base64.b64encode(self.screenshot()).decode()
        return self.run(
            f"""(async () => {{
            const image = new Image();
            image.src = "data:image/png;base64,{picture}";
            await image.decode();
            const canvas = document.createElement("canvas");
            canvas.width = image.width;
            canvas.height = image.height;
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            return {json.dumps(points)}.map(
                ([x, y]) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3));
        }})()"""
        )

    def problems(self) -> list[str]:
        """Exceptions, logged errors and requests that the page has made since it was opened."""
        self.run("0")  # what happened before is here now
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url.startswith("data:"):  # a picture of ours
                    continue
                if not url.startswith("file:") or params["type"] != "Document":
                    found.append(f"request of {url}")
        return found
