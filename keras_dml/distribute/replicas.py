"""Tells layers and losses about the replica that they run on."""

import keras


def all_gather(x):
    """Concatenates `x` over the replicas; returns `x` outside a strategy.

    It is differentiable: the gradient is summed over the replicas, and each
    replica gets the part of its own rows.

    Args:
        x: Tensor `(rows, ...)`; only the number of rows may differ between
            the replicas.

    Returns:
        Tensor `(all rows, ...)`, the rows of replica 0 first.
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


def first_row(x):
    """Returns where the rows of this replica begin in `all_gather(x)`.

    Args:
        x: Tensor `(rows, ...)`.

    Returns:
        Integer, or int32 tensor; 0 outside a strategy.
    """
    context = _replica_context()
    if num_replicas() == 1 or context is None:
        return 0
    import tensorflow as tf

    # A batch that does not divide by the replicas gives them unlike numbers.
    counts = context.all_gather(tf.shape(x)[:1], axis=0)
    return tf.reduce_sum(counts[: context.replica_id_in_sync_group])


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
