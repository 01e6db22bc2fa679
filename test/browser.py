# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of pages have in common: headless Chromium."""

import argparse
import base64
import json
import os
import pathlib
import shutil
import sys
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

SKIPPED = 77
FIGURES = pathlib.Path(__file__).resolve().parents[1] / "docs/figures"
MIN_CONTRAST = 4.5

# Each element with text of its own that is shown, with the contrast of the text to what is behind it.
CONTRASTS = """
const parse = color => color.match(/[\\d.]+/g).map(Number);
const luminance = color => {
  const [r, g, b] = color.slice(0, 3).map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const getBackground = element => {
  for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor);
    if (color.length < 4 || color[3] === 1)
      return color;
    if (color[3] !== 0)
      throw new Error("a background is translucent");
  }
  return [255, 255, 255];
};
return [...document.body.querySelectorAll("*")].filter(element =>
  [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()) && element.checkVisibility()
  && !["SCRIPT", "NOSCRIPT"].includes(element.tagName)).map(element => {
    const text = luminance(parse(getComputedStyle(element).color)), behind = luminance(getBackground(element));
    return [(Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05), `${element.tagName} '${element.textContent.slice(0, 40)}'`];
  });
"""


def _prepare(options):
    """Makes the folder `options.out`, and finds the browser. False, with a message, where there is none."""
    options.chromium, options.chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    for name, found in (("chromium", options.chromium), ("chromedriver", options.chromedriver), ("selenium", webdriver)):
        if not found:
            print(f"skipped: there is no {name}; scripts/setup.sh installs it")
            return False
    options.bin, options.out = options.bin.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["HOME"] = str(options.out)  # where Chromium writes
    return True


class PageTest(unittest.TestCase):
    """Each test opens a page, and ends with a look at the console and at what was loaded."""

    options = None

    @classmethod
    def setUpClass(cls):
        settings = webdriver.ChromeOptions()
        settings.binary_location = cls.options.chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--force-device-scale-factor=1", "--window-size=1200,1000"):
            settings.add_argument(argument)
        settings.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(options=settings, service=webdriver.ChromeService(cls.options.chromedriver))
        cls.addClassCleanup(cls.driver.quit)

    def open(self, name, theme="light"):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.driver.get("about:blank")
        url = (self.options.out / name).as_uri()
        self.opened.add(url)
        self.driver.get(url)

    def setUp(self):
        self.opened = {"about:blank"}

    def tearDown(self):
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        self.assertEqual(console, [], "the console")
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        loaded = {message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"}
        self.assertLessEqual({url.split("#")[0] for url in loaded}, self.opened)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return [element for element in self.driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def get_focused(self):
        """The first line of what has the focus."""
        return self.driver.switch_to.active_element.text.split("\n")[0]

    def take(self, selector, name, height=700):
        """A picture of an element's upper part, docs/figures/NAME."""
        x, y, width, found = self.driver.execute_script(
            "const box = arguments[0].getBoundingClientRect(); return [box.x + scrollX, box.y + scrollY, box.width, box.height]",
            self.find(selector))
        clip = {"x": x, "y": y, "width": width, "height": min(found, height), "scale": 1}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        (FIGURES / name).write_bytes(base64.b64decode(picture["data"]))

    def check_contrast(self, theme, least):
        """`least`: how many elements with text the page must show."""
        contrasts = self.driver.execute_script(CONTRASTS)
        self.assertGreater(len(contrasts), least)
        self.assertEqual([item for item in contrasts if item[0] < MIN_CONTRAST], [], theme)


def main(description, tests, write_pages, take_screenshots):
    """Runs the tests of a class, or updates the pictures of docs/figures; the exit code.

    `write_pages` gets the options, and writes the pages to `options.out`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the tools are")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder for the pages")
    parser.add_argument("--update", action="store_true", help="take the pictures of docs/figures again")
    options, rest = parser.parse_known_args()
    if not _prepare(options):
        return SKIPPED
    write_pages(options)
    tests.options = options
    if options.update:
        take_screenshots()
        return 0
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1
