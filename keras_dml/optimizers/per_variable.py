"""An optimizer for each group of variables."""

import re

import keras


@keras.saving.register_keras_serializable(package="keras_dml")
class PerVariable(keras.optimizers.MultiOptimizer):
    """Optimizes each group of variables with its own optimizer.

    Regular expressions over the paths of variables form the groups.

    Each optimizer keeps its own learning rate or schedule, clipping and
    decay; its `global_clipnorm` is over the variables of its group. Two
    optimizers with the same settings train exactly as one. If a group gets no
    gradient in a step, its optimizer makes no step: even its step count stays.

    Name the optimizers: the names label the rows of `group_table` and the
    learning rates in the logs.

    Args:
        default: Optimizer of the variables that no rule matches.
        rules: Dict of regular expressions, which must match the whole
            `variable.path`, to optimizers.
        loss_scale_factor: Float or `None`. Defaults to `None`.
        name: String. Defaults to `None`, a name made by Keras.

    Raises:
        TypeError: If `default` or a value of `rules` is not an optimizer, or
            is one that holds other optimizers.
        ValueError: If a rule is not a regular expression; when the optimizer
            is built, if a rule matches no variable or two rules match the
            same variable.

    Example:

    ```python
    optimizer = PerVariable(
        keras.optimizers.Adam(1e-5, name="backbone"),
        {
            "head/.*": keras.optimizers.Adam(1e-4, name="head"),
            "proxies/.*": keras.optimizers.Adam(1e-2, name="proxies"),
        },
    )
    model.compile(optimizer, loss=loss)
    ```
    """

    def __init__(self, default, rules, loss_scale_factor=None, name=None):
        _check_optimizer("default", default)
        for rule, optimizer in rules.items():
            _check_optimizer(f"rules[{rule!r}]", optimizer)
            try:
                re.compile(rule)
            except re.error as error:
                raise ValueError(
                    f"The rule {rule!r} is not a regular expression: {error}. "
                    f"Received: rules={list(rules)}"
                ) from error
        super().__init__(
            keras.optimizers.OptimizerMap(default, dict(rules)),
            loss_scale_factor=loss_scale_factor,
            name=name,
        )

    @property
    def default(self) -> keras.optimizers.Optimizer:
        """Optimizer of the variables that no rule matches."""
        return self._optimizer_map.default_optimizer

    @property
    def rules(self) -> dict[str, keras.optimizers.Optimizer]:
        """A copy of the rules."""
        return {rule: self._optimizer_map[rule] for rule in self._optimizer_map}

    def rule_of(self, path: str) -> str | None:
        """Returns the rule that matches a path; `None` for the default.

        Args:
            path: The `path` of a variable.

        Raises:
            ValueError: If two rules match.
        """
        matches = [
            rule for rule in self._optimizer_map if re.fullmatch(rule, path)
        ]
        if len(matches) > 1:
            raise ValueError(
                f"Only one rule may match a variable, but {matches} match "
                f"{path!r}. Make the rules exclude each other."
            )
        return matches[0] if matches else None

    def build(self, var_list):
        if self.built:
            return
        paths = [variable.path for variable in var_list]
        used = {self.rule_of(path) for path in paths}
        for rule in self._optimizer_map:
            if rule not in used:
                raise ValueError(
                    f"The rule {rule!r} matches no trainable variable. Rules "
                    "must match the whole path. "
                    f"Received: trainable variables {paths}"
                )
        super().build(var_list)

    def apply(self, grads, trainable_variables=None):
        if not self.built:
            self.build(list(trainable_variables))
        variables = trainable_variables or self._trainable_variables
        groups: dict[int, list] = {}
        for gradient, variable in zip(grads, variables, strict=True):
            if gradient is not None:
                index = self._group_index(variable)
                groups.setdefault(index, []).append((gradient, variable))
        if not groups:
            raise ValueError(
                "No variable got a gradient. Received: variables "
                f"{[variable.path for variable in variables]}"
            )
        for index, pairs in groups.items():
            self.optimizers[index].apply_gradients(pairs)
        self._iterations.assign_add(1)

    def get_config(self):
        config = super().get_config()
        optimizers = config.pop("optimizer_map")["config"]
        config["default"] = optimizers["default_optimizer"]
        config["rules"] = optimizers["optimizer_map"]
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(
            **keras.saving.deserialize_keras_object(
                config, custom_objects=custom_objects
            )
        )

    def _group_index(self, variable):
        try:
            return self._var_to_optimizer_idx[self._var_key(variable)]
        except KeyError:
            raise ValueError(
                f"The variable {variable.path!r} was not trainable when the "
                "optimizer was built. Compile with a new optimizer after "
                "freezing or unfreezing."
            ) from None


def _check_optimizer(argument, optimizer):
    holders = (
        keras.optimizers.LossScaleOptimizer,
        keras.optimizers.MultiOptimizer,
    )
    if not isinstance(optimizer, keras.optimizers.Optimizer) or isinstance(
        optimizer, holders
    ):
        raise TypeError(
            f"`{argument}` must be a Keras optimizer that holds no other one. "
            f"Received: {optimizer!r}"
        )
