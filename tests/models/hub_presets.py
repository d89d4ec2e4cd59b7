"""Small random networks of keras-hub, saved as presets."""

import warnings

import keras

SIDE = 32


def _transformer(**changes):
    return {
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 24,
        "image_shape": (SIDE, SIDE, 3),
        "patch_size": 8,
        **changes,
    }


def _vit(hub, use_class_token):
    return hub.models.ViTBackbone(
        image_shape=(SIDE, SIDE, 3),
        patch_size=8,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=24,
        use_class_token=use_class_token,
    )


def _dinov2(hub):
    return hub.models.DINOV2Backbone(
        **_transformer(num_register_tokens=3),
        # As published: trained at another size.
        position_embedding_shape=(64, 64, 3),
    )


def _dinov3(hub):
    return hub.models.DINOV3Backbone(**_transformer(num_register_tokens=3))


def _siglip(hub):
    """With the text encoder that the published presets hold."""
    text = hub.models.SigLIPTextEncoder(
        vocabulary_size=32,
        embedding_dim=16,
        hidden_dim=16,
        num_layers=1,
        num_heads=2,
        intermediate_dim=24,
        max_sequence_length=8,
    )
    vision = hub.models.SigLIPVisionEncoder(**_transformer())
    return hub.models.SigLIPBackbone(vision, text)


def _resnet(hub):
    return hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64, 72],
        stackwise_num_blocks=[2, 1],
        stackwise_num_strides=[1, 2],
        block_type="basic_block",
        image_shape=(None, None, 3),
    )


def _text(hub):
    return hub.models.BertBackbone(
        vocabulary_size=32,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
    )


NETWORKS = {
    "dinov2": _dinov2,
    "dinov3": _dinov3,
    "siglip": _siglip,
    "vit": lambda hub: _vit(hub, use_class_token=True),
    "vit_without_class_token": lambda hub: _vit(hub, use_class_token=False),
    "deit": lambda hub: hub.models.DeiTBackbone(**_transformer()),
    "clip": lambda hub: hub.models.CLIPVisionEncoder(**_transformer()),
    "resnet": _resnet,
    "text": _text,
}


def make(name):
    """The network of that name with random weights."""
    import keras_hub

    keras.utils.set_random_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NETWORKS[name](keras_hub)


def save(name, folder):
    """Writes the network as a preset, and returns the name of the backbone."""
    make(name).save_to_preset(str(folder / name))
    return f"hub:{folder / name}"
