"""The backbones by name, and what each of them expects."""

from functools import partial

import keras

from keras_dml.errors import UsageError
from keras_dml.models.backbone import Backbone
from keras_dml.models.bn_inception import bn_inception
from keras_dml.models.googlenet import googlenet
from keras_dml.models.hub import PREFIX, hub_backbone
from keras_dml.models.inception_v1 import inception_v1
from keras_dml.models.resnet50_v1_5 import resnet50_v1_5
from keras_dml.models.small_cnn import small_cnn
from keras_dml.naming import nearest


def _small_cnn(input_shape, weights=None):
    del weights
    return small_cnn(input_shape)


def _application(
    builder, preprocessing, paper, image_size=224, min_image_size=32, **kwargs
):
    """A backbone of `keras.applications`, with ImageNet weights."""
    return Backbone(
        builder=partial(builder, include_top=False, **kwargs),
        preprocessing=preprocessing,
        image_size=image_size,
        min_image_size=min_image_size,
        pretrained="imagenet",
        rgb=True,
        paper=paper,
    )


def _convertible(network, preprocessing, paper, checkpoint):
    """A backbone built here, whose weights another framework published."""
    return Backbone(
        builder=partial(_build_convertible, network, checkpoint),
        preprocessing=preprocessing,
        image_size=224,
        min_image_size=32,
        pretrained="imagenet",
        rgb=True,
        paper=paper,
        checkpoint=checkpoint,
    )


def _build_convertible(network, checkpoint, input_shape, weights=None):
    if weights is not None:
        name = network.__name__
        raise UsageError(
            f"The weights of {name!r} are public for another framework only. "
            f"Get {checkpoint}, convert it with `keras-dml convert-weights`, "
            f"and pass the result as `weights`."
        )
    return network(input_shape)


# MobileNetV3, EfficientNetV2 and ConvNeXt could preprocess by themselves, in
# the precision of the backbone; the embedder does it for all, in float32.
BACKBONES: dict[str, Backbone] = {
    "small_cnn": Backbone(
        builder=_small_cnn,
        preprocessing="unit",
        image_size=28,
        min_image_size=8,
        pretrained="none",
        rgb=False,
        paper="a small residual network, for images of 28 to 96 pixels",
    ),
    "resnet50": _application(
        keras.applications.ResNet50, "caffe", "He et al. 2016"
    ),
    "resnet101": _application(
        keras.applications.ResNet101, "caffe", "He et al. 2016"
    ),
    "resnet50_v2": _application(
        keras.applications.ResNet50V2, "tf", "He et al. 2016, identity mappings"
    ),
    "densenet121": _application(
        keras.applications.DenseNet121, "torch", "Huang et al. 2017"
    ),
    "inception_v3": _application(
        keras.applications.InceptionV3,
        "tf",
        "Szegedy et al. 2016",
        image_size=299,
        min_image_size=75,
    ),
    "xception": _application(
        keras.applications.Xception,
        "tf",
        "Chollet 2017",
        image_size=299,
        min_image_size=71,
    ),
    "mobilenet": _application(
        keras.applications.MobileNet, "tf", "Howard et al. 2017"
    ),
    "mobilenet_v2": _application(
        keras.applications.MobileNetV2, "tf", "Sandler et al. 2018"
    ),
    "mobilenet_v3_small": _application(
        keras.applications.MobileNetV3Small,
        "tf",
        "Howard et al. 2019",
        include_preprocessing=False,
    ),
    "mobilenet_v3_large": _application(
        keras.applications.MobileNetV3Large,
        "tf",
        "Howard et al. 2019",
        include_preprocessing=False,
    ),
    "efficientnet_v2_b0": _application(
        keras.applications.EfficientNetV2B0,
        "torch",
        "Tan and Le 2021",
        include_preprocessing=False,
    ),
    "convnext_tiny": _application(
        keras.applications.ConvNeXtTiny,
        "torch",
        "Liu et al. 2022",
        include_preprocessing=False,
    ),
    "bn_inception": _convertible(
        bn_inception,
        "caffe",
        "Ioffe and Szegedy 2015",
        "http://data.lip6.fr/cadene/pretrainedmodels/"
        "bn_inception-52deb4733.pth",
    ),
    "googlenet": _convertible(
        googlenet,
        "tf",
        "Szegedy et al. 2015, torchvision",
        "https://download.pytorch.org/models/googlenet-1378be20.pth",
    ),
    "inception_v1": _convertible(
        inception_v1,
        "tf",
        "Szegedy et al. 2015, slim",
        "http://download.tensorflow.org/models/inception_v1_2016_08_28.tar.gz",
    ),
    "resnet50_v1_5": _convertible(
        resnet50_v1_5,
        "torch",
        "He et al. 2016, torchvision",
        "https://download.pytorch.org/models/resnet50-0676ba61.pth",
    ),
}


def list_backbones() -> list[str]:
    """Names of all backbones.

    Example:

    >>> list_backbones()[:2]
    ['small_cnn', 'resnet50']
    """
    return list(BACKBONES)


def get_backbone(name: str) -> Backbone:
    """The backbone of that name.

    Args:
        name: One of `list_backbones()`, or `"hub:PRESET"` for a network of
            keras-hub.

    Raises:
        UsageError: There is none of that name.
        RunError: A preset of keras-hub could not be downloaded.
    """
    if name.startswith(PREFIX):
        return hub_backbone(name)
    if name not in BACKBONES:
        raise UsageError(
            f"`backbone` is unknown. Received: {name!r}. Nearest: "
            f"{nearest(name, BACKBONES)}. All: {', '.join(BACKBONES)}, and "
            "`hub:PRESET` for those of keras-hub."
        )
    return BACKBONES[name]
