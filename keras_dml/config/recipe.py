"""A recipe with those it builds on, and the sections of its file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_dml.brief import Brief
from keras_dml.config.merging import Layer, Merged, flatten
from keras_dml.wording import listed, metric_title

_CASES = ("backbones", "sources")


@dataclass(frozen=True, repr=False)
class Recipe(Brief):
    """A recipe and those it builds on, not yet resolved for a data set.

    Attributes:
        name: The recipe's name, or the stem of its file.
        about: What it is, in one sentence.
        paper: Authors, year and title.
        expected: The number that the paper reports.
        backbone: The network of the paper.
        group: What it is good for, a key of `GROUPS`.
        use: When to take it, in one sentence.
        cost: What a step of it costs, in one sentence.
        measured: Metrics that it reached here, see `docs/lab/papers.md`.
        bases: Names of the recipes it builds on, the first one first.
        sources: Names of the data sets of the paper.
        presets: Names of its presets.
    """

    name: str
    about: str
    paper: str
    expected: str
    backbone: str
    group: str
    use: str
    cost: str
    measured: Mapping[str, float]
    bases: tuple[str, ...]
    sources: tuple[str, ...]
    presets: tuple[str, ...]
    _files: tuple[tuple[str, Mapping[str, Any]], ...]

    def _brief_title(self) -> str:
        return f"Recipe {self.name}: {self.about}"

    @property
    def result(self) -> str:
        """`measured` in words, empty if nothing was."""
        if not self.measured:
            return ""
        values = [
            f"{metric_title(metric)} {value:.3f}"
            for metric, value in self.measured.items()
        ]
        return (
            f"{listed(values)} on unseen characters of Omniglot, after 200 "
            "steps from scratch, with Adam and without quarter turns"
        )

    def layers(
        self, part: str, key: str = "", *, source: str = "", backbone: str = ""
    ) -> list[Layer]:
        """Returns the partial configurations of a part, bases first.

        Args:
            part: `"common"`, `"default"`, `"pretrained"`, `"published"`,
                `"sources"` or `"presets"`.
            key: Name of the data set or preset. Defaults to `""`.
            source: The data set whose changes are taken too. Defaults to `""`.
            backbone: The network whose changes are taken too. Defaults to
                `""`.

        Example:

        >>> from keras_dml.config import load_recipe
        >>> [layer.origin for layer in load_recipe("triplet").layers("default")]
        ['_base: default', 'triplet: default']
        """
        of = {"sources": source, "backbones": backbone}
        return [
            Layer(f"{name}: {section.name}", section.values)
            for name, content in self._files
            for section in sections_of(content, part, key)
            if all(case == of[kind] for kind, case in section.cases)
        ]

    def own(self, part: str, key: str = "") -> list[tuple[str, str, Any]]:
        """Returns the settings of a part of this file, without its bases.

        Args:
            part: As for `layers`.
            key: As for `layers`. Defaults to `""`.

        Returns:
            Tuples of the part, the key of a setting and its value.
        """
        found = []
        name, content = self._files[-1]
        for section in sections_of(content, part, key):
            merged = Merged([Layer(name, section.values)])
            values = flatten(merged.values)
            # The keys of an item's other settings already contain its name.
            prefixes = [setting.rpartition(".")[0] for setting in values]
            found += [
                (section.name, setting, value)
                for setting, value in values.items()
                if not setting.endswith(".name")
                or prefixes.count(setting.removesuffix(".name")) == 1
            ]
        return found


class _Section(NamedTuple):
    """Settings of a part of a recipe's file.

    Attributes:
        name: Its place in the file, such as `"published.backbones.resnet50"`.
        cases: What it holds for: pairs such as `("backbones", "resnet50")`.
        values: The partial configuration.
    """

    name: str
    cases: tuple[tuple[str, str], ...]
    values: Mapping[str, Any]


def sections_of(
    content: Mapping[str, Any], part: str, key: str
) -> Iterator[_Section]:
    """Yields the settings of a part, then those for some cases of it."""
    values = content.get(part) or {}
    values = (values.get(key) if key else values) or {}
    yield from _cases(_Section(f"{part}.{key}" if key else part, (), values))


def _cases(section: _Section) -> Iterator[_Section]:
    own = {k: v for k, v in section.values.items() if k not in _CASES}
    if own:
        yield section._replace(values=own)
    for kind in _CASES:
        for case, changes in (section.values.get(kind) or {}).items():
            yield from _cases(
                _Section(
                    f"{section.name}.{kind}.{case}",
                    (*section.cases, (kind, case)),
                    changes or {},
                )
            )
