"""MobileNetV2 of `keras.applications` in PyTorch, with its weights.

Like Keras' it pads strided convolutions behind the image first, as TensorFlow's
"same" does, and adds 1e-3 to variances.
"""

import torch
from torch import nn
from torch.nn.functional import pad

# Expansion, channels, blocks and stride of the first block.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
FEATURES = 1280


class SamePadding(nn.Module):
    """Pads for a 3 x 3 convolution of stride 2."""

    def forward(self, x):
        height, width = x.shape[2:]
        return pad(x, (width % 2, 1, height % 2, 1))


def convolution(inputs, outputs, kernel=1, stride=1, groups=1, active=True):
    """Convolution, batch normalization and, if `active`, ReLU6."""
    padding = kernel // 2 if stride == 1 else 0
    return nn.Sequential(
        *([SamePadding()] if stride == 2 else []),
        nn.Conv2d(
            inputs,
            outputs,
            kernel,
            stride,
            padding,
            groups=groups,
            bias=False,
        ),
        nn.BatchNorm2d(outputs, eps=1e-3),
        *([nn.ReLU6(inplace=True)] if active else []),
    )


class Block(nn.Module):
    """Inverted residual with a linear bottleneck."""

    def __init__(self, inputs, outputs, expansion, stride):
        super().__init__()
        self.residual = stride == 1 and inputs == outputs
        inner = inputs * expansion
        self.layers = nn.Sequential(
            *([convolution(inputs, inner)] if expansion > 1 else []),
            convolution(inner, inner, 3, stride, groups=inner),
            convolution(inner, outputs, active=False),
        )

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


def mobilenet_v2(weights):
    """The network up to its pooled features, batch normalization frozen.

    Args:
        weights: Arrays of `get_weights()` of Keras' network, in its order.
    """
    layers, inputs = [convolution(3, 32, 3, 2)], 32
    for expansion, outputs, blocks, stride in STAGES:
        for number in range(blocks):
            layers.append(
                Block(inputs, outputs, expansion, 1 if number else stride)
            )
            inputs = outputs
    layers.append(convolution(inputs, FEATURES))
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    arrays = iter(weights)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            # Depthwise kernels hold channels and multiplier the other way.
            order = (2, 3, 0, 1) if module.groups > 1 else (3, 2, 0, 1)
            copy(module.weight, next(arrays).transpose(order))
        elif isinstance(module, nn.BatchNorm2d):
            for variable in (
                module.weight.requires_grad_(False),
                module.bias.requires_grad_(False),
                module.running_mean,
                module.running_var,
            ):
                copy(variable, next(arrays))
    if next(arrays, None) is not None:
        raise ValueError("`weights` holds more arrays than the network.")
    return network.eval()


def copy(variable, values):
    if tuple(variable.shape) != values.shape:
        raise ValueError(
            f"Weights of shape {values.shape} do not fit a variable of shape "
            f"{tuple(variable.shape)}."
        )
    with torch.no_grad():
        variable.copy_(torch.tensor(values))


def channels_first(images):
    """Keras' images as PyTorch takes them, on [-1, 1] as both want."""
    return torch.tensor(images).permute(0, 3, 1, 2) / 127.5 - 1
