"""Odd words after the commands: values of options, places, combinations.

A word that is refused is named, by its option or as what was received.
"""

import itertools

from tests.hostile.runner import Case

LONG = "x" * 300
HUGE = "99999999999999999999"
RED = "\x1b[31mred"
# A digit for Python's `int`, and no number that a person would type.
ARABIC = "٣"
NUMBERS = (
    *("", " ", "-1", "0", "nan", "inf", "1e309", "0x10", "1_000", ARABIC),
    *("1e-9", HUGE, "'", "\n", "[1]"),
)
WHOLE = ("", "-1", "0", "1", "3", "1.5", "2**3", "999999999", ARABIC, "[16]")
WORDS = ("", "ALL", "all,weights", "x" * 3000, "null", "true", RED)
PLACES = (
    *("", ".", "..", "~", "-rf", "$(x)", "/", "/dev/null", "/etc/passwd"),
    *("NONE", "a\nb", LONG, "http://x/y.h5", "<images>", "<run>"),
)
IMAGE = "<images>/class_00/00.png"
LOSSES = (
    *("os.system", "keras.losses", "keras.losses.", "keras.Model"),
    *("__builtins__.print", "keras_dml.losses.triplet", "../x", "matryoshka"),
    *("weighted_sum", "distillation", "relational"),
)
# Option, values, those that are taken, and what a refusal names.
OF_CONFIG = (
    ("--minutes", NUMBERS, {"1_000", "1e-9"}, "--minutes"),
    ("--epochs", NUMBERS, {"1_000"}, "--epochs"),
    ("--embed-batch", (*WHOLE, "null", "true"), {"1", "3"}, "--embed-batch"),
    ("--batch-size", (*WHOLE, "null", "true"), {"1", "3"}, "--batch-size"),
    ("--image-size", (*WHOLE, "null", "true"), {"1", "3"}, "--image-size"),
    ("--dim", (*WHOLE, "null", "true"), {"1", "3"}, "--dim"),
    (
        "--matryoshka",
        (
            *("", "0", "-1", "4,4", "8,4", "999", "4,,8", ",", "4;8", ARABIC),
            *("4,x", "nan", "1e1", "128", "4, 8", "[4,8]"),
            ",".join(map(str, range(1, 5000))),
        ),
        {"4,,8", "128", "4, 8"},
        "matryoshka",
    ),
    (
        "--lr",
        ("", "nan", "inf", "-1", "0", "1e-400", "1e30", "x", "null"),
        {"0", "1e-400", "1e30"},
        "--lr",
    ),
    ("--freeze", WORDS, set(), "--freeze"),
    ("--final", WORDS, set(), "--final"),
    ("--loss", (*WORDS, *LOSSES), set(), "loss"),
    (
        "--recipe",
        (*PLACES[1:], "triplet:", "triplet:x", ":triplet", "triplet::"),
        {"triplet:"},
        "--recipe|preset|YAML",
    ),
    ("--seed", ("", "-1", "1.5", HUGE, "x"), set(), "--seed"),
)
OF_SOURCES = (
    (
        "--train-classes",
        ("", ".", "~", "-rf", "/", "/dev/null", "/etc/passwd", LONG, "<run>"),
        set(),
        "--train-classes|class",
    ),
    ("--strategy", ("", "AUTO", "tpu", "none,mirrored"), set(), "--strategy"),
)
SOURCES = ("", ".", "..", "~", "-rf", "$(x)", "/dev/null", "NONE", LONG, RED)
# Commands that read a place, and what a refusal says.
READERS = {
    "evaluate RUN": (("evaluate", "<word>"), "run folder"),
    "report RUN": (("report", "<word>"), "run folder"),
    "embed RUN": (
        ("embed", "<word>", "<images>", "--output", "<out>"),
        "run folder",
    ),
    "export RUN": (("export", "<word>", "--output", "<out>"), "run folder"),
    "push RUN": (("push", "<word>", "ada/shoes"), "run folder"),
    "search IMAGE": (("search", "<run>", "<word>"), "cannot be read"),
    "search --picture": (
        ("search", "<run>", IMAGE, "--picture", "<word>"),
        "--picture",
    ),
    "evaluate --embeddings": (
        ("evaluate", "--embeddings", "<word>"),
        "no embeddings|no file|not a readable|--embeddings|no regular file",
    ),
    "evaluate --source": (
        ("evaluate", "<run>", "--source", "<word>"),
        "data set|folder|--source|path and label|image",
    ),
    "embed SOURCE": (
        ("embed", "<run>", "<word>", "--output", "<out>"),
        "data set|folder|columns path|image",
    ),
    "search --gallery": (
        ("search", "<run>", IMAGE, "--gallery", "<word>"),
        "data set|folder|--gallery|path and label|image",
    ),
}
# Beyond the longest name of a file, the system's own words are shown.
TOO_LONG = "|File name too long"
READ = ("~", "/dev/zero", "/etc/passwd", LONG, "a\nb", "http://x", "*", RED)
SEARCH = ("search", "<run>", IMAGE)
EXPORT = ("export", "<run>", "--output", "<out>")
EMBED = ("embed", "<run>", "<images>", "--output", "<out>")
EVALUATE = ("evaluate", "<run>")
# Command, option, values that are refused.
REFUSED = (
    (EVALUATE, "--k", ("", "-1", "0", HUGE, "1e3", "map@5", "1;2", ",")),
    (SEARCH, "--k", ("", "-1", "0", "1e3", ",")),
    (EVALUATE, "--rerank", ("", "x", "NONE", "none,k_reciprocal")),
    (EVALUATE, "--index", ("", "x", "NONE")),
    (SEARCH, "--index", ("", "x", "NONE")),
    (SEARCH, "--decision", ("", "x", "NONE")),
    (EXPORT, "--format", ("", "x", "NONE", "none,k_reciprocal")),
    (EMBED, "--format", ("x", "NONE")),
    (SEARCH, "--dim", ("0", "-1", "3", "17", HUGE)),
    (EMBED, "--dim", ("0", "-1", "3", "17", HUGE)),
    (EXPORT, "--dim", ("0", "-1", "3", "17", HUGE)),
    (EXPORT, "--max-false-match-rate", ("nan", "inf", "-1", "2", "0")),
    (EXPORT, "--max-drop", ("nan", "inf", "-1")),
)
LISTS = ("recipes", "plans", "backbones", "datasets")
NAMES = ("", "x" * 5000, RED, "..", "/", "a\nb", "-1", "TRIPLET", "\u202e")
# The whole command, its code and what it says.
WHOLE_COMMANDS = (
    (("--nope",), 2, "--nope"),
    (("nope",), 2, "nope"),
    (("Fit",), 2, "Fit"),
    (("-",), 2, "-"),
    (("",), 2, ""),
    ((RED,), 2, "command"),
    (("x" * 5000,), 2, "command"),
    (("fit",), 2, "source"),
    (("fit", "x" * 5000), 2, "data set" + TOO_LONG),
    (("compare",), 2, "Missing|Give|needs"),
    (("search",), 2, "RUN"),
    (("evaluate",), 2, "run folder"),
    (("embed",), 2, "RUN"),
    (("export",), 2, "RUN"),
    (("report",), 2, "RUN"),
    (("push",), 2, "RUN"),
    (("push", "<run>"), 2, "OWNER/NAME"),
    (("push", "<run>", "x" * 5000), 2, "OWNER/NAME"),
    (("push", "<run>", f"{RED}/x"), 2, "OWNER/NAME"),
    (("push", "<run>", "../x"), 2, "OWNER/NAME"),
    (("config", "--diff"), 2, "--diff"),
    (("config", "--diff", "a"), 2, "--diff"),
    (("config", "--diff", "a", "b"), 2, "a"),
    (("config", "--diff", "triplet", "triplet"), 0, ""),
    (("config", "--diff", "/dev/null", "/dev/zero"), 2, "/dev/null"),
    (("config", "--diff", "<images>", "triplet"), 2, ""),
    (("config", "--diff", "-x", "ln"), 2, "-x"),
    (("config", "--json", "--json"), 0, ""),
    (("config", "--set"), 2, "--set"),
    (("config", "--set", "a=b=c"), 2, "`?a"),
    (("config", "--set", "model.dim=3=4"), 2, "--dim|model.dim"),
    (("config", "--set", "--set"), 2, "--set"),
    (("config", "--set="), 2, "key=value"),
    (("config", "--json=1"), 2, "--json"),
    (("config", "--min", "3"), 2, "--min"),
    (("evaluate", "<run>", "--embeddings", "<run>/x.npz"), 2, "both"),
    ((*SEARCH, IMAGE, "--json"), 0, ""),
    ((*SEARCH, "--k", "100000"), 0, ""),
    ((*EXPORT, "--format", "litert", "--gallery", "<images>"), 2, "--gallery"),
    ((*EXPORT, "--format", "litert", "--max-k", "3"), 2, "--max-k"),
    ((*EMBED[:-1], "/dev/null"), 2, "/dev/null"),
    ((*EMBED[:-1], "/proc/x"), 2, "/proc/x"),
)


def _name(*words):
    """A name of a test: printable, short, and its own."""
    text = " ".join(words)
    return f"{ascii(text)[1:-1][:60]} ({len(text)})"


def _cases():
    with_source = itertools.chain.from_iterable(
        _options(("config", "<images>"), one) for one in OF_SOURCES
    )
    of_config = itertools.chain.from_iterable(
        _options(("config",), one) for one in OF_CONFIG
    )
    yield from itertools.chain(of_config, with_source)
    for word in SOURCES:
        yield Case(
            _name("config SOURCE", word),
            ("config", "--", word),
            "data set|folder|image" + TOO_LONG,
        )
    for (name, (words, said)), word in itertools.product(READERS.items(), READ):
        filled = [word if one == "<word>" else one for one in words]
        yield Case(_name(name, word), filled, said + TOO_LONG)
    for words, option, values in REFUSED:
        for value in values:
            yield Case(
                _name(words[0], option, value),
                (*words, f"{option}={value}"),
                option[2:],
            )
    for kind, word in itertools.product(LISTS, NAMES):
        yield Case(_name(kind, word), (kind, "--", word), "")
    for words, code, said in WHOLE_COMMANDS:
        yield Case(_name("whole:", *words), words, said, code=code)


def _options(words, option):
    name, values, taken, said = option
    for value in values:
        yield Case(
            _name(*words, name, value),
            (*words, f"{name}={value}"),
            "" if value in taken else said,
            code=0 if value in taken else 2,
        )


CASES = list(_cases())
