"""The site in a real browser, on a desk and on a phone, light and dark."""

import functools
import http.server
import threading
import types

import pytest

from tests import browser

PAGES = (
    "index",
    "install",
    "guides/photos",
    "reference/configuration",
    "reference/losses/multi_similarity",
)
# Types into the search of the site until it answers.
SEARCH = """
<script>
window.addEventListener("load", function () {
  var input = document.querySelector(".md-search__input");
  document.getElementById("__search").checked = true;
  input.focus();
  input.value = "QUERY";
  var turns = 0, clock = setInterval(function () {
    input.dispatchEvent(new Event("keyup", {bubbles: true}));
    var found = Array.from(
      document.querySelectorAll(".md-search-result__link"));
    if (!found.length && ++turns < 250) { return; }
    clearInterval(clock);
    var answer = document.createElement("pre");
    answer.id = "answer";
    answer.textContent = JSON.stringify(
      found.map(function (link) { return link.href; }));
    document.body.appendChild(answer);
  }, 200);
});
</script>
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        pass


@pytest.mark.slow
@browser.NEEDED
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_shows_the_page(site, name, width, dark):
    page = site / f"{name}.html"
    seen = types.SimpleNamespace(
        **browser.look_at(page, page.parent, width, dark)
    )
    assert seen.errors == []
    assert seen.broken == []
    assert seen.width <= seen.window
    assert (seen.ground < 0.1) is dark


@pytest.mark.slow
@browser.NEEDED
@pytest.mark.parametrize(
    ("query", "loss"), [("proxy anchor", "proxy_anchor"), ("margin", "margin")]
)
def test_the_search_finds_a_loss(site, query, loss):
    """Of words that stood in calls with numbers, it found nothing at all."""
    probe = SEARCH.replace("QUERY", query)
    served = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        page = site / "index.html"
        found = browser.look_at(page, site, probe=probe, server=address)
        server.shutdown()
    assert any(f"reference/losses/{loss}.html" in link for link in found)
