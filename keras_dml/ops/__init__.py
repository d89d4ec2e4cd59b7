"""Tensor operations that layers and losses share, for any Keras backend."""

from keras_dml.ops.average import Average as Average
from keras_dml.ops.average import (
    balanced_class_weights as balanced_class_weights,
)
from keras_dml.ops.draws import (
    distance_weighted_negatives as distance_weighted_negatives,
)
from keras_dml.ops.gradients import custom_gradient as custom_gradient
from keras_dml.ops.pairs import Pairs as Pairs
from keras_dml.ops.pairs import pair_distances as pair_distances
from keras_dml.ops.pairs import pair_masks as pair_masks
from keras_dml.ops.pairs import pair_similarities as pair_similarities
from keras_dml.ops.pairs import rows_with_both as rows_with_both
from keras_dml.ops.reductions import batch_mean as batch_mean
from keras_dml.ops.reductions import column_sums as column_sums
from keras_dml.ops.reductions import count as count
from keras_dml.ops.reductions import (
    log_one_plus_sum_exp as log_one_plus_sum_exp,
)
from keras_dml.ops.reductions import log_sum_exp as log_sum_exp
from keras_dml.ops.reductions import masked_max as masked_max
from keras_dml.ops.reductions import masked_mean as masked_mean
from keras_dml.ops.reductions import masked_min as masked_min
from keras_dml.ops.reductions import masked_sum as masked_sum
from keras_dml.ops.reductions import over_replicas as over_replicas
from keras_dml.ops.reductions import rounding as rounding
from keras_dml.ops.reductions import row_sums as row_sums
from keras_dml.ops.rows import add_rows as add_rows
from keras_dml.ops.rows import distinct as distinct
from keras_dml.ops.rows import entries as entries
from keras_dml.ops.rows import read_rows as read_rows
from keras_dml.ops.rows import write_rows as write_rows
from keras_dml.ops.sample_aware import WeightedExponents as WeightedExponents
from keras_dml.ops.sample_aware import effective_number as effective_number
from keras_dml.ops.sample_aware import join_exponents as join_exponents
from keras_dml.ops.sample_aware import lower_bound as lower_bound
from keras_dml.ops.sample_aware import negative_weight as negative_weight
from keras_dml.ops.sample_aware import positive_weight as positive_weight
from keras_dml.ops.sample_aware import search_length as search_length
from keras_dml.ops.sample_aware import sigma as sigma
from keras_dml.ops.sample_aware import split_exponents as split_exponents
from keras_dml.ops.sampling import positions_in_sample as positions_in_sample
from keras_dml.ops.sampling import sample_classes as sample_classes
from keras_dml.ops.similarities import mutual_repulsion as mutual_repulsion
from keras_dml.ops.similarities import (
    products_with_unit_rows as products_with_unit_rows,
)
from keras_dml.ops.similarities import proxy_similarities as proxy_similarities
from keras_dml.ops.similarities import unit_rows as unit_rows
from keras_dml.ops.whitening import Projection as Projection
from keras_dml.ops.whitening import (
    within_class_whitening as within_class_whitening,
)
