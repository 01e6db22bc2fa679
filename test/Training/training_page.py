# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the page of a training, tp-run --html, in headless Chromium: what it shows, the keyboard, contrast, printing.

usage: training_page.py --bin FOLDER --out FOLDER [--update] [TEST…]

--update writes the screenshot of docs/Training.md. Exit code 77: there is no Chromium, or no driver for it.
"""

import base64
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import browser

if browser.webdriver:
    from selenium.webdriver.common.keys import Keys

STEPS = 40
CURVES = ["Loss", "Learning rate", "Gradient norm", "Examples per second"]


def write_pages(options):
    subprocess.run([sys.executable, ROOT / "test/tools/tp-run/Inputs/make_train.py", options.out], check=True)

    def train(name, *further, code=0):
        command = [options.bin / "tp-run", "train.2.tpx", "--weights", "w.safetensors", "--data", "target=target.npy", "--html", name, *further]
        result = subprocess.run(list(map(str, command)), cwd=options.out, capture_output=True, text=True)
        if result.returncode != code:
            sys.exit(f"{command}: {result.returncode}\n{result.stderr}")

    train("done.html", "--data", "x=x.npy", "--steps", STEPS, "--metrics", "done.jsonl")
    train("failed.html", "--data", "x=x_nan.npy", "--steps", 9, "--no-shuffle", code=4)
    # What a page shows while the training runs.
    done = (options.out / "done.html").read_text()
    (options.out / "running.html").write_text(done.replace('"state":"done"', '"state":"running"').replace(f'"steps":{STEPS},', '"steps":1000,'))


class Page(browser.PageTest):
    def get_facts(self):
        return dict(zip([name.text for name in self.find_all("dt")], [value.text for value in self.find_all("dd")]))

    def test_done(self):
        self.open("done.html")
        self.assertEqual(self.driver.title, "train.2: training, done")
        self.assertEqual(self.find("h1").text, "Training of train.2")
        facts = self.get_facts()
        self.assertEqual((facts["State"], facts["Steps"]), ("done", f"{STEPS} of {STEPS}"))
        self.assertEqual([title.text for title in self.find_all("#curves h3")], CURVES)
        self.assertEqual(self.find_all("#reload"), [])
        # The table and the curves have the metrics' numbers.
        metrics = [json.loads(line) for line in (self.options.out / "done.jsonl").read_text().splitlines()]
        self.assertEqual([header.text for header in self.find_all("#rows th")], ["Step", *CURVES])
        rows = self.driver.execute_script("return [...document.querySelectorAll('#rows tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        self.assertEqual([int(row[0]) for row in rows], [line["step"] for line in metrics])
        for column, key in enumerate(("loss", "lr", "grad_norm", "examples_per_second"), 1):
            for row, line in zip(rows, metrics):
                self.assertAlmostEqual(float(row[column].replace(",", "")), line[key], delta=1e-3 * line[key])
        drawn = self.driver.execute_script("return charts.map(chart => chart.data.datasets[0].data.map(point => point.y))")
        self.assertEqual(drawn[0], [line["loss"] for line in metrics])
        self.assertEqual([len(points) for points in drawn], 4 * [STEPS])

    def test_curves_are_drawn(self):
        """Each in the color of the theme, also after the theme has changed."""
        self.open("done.html")
        for theme in ("light", "dark"):
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
            self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))")
            counts = self.driver.execute_script("""
                const probe = document.createElement("i");
                probe.style.color = "var(--first)";
                document.body.append(probe);
                const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
                probe.remove();
                return charts.map(chart => {
                  const { width, height } = chart.canvas, context = new OffscreenCanvas(width, height).getContext("2d");
                  context.drawImage(chart.canvas, 0, 0);
                  const { data } = context.getImageData(0, 0, width, height);
                  let count = 0;
                  for (let i = 0; i < data.length; i += 4)
                    count += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
                  return count;
                });""")
            self.assertTrue(all(count > 300 for count in counts), (theme, counts))

    def test_failed(self):
        self.open("failed.html")
        facts = self.get_facts()
        self.assertEqual((facts["State"], facts["Steps"], facts["Last loss"]), ("failed", "3 of 9", "no finite number"))
        self.assertIn("the loss of step 3 is NaN", self.find("[role=alert]").text)

    def test_running(self):
        """The page loads itself again if that is chosen, and only then."""
        self.open("running.html")
        self.assertEqual(self.get_facts()["Steps"], f"{STEPS} of 1,000")
        self.driver.execute_script("window.isFirst = true; setTimeout = (execute, milliseconds) => { window.delay = milliseconds; }")
        self.press(Keys.TAB, Keys.TAB, Keys.SPACE)
        self.assertTrue(self.find("#reload").is_selected())
        self.assertEqual(self.driver.execute_script("return [window.delay, location.hash]"), [5000, "#reload"])
        self.driver.refresh()
        self.assertTrue(self.find("#reload").is_selected())
        self.find("#reload").click()
        self.assertEqual(self.driver.execute_script("return location.hash"), "")

    def test_names_and_headings(self):
        """What a screen reader says, and what the keyboard reaches."""
        self.open("running.html")
        self.assertEqual([heading.text for heading in self.find_all("h2")], ["State", "Curves", "Values"])
        for element in self.find_all("a, input, [role=img], [role=region], section"):
            self.assertTrue(element.accessible_name, element.get_attribute("outerHTML")[:200])
        self.assertTrue(self.find("#rows caption").text)
        focused = []
        for _ in range(3):
            self.press(Keys.TAB)
            element = self.driver.switch_to.active_element
            self.assertEqual(element.value_of_css_property("outline-style"), "solid")
            focused.append(element.accessible_name)
        self.assertEqual(focused, ["Skip to the training", "Reload the page every five seconds", "Values"])
        self.press(Keys.END)
        self.driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 300))")
        self.assertGreater(self.find("#rows").get_property("scrollTop"), 0)

    def test_contrast(self):
        for theme in ("light", "dark"):
            for name in ("running.html", "failed.html"):
                self.open(name, theme)
                self.check_contrast(theme, least=20)

    def test_narrow_screen(self):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": False})
        self.addCleanup(self.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.open("running.html")
        self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), 360)

    def test_print(self):
        self.open("running.html", "dark")
        self.driver.execute_script("""
            addEventListener("beforeprint", () => window.printed = getComputedStyle(document.body).backgroundColor);
            matchMedia("print").addEventListener("change", ({ matches }) => {
              if (matches)
                window.rows = [rows.clientHeight, rows.scrollHeight];
            });""")
        pdf = base64.b64decode(self.driver.print_page())
        self.assertTrue(pdf.startswith(b"%PDF") and len(pdf) > 20_000)
        self.assertEqual(self.driver.execute_script("return window.printed"), "rgb(255, 255, 255)")
        shown, height = self.driver.execute_script("return window.rows")
        self.assertGreaterEqual(shown, height)


def update_screenshot():
    Page.setUpClass()
    page = Page()
    page.setUp()
    page.open("running.html")
    page.take("body", "training-page.png", height=1100)
    Page.doClassCleanups()


if __name__ == "__main__":
    sys.exit(browser.main(__doc__, Page, write_pages, update_screenshot))
