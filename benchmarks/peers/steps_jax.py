"""Training steps of `loss_speed_keras_dml.py` under JAX."""

import jax
import keras

# Else a GPU rounds the factors of products to 10 bits, which PyTorch does not.
jax.config.update("jax_default_matmul_precision", "highest")


def step(model, x, labels, weights, mode):
    def value_of(x, values, labels):
        state = list(zip(weights, values, strict=True))
        with keras.StatelessScope(state_mapping=state):
            return model(x, labels)

    compute = jax.jit(jax.value_and_grad(value_of, argnums=(0, 1)))
    values = [weight.value for weight in weights]

    def run():
        value, (of_x, of_weights) = compute(x, values, labels)
        return jax.block_until_ready((value, of_x, *of_weights))

    return run


def floor(products, *factors):
    compute = jax.jit(products)
    return lambda: jax.block_until_ready(compute(*factors))


def peak_growth(step):
    """JAX's count of its peak cannot start anew."""
