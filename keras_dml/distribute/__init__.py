# ruff: noqa: F401
"""Connects to `tf.distribute`: devices, replicas and workers.

On backends other than TensorFlow there is one replica on one worker, and
functions that exchange values return them unchanged.
"""

from keras_dml.distribute.accelerators import (
    backend_version,
    get_backend,
    leave_accelerators,
)
from keras_dml.distribute.cluster import Cluster, read_cluster
from keras_dml.distribute.errors import (
    PREEMPTED,
    RESTART,
    PeerLostError,
)
from keras_dml.distribute.replicas import (
    all_gather,
    first_row,
    local_variable,
    num_replicas,
    sum_over_replicas,
)
from keras_dml.distribute.strategies import (
    PEER_TIMEOUT,
    STRATEGIES,
    SingleDevice,
    get_strategy,
    set_logical_devices,
)
from keras_dml.distribute.workers import (
    broadcast,
    gather,
    gather_bytes,
    gather_rows,
    is_chief,
    num_workers,
    own_rows,
    together,
    worker_index,
)
