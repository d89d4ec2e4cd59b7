"""Tells layers and losses about the replica that they run on."""

import keras


def all_gather(x):
    """Concatenates `x` over the replicas; returns `x` outside a strategy.

    It is differentiable: the gradient is summed over the replicas, and each
    replica gets the part of its own rows.

    Args:
        x: Tensor `(rows, ...)`, of the same shape on every replica.

    Returns:
        Tensor `(replicas * rows, ...)`, the rows of replica 0 first.
    """
    context = _replica_context()
    if num_replicas() == 1:
        return x
    import tensorflow as tf

    if context is None:
        # Keras builds a model outside the replicas, only to find its shapes.
        return tf.concat([x] * num_replicas(), axis=0)

    # `all_gather` loses the static shape.
    return tf.ensure_shape(context.all_gather(x, axis=0), [None, *x.shape[1:]])


def sum_over_replicas(tensors):
    """Returns the sums of a list of tensors, sparse ones among them."""
    context = _replica_context()
    if num_replicas() == 1 or context is None:
        return tensors
    import tensorflow as tf

    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def replica_index():
    """Returns the index of the current replica; 0 outside a strategy."""
    context = _replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def local_variable(variable):
    """Returns this replica's TensorFlow variable of a Keras variable.

    Changing it in place changes only this replica's copy.

    Args:
        variable: Keras variable, with `aggregation="none"`.

    Returns:
        A `tf.Variable`; `None` on other backends, outside the replicas of a
        strategy, and while Keras traces shapes.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    value = variable.value
    if isinstance(value, tf.distribute.DistributedValues):
        context = _replica_context()
        if context is None:
            return None
        index = tf.get_static_value(context.replica_id_in_sync_group)
        # A worker holds only the copies of its own replicas.
        return value.values[int(index) % len(value.values)]
    return value if isinstance(value, tf.Variable) else None


def num_replicas() -> int:
    """Returns the number of replicas of the strategy; 1 outside a strategy."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def _replica_context():
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()
