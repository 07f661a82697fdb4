"""A page of the viewer in a headless Chromium, from file://."""

import json
import pathlib
import subprocess
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

KEYS = {
    "right": Keys.ARROW_RIGHT,
    "left": Keys.ARROW_LEFT,
    "up": Keys.ARROW_UP,
    "down": Keys.ARROW_DOWN,
    "home": Keys.HOME,
    "end": Keys.END,
    "enter": Keys.ENTER,
    "escape": Keys.ESCAPE,
    "tab": Keys.TAB,
}


class Browser:
    def __init__(self, folder, size=(1440, 900), dark=False):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={folder}/profile")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.folder = pathlib.Path(folder)
        self.resize(*size)
        self.media(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, dark=False, reduced=False):
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, name, address=""):
        self.driver.get("about:blank")
        self.driver.get((self.folder / f"{name}.html").as_uri() + address)
        return json.loads((self.folder / f"{name}.json").read_text())

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def press(self, *keys, times=1, shift=False):
        for key in keys * times:
            chain = ActionChains(self.driver)
            if shift:
                chain = chain.key_down(Keys.SHIFT)
            chain = chain.send_keys(KEYS.get(key, key))
            if shift:
                chain = chain.key_up(Keys.SHIFT)
            chain.perform()

    def wait(self, code, what, seconds=60):
        """Until the JavaScript expression is true: for what the page does after a while."""
        end = time.monotonic() + seconds
        while not self.js(f"return {code}"):
            assert time.monotonic() < end, f"waited in vain: {what}"
            time.sleep(0.02)

    def step(self):
        return self.js("return Number(document.getElementById('slider').value)")

    def shown_node(self):
        shown = self.js("return document.getElementById('inspector').dataset.node")
        return int(shown) if shown else None

    def text(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def tensors(self):
        """Each tensor in the inspector by what it is, with its numbers; what is folded away is opened first."""
        self.js("document.querySelectorAll('#inspector details[data-table]').forEach((d) => { d.open = true; })")
        self.wait(
            "[...document.querySelectorAll('#inspector details[data-table] .scroll')].every((box) => box.firstChild)",
            "the tables are written",
        )
        found = self.js(
            """return [...document.querySelectorAll('#inspector .tensor')].map((t) => [t.dataset.what,
                 [...t.querySelectorAll('[data-v]')].map((c) => [c.dataset.v, c.textContent])])"""
        )
        return found

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def write_pages(program, folder, *names):
    subprocess.run([program, folder, *names], check=True)
