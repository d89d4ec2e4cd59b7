"""Puts numbers, lists, metrics and data sets into words."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

_TITLES = {
    "map": "MAP",
    "map@r": "MAP@R",
    "mrr": "MRR",
    "nmi": "NMI",
    "r_precision": "R-precision",
}
_MEANINGS = {
    "recall@1": "the share of queries whose nearest image is of their class",
    "recall@": "the share of queries with an image of their class among the "
    "{k} nearest",
    "precision@": "the share of images of the query's class among the {k} "
    "nearest",
    "map@": "the mean precision at each image of the query's class among the "
    "{k} nearest",
    "r_precision": "the share of images of the query's class among the R "
    "nearest, R being how many others of its class there are",
    "map@r": "the share of images of the query's class among the R nearest, R "
    "being how many others of its class there are; early ones count more",
    "map": "the mean precision at each image of the query's class in the "
    "whole gallery",
    "mrr": "one over the rank of the first image of the query's class",
    "nmi": "how well clusters by k-means agree with the classes, 1 being "
    "equal: normalized mutual information",
    "ami": "the same agreement beyond that of random clusters: adjusted "
    "mutual information",
}
_UNITS = ((86400, "day"), (3600, "h"), (60, "min"), (1, "s"))
# How many of a unit a rough length has, or it is told in a smaller one.
_FEWEST = 1.9
# Facts, lists and commands fit a terminal of this width.
WIDTH = 80
# Of the titles in front of facts.
_TITLE = 10
# A space that no wrapping replaces by the end of a line.
_UNBROKEN = "\N{NO-BREAK SPACE}"
_NO_NAMES = {"data", "images", "img", "labels", "photos", "train"}
_AT_K = {"recall": "R", "precision": "P", "map": "MAP"}


def metric_title(metric: str) -> str:
    """Returns a metric's name as papers print it.

    >>> metric_title("recall@1")
    'R@1'
    """
    match = re.fullmatch(r"(\w+)@(\d+)", metric)
    if match and match[1] in _AT_K:
        return f"{_AT_K[match[1]]}@{match[2]}"
    return _TITLES.get(metric, metric)


def metric_meaning(metric: str) -> str:
    """Returns what a metric measures, or an empty text if it is unknown.

    >>> metric_meaning("mrr")
    "one over the rank of the first image of the query's class"
    """
    name = metric.removesuffix("_geometric")
    if name in _MEANINGS:
        geometric = "" if name == metric else ", over the geometric mean"
        return _MEANINGS[name] + geometric
    kind, at, k = name.partition("@")
    return _MEANINGS.get(kind + at, "").format(k=k)


def counted(count: int, singular: str) -> str:
    """Returns a number with its noun, in the plural if needed.

    >>> counted(1200, "seed")
    '1,200 seeds'
    """
    return f"{count:,} {singular}{'' if count == 1 else 's'}"


def percent(share: float, digits: int = 0) -> str:
    """Returns a share of one as people write it.

    >>> percent(0.961), percent(0.961, digits=1)
    ('96 %', '96.1 %')
    """
    return f"{100 * share:.{digits}f} %"


def duration(seconds: float) -> str:
    """Returns a length of time in words, in its two largest units.

    Example:

    >>> duration(100), duration(5400), duration(1e9)
    ('1 min 40 s', '1 h 30 min', '11,574 days 1 h')
    """
    left = round(seconds)
    parts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        whole, left = divmod(left, size)
        if whole or parts or unit == "s":
            parts.append((whole, unit))
    shown = [part for part in parts[:2] if part[0]] or parts[:1]
    return " ".join(_length(*part) for part in shown)


def roughly(seconds: float) -> str:
    """Returns an uncertain length of time in words: one or two digits.

    Example:

    >>> roughly(62), roughly(308), roughly(6500), roughly(1e9)
    ('62 s', '5 min', '110 min', '12,000 days')
    """
    size, unit = next(
        (one for one in _UNITS if seconds >= _FEWEST * one[0]), _UNITS[-1]
    )
    count = round(float(f"{seconds / size:.2g}"))
    return _length(max(1, count), unit)


def _length(count: int, unit: str) -> str:
    return counted(count, unit) if unit == "day" else f"{count:,} {unit}"


def clock(seconds: float) -> str:
    """Returns a length of time as a clock shows it.

    >>> clock(43), clock(500), clock(3725)
    ('0:43', '8:20', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def listed(names: Iterable[object]) -> str:
    """Joins names with commas and an `and`.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def spanned(numbers: Sequence[int]) -> str:
    """Returns the range of several counts in words.

    >>> spanned([3, 2, 3])
    '2 to 3'
    """
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def source_title(source: str) -> str:
    """Returns the name of data, without the folders above them.

    A name that any data could have keeps the name of its folder.

    >>> source_title("/data/shoes"), source_title("/data/shoes/images")
    ('shoes', 'shoes/images')
    """
    path = Path(source)
    if path.stem.lower() in _NO_NAMES and path.parent.name:
        return f"{path.parent.name}/{path.name}"
    return path.name or source


def without_folders(name: str) -> str:
    """Returns the name of a recipe or a network, not where its file is.

    >>> without_folders("/home/ada/own.yaml:fast"), without_folders("hub:a/b")
    ('own.yaml:fast', 'hub:b')
    """
    if "://" in name:
        return name
    kind = "hub:" if name.startswith("hub:") else ""
    return kind + name.removeprefix(kind).rpartition("/")[2]


def slug(*parts: object) -> str:
    """Returns a file name of lower-case letters, digits and hyphens.

    >>> slug("recall@1", "model.scale")
    'recall-1-model-scale'
    """
    text = "-".join(str(part) for part in parts)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def filled(
    text: str, width: int = WIDTH, first: str = "", indent: str = ""
) -> str:
    """Returns a paragraph wrapped between words, but not within commands.

    Args:
        text: String. Commands in it stand in backticks.
        width: Integer, the most characters of a line. Defaults to `80`.
        first: String before the first line. Defaults to none.
        indent: String before each further line. Defaults to none.
    """
    whole = re.sub(r"`[^`]*`", lambda one: one[0].replace(" ", _UNBROKEN), text)
    return textwrap.fill(
        whole,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_UNBROKEN, " ")


def titled(lines: Iterable[tuple[str, str]]) -> str:
    """Returns lines of a title and a text, wrapped at 80 columns.

    Example:

    >>> print(titled([("Train", "60 images"), ("Device", "CPU only")]))
    Train     60 images
    Device    CPU only
    """
    return "\n".join(
        filled(text, WIDTH, f"{title:<{_TITLE - 1}} ", " " * _TITLE)
        for title, text in lines
    )
