"""Arguments of `make_embedder`: one embedder of every kind.

All but "batch_norm" have a LayerNormalization, the default.
"""

MODELS = {
    "k_max": {"pooling": "k_max", "k": 2},
    "average_plus_max": {"pooling": "average_plus_max"},
    "generalized_mean": {"pooling": "generalized_mean"},
    "batch_norm": {"normalization": "batch_norm", "layer_norm": False},
    "raw": {"normalize": False},
    "frozen_statistics": {"batch_norm": "frozen_statistics"},
    "gray": {"channels": 1},
    "mixed_bfloat16": {"policy": "mixed_bfloat16"},
    "mixed_float16": {"policy": "mixed_float16"},
}
