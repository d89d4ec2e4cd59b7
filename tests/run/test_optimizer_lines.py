from keras_dml.optimizers import OptimizerGroup
from keras_dml.run.optimizer_lines import optimizer_lines

BLOCK = OptimizerGroup(
    group="block_3",
    rule="(" + "|".join(f"stage_{n}/conv/kernel" for n in range(40)) + ")",
    variables=1,
    parameters=1234567,
    optimizer="TorchAdam",
    learning_rate=1.23456789e-5,
    schedule="CosineDecay by way of 0.000123457",
    clip="global norm 0.001",
    decay="decoupled 0.0001",
)


def test_a_long_rule_is_cut_and_every_line_fits():
    text = optimizer_lines([BLOCK, BLOCK._replace(group="backbone", rule="")])
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 12
    assert "block_3: 1,234,567 parameters in 1 variable, rule (" in text
    assert "backbone: 1,234,567 parameters in 1 variable, no rule" in text
    assert "learning rate 1.23457e-05" in text
    assert "clipping: global norm 0.001; weight decay: decoupled 0.0001" in text
