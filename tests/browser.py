"""Opens a page in a real browser without a window, and says what it saw.

A Chromium of any brand will do: `KERAS_DML_BROWSER`, one on the PATH, or the
one inside Qt (`pip install "PySide6-Addons<6.11"`).
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
    "microsoft-edge",
)
# No sandbox: it needs rights that containers seldom give. No network either.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
TIMEOUT = 120
# Runs in the page: sorts the classes by their second column, twice, and
# writes what there is into the page itself.
PROBE = """
<script>
window.addEventListener("load", function () {
  var seen = {errors: window.errors, broken: [], images: 0, sorted: []};
  document.querySelectorAll("img").forEach(function (image) {
    image.loading = "eager";
  });
  Promise.all(Array.from(document.images).map(function (image) {
    return image.decode().catch(function () { seen.broken.push(image.alt); });
  })).then(function () {
    seen.images = document.images.length;
    seen.width = document.documentElement.scrollWidth;
    seen.height = document.documentElement.scrollHeight;
    var table = document.querySelector("table.sortable");
    var button = table.tHead.rows[0].cells[2].querySelector("button");
    for (var turn = 0; turn !== 2; turn += 1) {
      button.click();
      seen.sorted.push(Array.from(table.tBodies[0].rows).map(function (row) {
        return Number(row.cells[2].dataset.value);
      }));
    }
    var answer = document.createElement("pre");
    answer.id = "answer";
    answer.textContent = JSON.stringify(seen);
    document.body.appendChild(answer);
  });
});
</script>
"""
CATCH = """
<script>
window.errors = [];
window.addEventListener("error", function (event) {
  window.errors.push(event.message);
});
document.addEventListener("securitypolicyviolation", function (event) {
  window.errors.push("blocked " + event.blockedURI);
});
</script>
"""
QT = """
import sys
from PySide6.QtCore import QTimer, QUrl
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

application = QApplication(sys.argv[:1])
view = QWebEngineView()
view.resize(1000, 800)

def look():
    view.page().toHtml(take)

def take(html):
    if 'id="answer"' in html:
        print(html)
        application.quit()
    else:
        QTimer.singleShot(200, look)

view.loadFinished.connect(look)
view.load(QUrl.fromLocalFile(sys.argv[1]))
view.show()
application.exec()
"""


def find():
    """The command that starts a browser, or `None` where there is none."""
    wanted = os.environ.get("KERAS_DML_BROWSER")
    for name in (wanted,) if wanted else NAMES:
        path = shutil.which(name)
        if path:
            return [path]
    if importlib.util.find_spec("PySide6") and importlib.util.find_spec(
        "PySide6.QtWebEngineWidgets"
    ):
        return [sys.executable, "-c", QT]
    return None


def look_at(page, folder):
    """What a browser sees of a page: errors, broken images, a sorted table.

    Args:
        page: Path of the HTML file.
        folder: An empty folder for the browser.

    Returns:
        Dict of what `PROBE` found.
    """
    html = page.read_text(encoding="utf-8")
    html = html.replace("<head>", f"<head>{CATCH}", 1)
    probed = folder / "probed.html"
    probed.write_text(html.replace("</body>", f"{PROBE}</body>"), "utf-8")
    command = find()
    environment = dict(os.environ)
    if len(command) > 1:
        command = [*command, str(probed)]
        environment["QT_QPA_PLATFORM"] = "offscreen"
        environment["QTWEBENGINE_CHROMIUM_FLAGS"] = " ".join(FLAGS[:3])
    else:
        command = [
            *command,
            "--headless",
            *FLAGS,
            "--window-size=1000,800",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            probed.as_uri(),
        ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        timeout=TIMEOUT,
    )
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    answer = found[1].replace("&lt;", "<").replace("&gt;", ">")
    return json.loads(answer.replace("&amp;", "&"))
