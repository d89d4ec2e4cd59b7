"""The published networks once more, in plain functions of PyTorch.

Each takes images with values in 0..255, `(batch, 3, height, width)`, RGB, and
preprocesses them as its authors do. The random state dict comes into being on
the first pass.
"""

import torch
import torch.nn.functional as F  # noqa: N812

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_DEVIATION = (0.229, 0.224, 0.225)


class RandomState:
    """A state dict whose entries are drawn when they are first asked for."""

    def __init__(self, seed=0):
        self.entries = {}
        self.generator = torch.Generator().manual_seed(seed)

    def convolve(self, x, name, width, kernel, stride=1, bias=False):
        fan_in = x.shape[1] * kernel**2
        shape = (width, x.shape[1], kernel, kernel)
        weight = self._normal(f"{name}.weight", shape, (2 / fan_in) ** 0.5)
        bias = self._normal(f"{name}.bias", (width,), 0.2) if bias else None
        return F.conv2d(x, weight, bias, stride, padding=kernel // 2)

    def normalize(self, x, name, epsilon):
        width = (x.shape[1],)
        gamma = self._uniform(f"{name}.weight", width)
        beta = self._normal(f"{name}.bias", width, 0.2)
        mean = self._normal(f"{name}.running_mean", width, 0.2)
        variance = self._uniform(f"{name}.running_var", width)
        self.entries[f"{name}.num_batches_tracked"] = torch.tensor(7)
        return F.batch_norm(x, mean, variance, gamma, beta, eps=epsilon)

    def classifier(self, name, width):
        self._normal(f"{name}.weight", (1000, width), 0.1)
        self._normal(f"{name}.bias", (1000,), 0.1)

    def _normal(self, key, shape, deviation):
        if key not in self.entries:
            value = torch.randn(shape, generator=self.generator)
            self.entries[key] = value * deviation
        return self.entries[key]

    def _uniform(self, key, shape):
        if key not in self.entries:
            value = torch.rand(shape, generator=self.generator)
            self.entries[key] = value + 0.5
        return self.entries[key]


def standardized(images):
    mean = torch.tensor(IMAGENET_MEAN).reshape(3, 1, 1)
    deviation = torch.tensor(IMAGENET_DEVIATION).reshape(3, 1, 1)
    return (images / 255 - mean) / deviation


def bn_inception(images, state):
    def unit(x, name, width, kernel, stride=1):
        x = state.convolve(x, name, width, kernel, stride, bias=True)
        return F.relu(state.normalize(x, f"{name}_bn", 1e-5))

    def double(x, name, reduced, width, stride=1):
        x = unit(x, f"{name}_double_3x3_reduce", reduced, 1)
        x = unit(x, f"{name}_double_3x3_1", width, 3)
        return unit(x, f"{name}_double_3x3_2", width, 3, stride)

    def triple(x, name, reduced, width, stride=1):
        x = unit(x, f"{name}_3x3_reduce", reduced, 1)
        return unit(x, f"{name}_3x3", width, 3, stride)

    def average(x):
        return F.avg_pool2d(x, 3, 1, 1, ceil_mode=True, count_include_pad=True)

    def block(x, letter, one, three, twice, projection, pool=average):
        name = f"inception_{letter}"
        return torch.cat(
            [
                unit(x, f"{name}_1x1", one, 1),
                triple(x, name, *three),
                double(x, name, *twice),
                unit(pool(x), f"{name}_pool_proj", projection, 1),
            ],
            1,
        )

    def reduction(x, letter, three, twice):
        name = f"inception_{letter}"
        return torch.cat(
            [
                triple(x, name, *three, stride=2),
                double(x, name, *twice, stride=2),
                F.max_pool2d(x, 3, 2, ceil_mode=True),
            ],
            1,
        )

    mean = torch.tensor([104.0, 117.0, 128.0]).reshape(3, 1, 1)
    x = images.flip(1) - mean
    x = unit(x, "conv1_7x7_s2", 64, 7, 2)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = unit(x, "conv2_3x3_reduce", 64, 1)
    x = unit(x, "conv2_3x3", 192, 3)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = block(x, "3a", 64, (64, 64), (64, 96), 32)
    x = block(x, "3b", 64, (64, 96), (64, 96), 64)
    x = reduction(x, "3c", (128, 160), (64, 96))
    x = block(x, "4a", 224, (64, 96), (96, 128), 128)
    x = block(x, "4b", 192, (96, 128), (96, 128), 128)
    x = block(x, "4c", 160, (128, 160), (128, 160), 128)
    x = block(x, "4d", 96, (128, 192), (160, 192), 128)
    x = reduction(x, "4e", (128, 192), (192, 256))
    x = block(x, "5a", 352, (192, 320), (160, 224), 128)
    state.classifier("last_linear", 1024)
    return block(
        x,
        "5b",
        352,
        (192, 320),
        (192, 224),
        128,
        pool=lambda x: F.max_pool2d(x, 3, 1, 1, ceil_mode=True),
    )


def googlenet(images, state):
    def unit(x, name, width, kernel, stride=1):
        x = state.convolve(x, f"{name}.conv", width, kernel, stride)
        return F.relu(state.normalize(x, f"{name}.bn", 1e-3))

    def block(x, letter, one, reduced2, two, reduced3, three, projection):
        name = f"inception{letter}"
        second = unit(x, f"{name}.branch2.0", reduced2, 1)
        third = unit(x, f"{name}.branch3.0", reduced3, 1)
        pooled = F.max_pool2d(x, 3, 1, 1, ceil_mode=True)
        return torch.cat(
            [
                unit(x, f"{name}.branch1", one, 1),
                unit(second, f"{name}.branch2.1", two, 3),
                unit(third, f"{name}.branch3.1", three, 3),
                unit(pooled, f"{name}.branch4.1", projection, 1),
            ],
            1,
        )

    # As `transform_input` undoes the usual standardization.
    scale = torch.tensor(IMAGENET_DEVIATION).reshape(3, 1, 1) / 0.5
    shift = (torch.tensor(IMAGENET_MEAN).reshape(3, 1, 1) - 0.5) / 0.5
    x = standardized(images) * scale + shift
    x = unit(x, "conv1", 64, 7, 2)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = unit(x, "conv2", 64, 1)
    x = unit(x, "conv3", 192, 3)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = block(x, "3a", 64, 96, 128, 16, 32, 32)
    x = block(x, "3b", 128, 128, 192, 32, 96, 64)
    x = F.max_pool2d(x, 3, 2, ceil_mode=True)
    x = block(x, "4a", 192, 96, 208, 16, 48, 64)
    state.classifier("aux1.fc2", 1024)
    x = block(x, "4b", 160, 112, 224, 24, 64, 64)
    x = block(x, "4c", 128, 128, 256, 24, 64, 64)
    x = block(x, "4d", 112, 144, 288, 32, 64, 64)
    x = block(x, "4e", 256, 160, 320, 32, 128, 128)
    x = F.max_pool2d(x, 2, 2, ceil_mode=True)
    x = block(x, "5a", 256, 160, 320, 32, 128, 128)
    state.classifier("fc", 1024)
    return block(x, "5b", 384, 192, 384, 48, 128, 128)


def resnet50_v1_5(images, state):
    def block(x, name, width, stride, projected):
        shortcut = x
        if projected:
            shortcut = state.convolve(
                x, f"{name}.downsample.0", 4 * width, 1, stride
            )
            shortcut = state.normalize(shortcut, f"{name}.downsample.1", 1e-5)
        x = state.convolve(x, f"{name}.conv1", width, 1)
        x = F.relu(state.normalize(x, f"{name}.bn1", 1e-5))
        x = state.convolve(x, f"{name}.conv2", width, 3, stride)
        x = F.relu(state.normalize(x, f"{name}.bn2", 1e-5))
        x = state.convolve(x, f"{name}.conv3", 4 * width, 1)
        return F.relu(state.normalize(x, f"{name}.bn3", 1e-5) + shortcut)

    x = state.convolve(standardized(images), "conv1", 64, 7, 2)
    x = F.relu(state.normalize(x, "bn1", 1e-5))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, count in enumerate((3, 4, 6, 3)):
        for number in range(count):
            x = block(
                x,
                f"layer{stage + 1}.{number}",
                64 * 2**stage,
                stride=2 if stage and not number else 1,
                projected=not number,
            )
    state.classifier("fc", 2048)
    return x
