"""keras-dml: deep metric learning for TensorFlow and Keras 3.

The main names are at the top level: `fit` trains an embedder, `Run` opens a
finished run, `compare` compares recipes, `evaluate` measures embeddings from
any source, and `ImageEmbedder` maps images to embeddings. Everything else is
in the packages.

Everything loads on first use. Keras knows the layers, losses and optimizers of
this package after `keras_dml.layers`, `keras_dml.losses` and
`keras_dml.optimizers` have been used; `models.load_embedder` loads them.

Example:

```python
import keras_dml

run = keras_dml.fit("digits", output="runs/digits")
print(run.metrics["after"]["recall@1"])
```
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from keras_dml.version import __version__

# On a processor TensorFlow gives the memory of each large tensor back to the
# system and takes it anew for the next: up to a third of a training step. The
# allocator that it has for GPUs keeps the memory, by default of 64 GB at most;
# a tebibyte is no limit. It reads these when it makes its first tensor.
# oneDNN's convolutions are faster, but without AVX-512 TensorFlow leaves them
# off; that it reads when it is imported, so `import keras_dml` comes first.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(2**20))
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

if TYPE_CHECKING:
    from keras_dml import (
        callbacks,
        comparison,
        config,
        data,
        distribute,
        embed,
        embeddings,
        errors,
        evaluation,
        export,
        initializers,
        layers,
        losses,
        metrics,
        miners,
        models,
        ops,
        optimizers,
        push,
        regularizers,
        report,
        run,
        search,
        tuning,
    )
    from keras_dml.api import Run, fit
    from keras_dml.comparison.compare import compare
    from keras_dml.embed.embedder import ImageEmbedder
    from keras_dml.evaluation.measured import evaluate

_HOMES = {
    "ImageEmbedder": ("keras_dml.embed.embedder", "ImageEmbedder"),
    "Run": ("keras_dml.api", "Run"),
    "compare": ("keras_dml.comparison.compare", "compare"),
    "evaluate": ("keras_dml.evaluation.measured", "evaluate"),
    "fit": ("keras_dml.api", "fit"),
}

__all__ = [
    "ImageEmbedder",
    "Run",
    "__version__",
    "callbacks",
    "compare",
    "comparison",
    "config",
    "data",
    "distribute",
    "embed",
    "embeddings",
    "errors",
    "evaluate",
    "evaluation",
    "export",
    "fit",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "miners",
    "models",
    "ops",
    "optimizers",
    "push",
    "regularizers",
    "report",
    "run",
    "search",
    "tuning",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, attribute = _HOMES[name]
        value = getattr(importlib.import_module(module), attribute)
    elif name in __all__:
        value = importlib.import_module(f"keras_dml.{name}")
    else:
        raise AttributeError(f"module 'keras_dml' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
