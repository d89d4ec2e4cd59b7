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

import pytest

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
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TIMEOUT = 60
# On a machine without a free core or memory a browser may end, or never load.
ATTEMPTS = 3
# Runs in the page: sorts the classes by their second column, twice, and
# writes what there is into the page itself.
PROBE = """
<script>
window.addEventListener("load", function () {
  var seen = {errors: window.errors, broken: [], images: 0, sorted: []};
  function channels(color) {
    var found = color.match(/[0-9.]+/g).map(Number);
    return found.length > 3 && found[3] === 0 ? null : found;
  }
  function luminance(color) {
    var parts = color.slice(0, 3).map(function (value) {
      value /= 255;
      return value <= 0.03928
        ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  }
  function ground(element) {
    while (element) {
      var color = channels(getComputedStyle(element).backgroundColor);
      if (color) { return luminance(color); }
      element = element.parentElement;
    }
    return 1;
  }
  // The least contrast of a text with its ground, as WCAG defines it.
  function contrast() {
    var least = [21, ""];
    var texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      var element = texts.currentNode.parentElement;
      if (!texts.currentNode.textContent.trim()
          || element.tagName === "SCRIPT") { continue; }
      var one = luminance(channels(getComputedStyle(element).color));
      var other = ground(element);
      var ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      if (ratio < least[0]) { least = [ratio, element.outerHTML]; }
    }
    return least;
  }
  function lines(query) {
    var count = {};
    query.querySelectorAll("figure").forEach(function (figure) {
      count[figure.offsetTop] = (count[figure.offsetTop] || 0) + 1;
    });
    return Object.keys(count).map(Number).sort(function (a, b) {
      return a - b;
    }).map(function (top) { return count[top]; });
  }
  // Words of tables that are cut over two lines.
  function cut() {
    var found = [];
    document.querySelectorAll("td").forEach(function (cell) {
      var texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        var node = texts.currentNode, words = /[^\\s\\/-]+/g, word;
        while ((word = words.exec(node.data))) {
          var range = document.createRange();
          range.setStart(node, word.index);
          range.setEnd(node, word.index + word[0].length);
          var rows = new Set(Array.from(range.getClientRects()).map(
            function (place) { return Math.round(place.top); }));
          if (rows.size > 1) { found.push(word[0]); }
        }
      }
    });
    return found;
  }
  document.querySelectorAll("details").forEach(function (one) {
    one.open = true;
  });
  document.querySelectorAll("img").forEach(function (image) {
    image.loading = "eager";
  });
  Promise.all(Array.from(document.images).map(function (image) {
    return image.decode().catch(function () { seen.broken.push(image.alt); });
  })).then(function () {
    seen.images = document.images.length;
    seen.window = window.innerWidth;
    seen.width = document.documentElement.scrollWidth;
    seen.height = document.documentElement.scrollHeight;
    seen.ground = ground(document.body);
    seen.contrast = contrast();
    seen.cut = cut();
    seen.links = Array.from(document.links).map(function (link) {
      return link.href;
    });
    seen.charts = Array.from(document.querySelectorAll(".chart img")).map(
      function (image) { return image.getBoundingClientRect().width; });
    seen.lines = Array.from(document.querySelectorAll(".query")).map(lines);
    var table = document.querySelector("table.sortable");
    var button = table
      && table.tHead.rows[0].cells[2].querySelector("button");
    for (var turn = 0; button && turn !== 2; turn += 1) {
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
from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

address, width, height, dark, picture = sys.argv[1:]
application = QApplication(sys.argv[:1])
scheme = Qt.ColorScheme.Dark if dark == "True" else Qt.ColorScheme.Light
application.styleHints().setColorScheme(scheme)
view = QWebEngineView()
view.resize(int(width), int(height))

def look():
    view.page().toHtml(take)

def take(html):
    if picture:
        QTimer.singleShot(1000, save)
    elif 'id="answer"' in html:
        print(html)
        application.quit()
    else:
        QTimer.singleShot(200, look)

def save():
    view.grab().save(picture)
    application.quit()

view.loadFinished.connect(look)
view.load(QUrl(address))
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


NEEDED = pytest.mark.skipif(
    find() is None,
    reason="No Chromium: install one (apt-get install chromium, or pip "
    'install "PySide6-Addons<6.11"), or name it by KERAS_DML_BROWSER.',
)


def look_at(page, folder, width=1000, dark=False, probe=PROBE, server=None):
    """What a browser sees of a page: errors, broken images, a sorted table.

    Args:
        page: Path of the HTML file.
        folder: An empty folder for the browser, or the page's own, so that
            its links lead somewhere.
        width: Width of the window in pixels. Defaults to `1000`.
        dark: Whether the user prefers dark pages. Defaults to `False`.
        probe: HTML that runs in the page and writes JSON into an element with
            the id "answer". Defaults to `PROBE`.
        server: Address that serves the folder. Defaults to `None`: the page is
            opened from the disk.

    Returns:
        What the probe found.
    """
    html = page.read_text(encoding="utf-8")
    html = html.replace("<head>", f"<head>{CATCH}", 1)
    probed = folder / "probed.html"
    probed.write_text(html.replace("</body>", f"{probe}</body>"), "utf-8")
    address = f"{server}/{probed.name}" if server else probed.as_uri()
    for _ in range(ATTEMPTS):
        done = _browse(address, folder, (width, 800), dark)
        found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.S)
        if found:
            break
    assert found, (done.returncode, done.stderr[-2000:])
    answer = found[1].replace("&lt;", "<").replace("&gt;", ">")
    return json.loads(answer.replace("&amp;", "&"))


def photograph(page, folder, size, dark=False):
    """Takes a picture of the top of a page.

    Args:
        page: Path of the HTML file.
        folder: An empty folder for the browser.
        size: Width and height of the window in pixels.
        dark: Whether the user prefers dark pages. Defaults to `False`.

    Returns:
        Path of the PNG file.
    """
    picture = folder / "picture.png"
    _browse(page.as_uri(), folder, size, dark, picture)
    return picture


def _browse(address, folder, size, dark, picture=None):
    command = find()
    environment = dict(os.environ)
    # 0 is dark and 1 is light.
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    width, height = map(str, size)
    if len(command) > 1:
        command = [*command, address, width, height, str(dark)]
        command.append("" if picture is None else str(picture))
        environment["QT_QPA_PLATFORM"] = "offscreen"
        flags = (*FLAGS[:3], scheme)
        environment["QTWEBENGINE_CHROMIUM_FLAGS"] = " ".join(flags)
    else:
        command = [
            *command,
            "--headless",
            *FLAGS,
            scheme,
            f"--window-size={width},{height}",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=20000",
            "--dump-dom" if picture is None else f"--screenshot={picture}",
            address,
        ]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(command, -1, "", str(error))
