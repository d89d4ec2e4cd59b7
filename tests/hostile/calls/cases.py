"""Odd arguments of functions of Python, as expressions.

`V` are 20 embeddings of 4 numbers, `L` their labels, two rows of each of ten;
`vectors` is an `EmbeddingSet` of both.
"""

# By the argument that is named: what is given.
EVALUATE = {
    "embeddings": (
        "None",
        "3",
        "[]",
        "[[1.0, 2.0], [1.0]]",
        "V[0]",
        "V[:, :0]",
        "V.astype(complex)",
        "V.astype(object)",
        "V * np.nan",
        "V.astype(np.longdouble) * np.longdouble('1e4000')",
        "np.zeros(20, [('a', 'f4')])",
        "keras.Input((4,))",
        "tf.ragged.constant([[1.0, 2.0], [1.0]])",
        "keras.Sequential()",
    ),
    "labels": (
        "[[0], [1, 2]] * 10",
        "[None, 1] * 10",
        "[1, '1'] * 10",
        "np.array([np.nan, 1.0] * 10, object)",
        "L.astype(float)",
        "L.astype('datetime64[D]')",
        "L[:, None] + 2",
        "'abc'",
        "(x for x in L)",
        "L[:5]",
        "3",
        "[object()] * 20",
        "[{'a'}, ('b',)] * 10",
        "np.full((20, 3), 2)",
        "np.full((20, 3), np.nan)",
        "-np.ones((20, 3))",
        "[1] * 3",
    ),
    "k": (
        "'1'",
        "0",
        "-1",
        "True",
        "1.0",
        "float('nan')",
        "None",
        "[]",
        "10**30",
        "b'1'",
        "[[1]]",
        "np.ones((2, 2), int)",
        "{1: 2}.items()",
        "itertools.count(1)",
        "(n for n in iter(int, 1))",
    ),
    "metric": (
        "(1, '1')",
        "(1, 'map@0')",
        "(1, 'map@-1')",
        "(1, 'map@x')",
        "(1, 'map@01')",
        "(1, 'map@ 1')",
        "(1, 'map@\u0661')",
        "(1, 'map@' + '9' * 5000)",
    ),
    "normalize": ("'false'", "None", "V", "0"),
    "per_class": ("'no'", "None", "V"),
    "index": ("None", "[]", "'Exact'", "3"),
    "rerank": ("None", "3", "{}", "V"),
    "clustering": ("'yes'", "V", "{'nope': 3}"),
    "num_starts": ("{'num_starts': 0}", "{'num_starts': 1.5}"),
    "seed": ("{'seed': -1}", "{'seed': 2**32}"),
    "intervals": ("1", "None", "['queries']", "V", "'rows'"),
    "references": ("()", "(V,)", "(V, L, L)", "(V[:, :2], L)", "(V, L[:3])"),
}
# The arguments that stand for another one.
OF = {"metric": "k", "num_starts": "clustering", "seed": "clustering"}
# What an error names instead of the argument.
NAMED = {
    "labels": "labels`",
    "metric": "metric",
    "references": "references|reference_embeddings|labels|embeddings",
    "clustering": "clustering|argument",
}
SET = {
    "embeddings": ("None", "[]", "V[0]", "[[1.0], [1.0, 2.0]]"),
    "labels": ("[[1], [1, 2]] * 10", "L[:3]", "3", "[2.5, None] * 10"),
    "ids": (
        "list(range(19)) + ['x']",
        "[None] * 20",
        "np.arange(20)[:, None]",
        "[1] * 20",
        "3",
    ),
    "role": (
        "[0] * 20",
        "[None] * 20",
        "'query'",
        "['query', 'gallery']",
        "['query'] * 20",
    ),
    "class_names": ("['a'] * 9 + [None]", "['a']", "{0: 'a'}", "3"),
}
ROWS = ("'abc'", "[99]", "[0.5]", "[True]", "3", "None", "V", "{1}")
# Whole expressions, and what their error says.
REFUSED = (
    ("save_embeddings(None, vectors)", "`path`"),
    ("save_embeddings(3, vectors)", "`path`"),
    ("save_embeddings(b'a.npz', vectors)", "`path`"),
    ("save_embeddings(vectors, 'a.npz')", "`path`"),
    ("save_embeddings('.', vectors)", "`path`.*a folder"),
    ("save_embeddings('a.npz', V)", "`embeddings`.*EmbeddingSet"),
    ("save_embeddings('a.npz', None)", "`embeddings`.*EmbeddingSet"),
    (
        "save_embeddings('a.parquet', EmbeddingSet(V, ['\\udcff'] * 20))",
        "UTF-8.*udcff",
    ),
    ("load_embeddings(None)", "`path`"),
    ("load_embeddings(0)", "`path`"),
    ("load_embeddings('https://x.y/a.npz')", "no file"),
    ("list(iterate_embeddings('nope'))", "nope"),
    ("evaluate('')", "''|embeddings"),
    ("evaluate('.')", "manifest.json"),
    ("evaluate(V)", "`labels`"),
    ("evaluate(vectors, labels=[1])", "`labels`"),
    ("evaluate(V[:1], [0])", "positive reference"),
    ("evaluate(V, np.arange(20))", "positive reference"),
    ("evaluate(V, [set()] * 20)", "positive reference"),
    ("evaluate(V[:0], [])", "`embeddings`|one row|positive"),
    ("vectors.select([1, 1])", "`ids`"),
)
TAKEN = (
    "evaluate(V, L, k={1})",
    "evaluate(V, L, k=np.array(3))",
    "evaluate(V, L, k=range(1, 5))",
    "evaluate(V, L, k=[1, 1])",
    "evaluate(V, L, k=10**12)",
    "evaluate(V, L > 5)",
    "evaluate(V, L - 100)",
    "evaluate(V, [{0}, {0, 1}] * 10)",
    "evaluate(V, [set(), {1}] * 10)",
    "evaluate(np.zeros((20, 4)), L)",
    "evaluate(V * 1e38, L)",
    "evaluate(V * 1e-42, L)",
    "evaluate(tf.cast(V, tf.bfloat16), L)",
    "evaluate(np.zeros((20, 4)), L, clustering=True)",
    "evaluate(V, [{0}, {0, 1}] * 10, intervals=True)",
    "evaluate(V, L, references=(V + 1, L))",
    "evaluate(EmbeddingSet(V, [{1}, {2}] * 10))",
    "vectors.select([])",
    "vectors.select(slice(0, 5))",
    "vectors.select(L > 3)",
    "EmbeddingSet(V[:0])",
    "EmbeddingSet(V, [{'a'}, {'a', 'b'}] * 10)",
)


def _refused():
    for name, values in EVALUATE.items():
        said = NAMED.get(name, rf"`{name}`")
        for value in values:
            if name == "embeddings":
                yield f"evaluate({value}, L)", said
            elif name == "labels":
                yield f"evaluate(V, {value})", said
            else:
                yield f"evaluate(V, L, {OF.get(name, name)}={value})", said
    for name, values in SET.items():
        arguments = {"embeddings": "V", "labels": "L"}
        for value in values:
            given = {**arguments, name: value}
            words = ", ".join(f"{key}={one}" for key, one in given.items())
            yield f"EmbeddingSet({words})", rf"`{name}`"
    for value in ROWS:
        yield f"vectors.select({value})", "`rows`"
    yield from REFUSED


CASES = list(_refused())
