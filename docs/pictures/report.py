"""Draws report-light.png and report-dark.png, the screenshots of docs/report.md.

It needs selenium, chromium and chromedriver.
"""

import base64
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver

import jaxrules as jr

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1000, 760

data = jr.datasets.load("breast_cancer")
train, test = jr.datasets.train_test_split(data, test_size=0.25, seed=0)
fits = jr.boosting.path(train.X, train.y, max_rules=5)
with tempfile.TemporaryDirectory() as folder:
    page = jr.report(fits, test.X, test.y, Path(folder) / "report.html")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(argument)
    chrome = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    for scheme, section, height in (("light", "path", 960), ("dark", "quality", 1440)):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        chrome.get(page.path.as_uri())
        top = chrome.execute_script(f"return document.getElementById('{section}').offsetTop")
        clip = {"x": 0, "y": top, "width": WIDTH - 15, "height": height, "scale": 0.75}
        shot = chrome.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        (HERE / f"report-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))
    chrome.quit()
