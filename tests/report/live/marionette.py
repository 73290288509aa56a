"""Firefox driven through Marionette, its own remote protocol: a socket, JSON with its length before it, and nothing to install."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BINARIES = ("firefox-esr", "firefox")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which WebDriver names an element


def binary() -> str | None:
    """Firefox, where there is one."""
    return next((found for name in BINARIES if (found := shutil.which(name))), None)


class Firefox:
    """A page in Firefox: the commands of WebDriver, as far as tests need them."""

    def __init__(self, port: int, patience: float = 60) -> None:
        end = time.monotonic() + patience
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        self.number = 0
        self._read()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})

    def _read(self) -> Any:
        length = b""
        while (byte := self.socket.recv(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox closed the connection")
            length += byte
        text = b""
        while len(text) < int(length):
            text += self.socket.recv(int(length) - len(text))
        return json.loads(text)

    def call(self, command: str, **given: Any) -> Any:
        """One command; its result."""
        self.number += 1
        message = json.dumps([0, self.number, command, given]).encode()
        self.socket.sendall(f"{len(message)}:".encode() + message)
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def do(self, script: str, *given: Any) -> Any:
        """What a script returns; `arguments` holds what it is given."""
        return self.call("WebDriver:ExecuteScript", script=script, args=list(given))

    def find(self, selector: str) -> str:
        """An element's reference."""
        return str(self.call("WebDriver:FindElement", using="css selector", value=selector)[ELEMENT])

    def click(self, selector: str) -> None:
        """By the mouse, as a reader would."""
        self.do("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", selector)
        self.call("WebDriver:ElementClick", id=self.find(selector))

    def type(self, selector: str, text: str) -> None:
        """Into an element that is emptied first."""
        element = self.find(selector)
        self.call("WebDriver:ElementClear", id=element)
        self.call("WebDriver:ElementSendKeys", id=element, text=text)

    def press(self, *keys: str) -> None:
        """Keys, where the focus is."""
        acts = [{"type": way, "value": key} for key in keys for way in ("keyDown", "keyUp")]
        self.call("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": acts}])

    def drag(self, places: list[tuple[float, float]]) -> None:
        """The pointer along places in the window, pressed from the first to the last; only moved there where it is one."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 20} for x, y in places]
        if len(moves) > 1:
            moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self.call("WebDriver:PerformActions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def text(self, selector: str) -> str:
        """What is to be read there."""
        return str(self.do("return document.querySelector(arguments[0]).innerText", selector))

    def until(self, script: str, patience: float = 30) -> None:
        """Wait until a script returns what is true."""
        end = time.monotonic() + patience
        while not self.do(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """A Firefox of its own, ended afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (profile / "user.js").write_text(
        f'user_pref("marionette.port", {port});\nuser_pref("app.update.enabled", false);\n'
    )
    found = binary()
    assert found is not None
    command = [
        found,
        "--headless",
        "--marionette",
        "--no-remote",
        "--profile",
        str(profile),
        "--width",
        "1200",
        "--height",
        "900",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page = None
    try:
        page = Firefox(port)
        yield page
    finally:
        if page is not None:
            page.socket.close()
        process.terminate()
        process.wait(30)
