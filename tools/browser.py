"""A headless Chromium that a script drives: pages of any width, keys, files that are saved, what the network answered.

It speaks the DevTools protocol over a pipe, with Python's standard library alone.
"""
import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", "--no-first-run",
         "--remote-debugging-pipe")
FIRST_FREE = 10  # file descriptors below are Chromium's own, 3 and 4 those that it speaks over
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Space": 32, "Tab": 9}  # and the codes by which Windows knows them
TYPED = {"Enter": "\r", "Space": " "}
LONGEST = 120  # s: other work on the machine counts as well


def high_pipe():
    """(read, write) whose numbers are no pipe of Chromium's."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Page:
    """A tab; `events` is what it reported so far."""

    def __init__(self, browser, session):
        self.browser, self.session, self.events = browser, session, []
        browser.pages[session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def evaluate(self, script):
        """The value of `script`, a promise's once it has one; raises where it throws."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "the script threw"))
        return answer["result"].get("value")

    def wait(self, script, seconds=LONGEST):
        """Until `script` has a value that counts as true, which is returned."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(RuntimeError):  # the page may not be there yet
                value = self.evaluate(script)
                if value:
                    return value
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.05)

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def picture(self):
        """What the window shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def key(self, name):
        """A key as a person presses it, of KEYS."""
        text = TYPED.get(name)
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=text if name == "Space" else name, code=name, windowsVirtualKeyCode=KEYS[name],
                      **({"text": text} if text and kind == "keyDown" else {}))

    def responses(self):
        """(address, status) of what the network answered."""
        self.evaluate("0")  # events come before the answer
        return [(event["params"]["response"]["url"], event["params"]["response"]["status"]) for event in self.events
                if event["method"] == "Network.responseReceived"]

    def complaints(self):
        """Errors of the page's scripts and of its policy."""
        self.evaluate("0")
        found = [event["params"]["entry"]["text"] for event in self.events if event["method"] == "Log.entryAdded"]
        return found + [event["params"]["exceptionDetails"]["text"] for event in self.events if event["method"] == "Runtime.exceptionThrown"]


class Browser:
    """`with Browser(folder) as browser`: its profile and what it saves lie in `folder`."""

    def __init__(self, folder):
        self.folder, self.number, self.pages = folder, 0, {}
        (read, self.to), (self.back, write) = high_pipe(), high_pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}/profile", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "chromium", *command], pass_fds=(read, write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.waiting = b""
        self.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError, EOFError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)

    def message(self):
        while b"\0" not in self.waiting:
            part = os.read(self.back, 1 << 20)
            if not part:
                raise EOFError("Chromium ended")
            self.waiting += part
        text, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(text)

    def call(self, method, parameters=None, session=None):
        """The result of a command; events that come before it go to their pages."""
        self.number += 1
        sent = {"id": self.number, "method": method, "params": parameters or {}, **({"sessionId": session} if session else {})}
        left = json.dumps(sent).encode() + b"\0"
        while left:
            left = left[os.write(self.to, left):]
        while True:
            found = self.message()
            if found.get("id") == self.number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return found["result"]
            if found.get("sessionId") in self.pages:
                self.pages[found["sessionId"]].events.append(found)

    def page(self):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Page(self, session)
