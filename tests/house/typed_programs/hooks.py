"""Hooks of modules and tensors, parametrizations, the profiler, indexing, tuples of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import clew
from clew import Tensor, nn
from clew.nn.utils import parametrize
from clew.profiler import ProfilerActivity, profile, record_function
from clew.utils.checkpoint import checkpoint
from clew.utils.hooks import RemovableHandle

seen: list[str] = []


def forward_hook(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
    seen.append(type(module).__name__)
    return None


def pre_hook(module: nn.Module, args: tuple[Any, ...]) -> None:
    seen.append("pre")


def backward_hook(
    module: nn.Module, grad_in: Sequence[Tensor | None], grad_out: Sequence[Tensor | None]
) -> None:
    seen.append("back")


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).mT


def main() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    handles: list[RemovableHandle] = [
        model.register_forward_hook(forward_hook),
        model[0].register_forward_pre_hook(pre_hook),
        model[2].register_full_backward_hook(backward_hook),
    ]
    x = clew.rand(2, 3, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    handle = x.register_post_accumulate_grad_hook(lambda t: None)
    out: Tensor = checkpoint(model, x, use_reentrant=False)
    loss = out.pow(2).mean()
    graph = clew.graph(loss)
    print(str(graph)[:40], graph.why(x))
    loss.backward()
    handle.remove()
    for h in handles:
        h.remove()
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    first = model[0]
    assert isinstance(first, nn.Linear)
    print(first.weight.shape, seen)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("part"):
            model(x)
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=3)[:20])
    array = x.detach().numpy()
    again = clew.from_numpy(np.asarray(array))
    mask = again > 0.5
    picked = again[mask]
    again[0, ::2] = 1.0
    again[..., None]
    a, b = again.unbind(0)
    parts: tuple[Tensor, ...] = again.split(1, dim=0)
    u, s, vh = clew.linalg.svd(again)
    values, idx = clew.sort(again, descending=True)
    n: int = again.numel()
    flag: bool = clew.allclose(a, a)
    dt: clew.dtype = again.dtype
    size: int = again.shape[0]
    rows, cols = again.shape
    fl: float = float(again[0, 0])
    total = sum(p.numel() for p in model.parameters())
    eq = clew.einsum("ij,kj->ik", again, again)
    c = clew.cat([again, again], dim=0).reshape(-1, 3).permute(1, 0).contiguous()
    lin = clew.linspace(0, 1, 5)
    z = 2.0 - again / 3 + (1 - mask.float())
    print(
        picked,
        b,
        parts,
        u.shape,
        s,
        vh.shape,
        values,
        idx,
        n,
        flag,
        dt,
        size,
        rows,
        cols,
        fl,
        total,
        eq,
        c,
        lin,
        z,
    )
    with clew.debug.nan_watch():
        model(x)
    for name, child in model.named_children():
        print(name, type(child).__name__)
    model.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
    mean, std = clew.std_mean(again)
    best = again.max()
    low = clew.min(again, 0).values
    cum = again.cumsum(0)
    print(mean, std, best, low, cum, clew.where(mask, again, 0.0), clew.get_default_device())


if __name__ == "__main__":
    main()
