"""Opens a page in headless Chromium and reports on it, over the DevTools protocol through pipes. A file is shown offline.

    chromium.py FILE PICTURE.png WIDTH HEIGHT
"""
import atexit
import base64
import functools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WHY_NOT = "no chromium is installed; `apt-get install chromium`"
_DEADLINE = 60.0
# Of Chromium 156, the pages of its own address bar, which load beside the first page: a second of a processor.
_WITHOUT = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup"


class _Browser:
    """A headless Chromium, which takes ten times as long to start as a page to open."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[dict]] = {}  # the events of each page
        self._answers: dict[int, dict] = {}
        self._sent = 0
        self._buffer = b""
        self._profile = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        high = [os.dup(commands), os.dup(answers)]

        def place() -> None:
            moved = [os.dup(descriptor) for descriptor in high]
            os.dup2(moved[0], 3)
            os.dup2(moved[1], 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             _WITHOUT, f"--user-data-dir={self._profile}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place,
            close_fds=False, start_new_session=True, env={**os.environ, "HOME": str(self._profile)},
        )  # fmt: skip
        for descriptor in (commands, answers, *high):
            os.close(descriptor)
        atexit.register(self._close)

    def _close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str = "", **parameters) -> dict:
        self._sent += 1
        command = {"id": self._sent, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        number = self._sent
        self.wait(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, done) -> None:
        end = time.monotonic() + _DEADLINE
        while not done():
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("chromium ended" if ready else "chromium does not answer")
            *whole, self._buffer = (self._buffer + data).split(b"\0")
            for message in map(json.loads, whole):
                if "id" in message:
                    self._answers[message["id"]] = message
                elif message.get("sessionId") in self.sessions:
                    self.sessions[message["sessionId"]].append(message)


_browser = functools.cache(_Browser)


class Page:
    """A window with a size in CSS pixels, with cookies of its own."""

    def __init__(self, url: str, width: int, height: int = 1400, dark: bool = False) -> None:
        # The page's messages: exceptions, console output, and the browser's own, such as violations
        # of the security policy.
        self.messages: list[str] = []
        # Requests that the policy allowed, except for the page itself and embedded data.
        self.requests: list[str] = []
        self._events: list[dict] = []
        self.browser = _browser()
        self._context = self.browser.call("Target.createBrowserContext")["browserContextId"]
        target = self.browser.call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = self.browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.browser.sessions[self._session] = self._events
        for domain in ("Runtime", "Log", "Page", "Network"):
            self._call(f"{domain}.enable")
        if url.startswith("file:"):
            self._call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.open(url)

    def open(self, url: str) -> None:
        """Goes to the address, and adds to `messages` and `requests` what it caused."""
        self._events.clear()
        self._call("Page.navigate", url=url)
        self.browser.wait(lambda: any(event["method"] == "Page.loadEventFired" for event in self._events))
        # Pictures in data: URLs are decoded lazily, so wait for them.
        self.evaluate("Promise.allSettled([...document.images].map((image) => image.decode()))")
        self.collect(url)

    def collect(self, url: str = "") -> None:
        """Adds what has come since."""
        self.messages += [message for event in self._events for message in self._message(event)]
        refused = {
            event["params"]["requestId"]
            for event in self._events
            if event["method"] == "Network.loadingFailed" and event["params"].get("blockedReason") == "csp"
        }
        for event in self._events:
            if event["method"] == "Network.requestWillBeSent" and event["params"]["requestId"] not in refused:
                asked = event["params"]["request"]["url"]
                if asked != url and not asked.startswith("data:"):
                    self.requests.append(asked)
        self._events.clear()

    def close(self) -> None:
        self.browser.call("Target.disposeBrowserContext", browserContextId=self._context)
        del self.browser.sessions[self._session]

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def evaluate(self, expression: str):
        """Evaluates JavaScript and waits for promises."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Waits until a JavaScript expression is true."""
        looking = f"new Promise((done) => {{ const look = () => {expression} ? done(true) : setTimeout(look, 20); look(); }})"
        self.evaluate(looking)

    def screenshot(self, path, whole: bool = False) -> None:
        """Saves the window, or the whole page, as PNG."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    @staticmethod
    def _message(event: dict):
        parameters = event.get("params", {})
        if event["method"] == "Runtime.consoleAPICalled":
            yield json.dumps(parameters["args"])
        elif event["method"] == "Runtime.exceptionThrown":
            yield json.dumps(parameters["exceptionDetails"])
        elif event["method"] == "Log.entryAdded":
            yield json.dumps(parameters["entry"])

    def _call(self, method: str, **parameters) -> dict:
        return self.browser.call(method, self._session, **parameters)


if __name__ == "__main__":
    shown, picture, window_width, window_height = sys.argv[1:]
    with Page(pathlib.Path(shown).resolve().as_uri(), int(window_width), int(window_height)) as page:
        page.screenshot(picture)
