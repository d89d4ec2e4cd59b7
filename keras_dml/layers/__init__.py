"""Keras layers for metric learning: pooling, head, proxies, logits."""

from keras_dml.layers.class_boundaries import ClassBoundaries
from keras_dml.layers.cross_batch_memory import CrossBatchMemory
from keras_dml.layers.distillation import Distillation
from keras_dml.layers.embedding_head import EmbeddingHead
from keras_dml.layers.frozen_statistics_batch_normalization import (
    FrozenStatisticsBatchNormalization,
)
from keras_dml.layers.global_average_plus_max_pooling_2d import (
    GlobalAveragePlusMaxPooling2D,
)
from keras_dml.layers.global_generalized_mean_pooling_2d import (
    GlobalGeneralizedMeanPooling2D,
)
from keras_dml.layers.global_k_max_pooling_2d import GlobalKMaxPooling2D
from keras_dml.layers.high_order_moments import (
    HighOrderMoments,
    high_order_moments,
)
from keras_dml.layers.image_preprocessing import (
    ImagePreprocessing,
    preprocess_images,
)
from keras_dml.layers.in_chunks import InChunks
from keras_dml.layers.manifold_similarities import ManifoldSimilarities
from keras_dml.layers.nested_network import NestedNetwork
from keras_dml.layers.predictor import Predictor
from keras_dml.layers.proxies import Proxies
from keras_dml.layers.sample_aware_proxies import SampleAwareProxies
from keras_dml.layers.sampled_proxies import SampledProxies
from keras_dml.layers.scaled_logits import ScaledLogits
from keras_dml.layers.token_pooling import TokenPooling, pool_tokens
from keras_dml.layers.training_step import TrainingStep

__all__ = [
    "ClassBoundaries",
    "CrossBatchMemory",
    "Distillation",
    "EmbeddingHead",
    "FrozenStatisticsBatchNormalization",
    "GlobalAveragePlusMaxPooling2D",
    "GlobalGeneralizedMeanPooling2D",
    "GlobalKMaxPooling2D",
    "HighOrderMoments",
    "ImagePreprocessing",
    "InChunks",
    "ManifoldSimilarities",
    "NestedNetwork",
    "Predictor",
    "Proxies",
    "SampleAwareProxies",
    "SampledProxies",
    "ScaledLogits",
    "TokenPooling",
    "TrainingStep",
    "high_order_moments",
    "pool_tokens",
    "preprocess_images",
]
