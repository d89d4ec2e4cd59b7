"""The pages of the packages, and one for each loss."""

from collections.abc import Iterator

from site_pages.docstrings import to_markdown
from site_pages.formulas import formula
from site_pages.markdown import as_code, facts, page, table
from site_pages.symbols import (
    LOSSES,
    MORE,
    PACKAGES,
    ROOT,
    Symbol,
    constant_of,
    docstring,
    is_registry,
    loss_pages,
    symbols,
)

FOLDER = "reference"
PICTURES = "docs/figures/losses"
COSTS = "docs/lab/performance.md"
PEER_TABLE = "| loss | XLA | without | floor |"
COST_TABLE = "| loss, by its key | step, ms |"


def package_page(package: str) -> str:
    """Returns the path of the page of a package."""
    name = package.rpartition(".")[2]
    return f"{FOLDER}/{name}{'/index' if package == LOSSES else ''}.md"


def package_pages() -> Iterator[tuple[str, str, str]]:
    """Yields path, title and text of the page of each package and loss."""
    yield f"{FOLDER}/index.md", "Overview", _overview()
    for package in PACKAGES:
        if package == LOSSES:
            yield package_page(package), package, _losses()
            for key, title, names in loss_pages():
                yield (
                    f"{FOLDER}/losses/{key}.md",
                    title,
                    _loss(key, title, names),
                )
            continue
        yield package_page(package), package, _package(package)


def _overview() -> str:
    return page(
        "# Reference",
        "Everything here is written from the code when the site is built: the "
        "public names from the packages, the commands from the program, the "
        "keys from the sections that check them, recipes and plans from their "
        "files.",
        table(
            ("what", "content"),
            (
                ("[Commands](commands.md)", "every command, with its options"),
                (
                    "[Configuration](configuration.md)",
                    "every key of a run: type, bounds, default",
                ),
                ("[Plan files](plan_files.md)", "every key of a plan"),
                ("[Recipes](recipes.md)", "what each recipe is and sets"),
                ("[Plans](plans.md)", "what each plan compares"),
                ("[Files](../files.md)", "what the folders hold"),
            ),
        ),
        "## Packages",
        table(
            ("package", "content"),
            (
                (
                    f"[`{one}`]({package_page(one).removeprefix('reference/')})",
                    docstring(one).split("\n")[0],
                )
                for one in PACKAGES
            ),
        ),
        "A name is imported from the package that its page is named after, "
        "where its heading does not name a module: `from keras_dml.layers "
        "import Proxies`. Each package loads what it needs when it is first "
        "used.",
    )


def _package(package: str) -> str:
    names = symbols(package)
    first = [one for one in names if one.package == package]
    return page(
        f"# {package}",
        to_markdown(docstring(package)),
        _contents(names),
        *(_entry(one) for one in first),
        "## In modules of their own" if first and MORE.get(package) else "",
        *(_entry(one) for one in names if one not in first),
    )


def _contents(names: tuple[Symbol, ...]) -> str:
    return table(
        ("name", "what it is"),
        (
            (f"[`{_shown(one)}`](#{one.path})", one.about or "A constant.")
            for one in names
        ),
    )


def _shown(one: Symbol) -> str:
    return one.path.rpartition(".")[2]


def _entry(one: Symbol, level: int = 2) -> str:
    """Returns what mkdocstrings replaces by an object, or a constant."""
    if constant := constant_of(one):
        return (
            f"{'#' * level} {one.name} {{ #{one.path} }}\n\n"
            f"```python\n{constant}\n```"
        )
    lines = [
        f"::: {one.path}",
        "    options:",
        f"      heading: {one.name}",
        f"      toc_label: {one.name}",
        f"      heading_level: {level}",
    ]
    return "\n".join(lines)


def _losses() -> str:
    names = {key: found for key, _, found in loss_pages()}
    registry = [one for one in symbols(LOSSES) if is_registry(one)]
    return page(
        f"# {LOSSES}",
        to_markdown(docstring(LOSSES)),
        "A key is the name of a loss in recipes, in `--loss` and in `get`. The "
        "base classes have [a page](base.md) as well.",
        table(
            ("loss", "key", "what it is"),
            (
                (f"[{title}]({key}.md)", as_code(key), names[key][0].about)
                for key, title, _ in loss_pages()
                if key != "base"
            ),
        ),
        "## Functions\n\nThe function of a loss, without Keras' class, stands "
        "on the page of the loss. These find a loss by its name:",
        *(_entry(one) for one in registry),
    )


def _loss(key: str, title: str, names: list[Symbol]) -> str:
    known = ", ".join(one.name for one in names)
    return page(
        f"# {title}",
        facts(
            {
                "Key": as_code(key) if key != "base" else "",
                "Import": as_code(f"from {LOSSES} import {known}"),
            }
        ),
        formula(key),
        _picture(key),
        _cost(key, title),
        *(_entry(one) for one in names),
    )


def _picture(key: str) -> str:
    """Returns what `docs/figures/losses.py` drew of a loss."""
    if not (ROOT / PICTURES / f"{key}.png").is_file():
        return ""
    place = PICTURES.removeprefix("docs/")
    return (
        f"![Paths of twelve embeddings of two classes](../../{place}/{key}.png)"
        "\n\nWhat it does to two classes: twelve embeddings, trained alone, "
        "turn from the circle inside to the one outside; stars are proxies "
        "([the program](../../figures.md#what-each-loss-does-to-two-classes))."
    )


def _cost(key: str, title: str) -> str:
    """Returns the rows of a loss in the tables of measured costs."""
    own = [row for row in _measured(COST_TABLE) if row[0] == as_code(key)]
    if not own:
        return ""
    against_peer = [
        row
        for row in _measured(PEER_TABLE)
        if row[0].split(",")[0].replace("++", "PlusPlus") == title
    ]
    parts = [
        "Cost of a step, forward and backward, beside the bare matrix products "
        "in it, for 128 embeddings and, where there are proxies, 1,000 classes "
        "([how it was measured](../../lab/performance.md"
        "#the-cost-of-every-loss)):",
        table(
            ("processor time, ms", "of the products, ms", "ratio"),
            (row[1:4] for row in own),
        ),
    ]
    if against_peer:
        parts += [
            "At the size of a large training, wall time in milliseconds "
            "([beside another library](../../lab/performance.md#losses)):",
            table(
                ("", "with XLA", "without", "matrix products"),
                (row[:4] for row in against_peer),
            ),
        ]
    return page(*parts)


def _measured(titles: str) -> list[list[str]]:
    """Returns the rows of the table with these titles."""
    text = (ROOT / COSTS).read_text(encoding="utf-8").partition(titles)[2]
    lines = text[: text.index("\n\n")].splitlines()[2:]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines
    ]
