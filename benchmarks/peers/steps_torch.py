"""Training steps of `loss_speed_keras_dml.py` under PyTorch."""

import torch


def step(model, x, labels, weights, mode):
    x.requires_grad_(True)
    sources = [x, *(weight.value for weight in weights)]

    def compute():
        value = model(x, labels)
        return value.detach(), *torch.autograd.grad(value, sources)

    return _finished(compute)


def floor(products, *factors):
    return _finished(lambda: products(*factors))


def _finished(compute):
    """A GPU works on while Python has gone ahead."""
    if not torch.cuda.is_available():
        return compute

    def run():
        parts = compute()
        torch.cuda.synchronize()
        return parts

    return run


def peak_growth(step):
    """Only of GPUs torch keeps count."""
    if not torch.cuda.is_available():
        return None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    return torch.cuda.max_memory_allocated() - before
