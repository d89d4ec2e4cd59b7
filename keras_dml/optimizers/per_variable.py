"""An optimizer for each group of variables."""

import re

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.optimizers.learning_rate import rate_of
from keras_dml.optimizers.row_lazy_adam import whole_rows

# Stands in a config for the default optimizer; no rule is empty.
_DEFAULT = ""


@keras.saving.register_keras_serializable(package="keras_dml")
class PerVariable(keras.optimizers.Optimizer):
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
            learning_rate=0.0, loss_scale_factor=loss_scale_factor, name=name
        )
        self._default = default
        self._rules = dict(rules)
        # Weights are saved in this order. One optimizer may have many rules.
        self._inner = list(dict.fromkeys([*rules.values(), default]))
        # Of the rates to the largest, when it was last above zero.
        self._ratios = (1.0,) * len(self._inner)
        self.loss_scale_factor = loss_scale_factor

    @property
    def default(self) -> keras.optimizers.Optimizer:
        """Optimizer of the variables that no rule matches."""
        return self._default

    @property
    def rules(self) -> dict[str, keras.optimizers.Optimizer]:
        """A copy of the rules."""
        return dict(self._rules)

    @property
    def optimizers(self) -> list[keras.optimizers.Optimizer]:
        """The optimizers, each once, the default last."""
        return list(self._inner)

    @property
    def variables(self):
        inner = [one for each in self._inner for one in each.variables]
        return [*self._variables, *inner]

    @property
    def learning_rate(self):
        """The largest of the rates. Setting it scales all of them alike.

        Rates of zero keep the ratios that they had before.

        For callbacks of Keras before 3.15, which know of one rate only.
        """
        return max(self._inner, key=rate_of).learning_rate

    @learning_rate.setter
    def learning_rate(self, value):
        rates = [rate_of(one) for one in self._inner]
        if max(rates) > 0:
            self._ratios = tuple(rate / max(rates) for rate in rates)
        for one, ratio in zip(self._inner, self._ratios, strict=True):
            one.learning_rate = ratio * float(value)

    @property
    def loss_scale_factor(self) -> float | None:
        """Float or `None`, what the loss was multiplied by."""
        return self._loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, value):
        self._loss_scale_factor = value
        # The constructor of Keras sets it before there are any.
        for one in getattr(self, "_inner", ()):
            one.loss_scale_factor = value

    def rule_of(self, path: str) -> str | None:
        """Returns the rule that matches a path; `None` for the default.

        Args:
            path: The `path` of a variable.

        Raises:
            ValueError: If two rules match.
        """
        matches = [rule for rule in self._rules if re.fullmatch(rule, path)]
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
        used = [self.rule_of(path) for path in paths]
        for rule in self._rules:
            if rule not in used:
                raise ValueError(
                    f"The rule {rule!r} matches no trainable variable. Rules "
                    "must match the whole path. "
                    f"Received: trainable variables {paths}"
                )
        self._places = {
            self._var_key(variable): self._inner.index(
                self._default if rule is None else self._rules[rule]
            )
            for variable, rule in zip(var_list, used, strict=True)
        }
        for one, variables in self._grouped(var_list):
            one.build(variables)
        super().build(var_list)

    def apply(self, grads, trainable_variables=None):
        if not self.built:
            self.build(list(trainable_variables))
        variables = trainable_variables or self._trainable_variables
        gradients = {
            self._var_key(variable): gradient
            for gradient, variable in zip(grads, variables, strict=True)
            if gradient is not None
        }
        if not gradients:
            raise ValueError(
                "No variable got a gradient. Received: variables "
                f"{[variable.path for variable in variables]}"
            )
        changed = [one for one in variables if self._var_key(one) in gradients]
        for optimizer, group in self._grouped(changed):
            found = [gradients[self._var_key(one)] for one in group]
            found = _clipped_as_one_device(optimizer, found)
            optimizer.apply_gradients(list(zip(found, group, strict=True)))
        self._iterations.assign_add(1)

    def finalize_variable_values(self, var_list):
        for optimizer, group in self._grouped(var_list):
            optimizer.finalize_variable_values(group)

    def set_weights(self, weights):
        for variable, value in zip(self.variables, weights, strict=True):
            variable.assign(value)

    def get_config(self):
        return {
            "default": keras.saving.serialize_keras_object(self._default),
            "rules": {
                rule: self._place_or_config(rule, optimizer)
                for rule, optimizer in self._rules.items()
            },
            "loss_scale_factor": self.loss_scale_factor,
            "name": self.name,
        }

    def _place_or_config(self, rule, optimizer):
        """Returns a config, or the earlier rule that has this optimizer."""
        if optimizer is self._default:
            return _DEFAULT
        first = next(
            key for key, one in self._rules.items() if one is optimizer
        )
        if first != rule:
            return first
        return keras.saving.serialize_keras_object(optimizer)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = keras.saving.deserialize_keras_object(
            config, custom_objects=custom_objects
        )
        owners = {_DEFAULT: config["default"], **config["rules"]}
        rules = {
            rule: owners[one] if isinstance(one, str) else one
            for rule, one in config["rules"].items()
        }
        return cls(**{**config, "rules": rules})

    def _grouped(self, variables):
        """Yields each optimizer that has some of the variables, with them."""
        groups: dict[int, list] = {}
        for variable in variables:
            try:
                place = self._places[self._var_key(variable)]
            except KeyError:
                raise ValueError(
                    f"The variable {variable.path!r} was not trainable when "
                    "the optimizer was built. Compile with a new optimizer "
                    "after freezing or unfreezing."
                ) from None
            groups.setdefault(place, []).append(variable)
        for place, group in groups.items():
            yield self._inner[place], group


def _clipped_as_one_device(optimizer, gradients):
    """Returns gradients of a replica that are clipped by their sum.

    Keras clips those of each replica, before it adds them up: `R` replicas
    would train another model than one device does.
    """
    replicas = distribute.num_replicas()
    limits = ("clipvalue", "clipnorm", "global_clipnorm")
    if replicas == 1 or not any(getattr(optimizer, one) for one in limits):
        return gradients
    summed = map(whole_rows, distribute.sum_over_replicas(gradients))
    clipped = optimizer._clip_gradients(list(summed))
    # Their sum is what was clipped, and the clipping of a part does nothing.
    return [ops.divide(one, replicas) for one in clipped]


def _check_optimizer(argument, optimizer):
    holds_others = hasattr(optimizer, "inner_optimizer") or hasattr(
        optimizer, "optimizers"
    )
    if not isinstance(optimizer, keras.optimizers.Optimizer) or holds_others:
        raise TypeError(
            f"`{argument}` must be a Keras optimizer that holds no other one. "
            f"Received: {optimizer!r}"
        )
