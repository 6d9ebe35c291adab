"""Compares clew with PyTorch's own table of operators and sample inputs: values, shapes, dtypes,
gradients.

Needs an environment with torch==2.13.0, numpy, scipy and expecttest beside clew; run as
`python tools/parity_ops.py [--dtype float32] [--only NAME] [--errors]`. Prints one line an
operator and a summary.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import clew

warnings.simplefilter("ignore")
DTYPES = {
    getattr(torch, n): getattr(clew, n)
    for n in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}


class Absent(Exception):
    """clew has no such name."""


def resolve(name: str) -> Any:
    """clew's function of a dotted PyTorch name."""
    found: Any = clew
    method = getattr(clew.Tensor, name, None)
    if (
        callable(method)
        and not callable(getattr(clew._C, name, None))
        and (
            (name not in clew._C.functions and name not in vars(clew))
            or isinstance(getattr(clew, name), clew.dtype)
        )
    ):
        return method
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Absent(name) from None
    return found


def to_clew(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided or x.dtype not in DTYPES:
            raise NotImplementedError(f"{x.layout}, {x.dtype}")
        data = x.detach().resolve_conj().resolve_neg()
        if x.dtype is torch.bfloat16:
            t = clew.from_numpy(data.float().numpy().copy()).to(clew.bfloat16)
        else:
            t = clew.from_numpy(np.array(data.numpy(), copy=True))
        if (
            not data.is_contiguous()
            and data.ndim > 1
            and data.numel()
            and all(s > 0 for s in data.stride())
        ):
            order = sorted(range(data.ndim), key=lambda d: -data.stride(d))
            t = t.permute(order).contiguous().permute([order.index(d) for d in range(data.ndim)])
        return t.requires_grad_() if x.requires_grad else t
    if isinstance(x, torch.dtype):
        return DTYPES[x]
    if isinstance(x, torch.device):
        return clew.device(x.type)
    if isinstance(x, torch.memory_format):
        return getattr(clew, str(x).split(".")[-1])
    if x is torch.strided:
        return clew.strided
    if isinstance(x, torch.Size):
        return clew.Size(x)
    if isinstance(x, (list, tuple)):
        return (
            type(x)(to_clew(v) for v in x)
            if type(x) in (list, tuple)
            else tuple(to_clew(v) for v in x)
        )
    if isinstance(x, dict):
        return {k: to_clew(v) for k, v in x.items()}
    return x


def leaves(x: Any) -> list[Any]:
    if isinstance(x, (torch.Tensor, clew.Tensor)):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in leaves(v)]
    if isinstance(x, dict):
        return [t for v in x.values() for t in leaves(v)]
    return []


def array(t: Any) -> np.ndarray:
    t = t.detach()
    if t.dtype in (torch.bfloat16, clew.bfloat16):
        t = t.float()
    if isinstance(t, torch.Tensor):
        t = t.resolve_conj().resolve_neg()
    return t.numpy()


def compare(want: list[Any], got: list[Any], what: str, tolerance: float) -> None:
    assert len(want) == len(got), f"{what}: {len(got)} tensors, expected {len(want)}"
    for w, g in zip(want, got):
        if w is None or g is None:
            assert g is None or w is not None or not array(g).any(), f"{what}: unexpected gradient"
            assert w is None or g is not None or not array(w).any(), f"{what}: missing gradient"
            continue
        assert tuple(w.shape) == tuple(g.shape), (
            f"{what}: shape {tuple(g.shape)}, expected {tuple(w.shape)}"
        )
        assert DTYPES.get(w.dtype) is g.dtype, f"{what}: dtype {g.dtype}, expected {w.dtype}"
        a, b = array(g), array(w)
        scale = max(
            1.0, float(np.nanmax(np.abs(b[np.isfinite(b)]))) if np.isfinite(b).any() else 1.0
        )
        assert np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True), (
            f"{what}: values differ by {np.nanmax(np.abs(a.astype(complex) - b)):.3g}"
        )


def check(op: Any, dtype: torch.dtype, limit: int) -> str:
    """'ok', or why not."""
    f = resolve(op.name)
    tolerance = {
        torch.float64: 1e-7,
        torch.complex128: 1e-7,
        torch.float32: 2e-4,
        torch.complex64: 2e-4,
    }.get(dtype, 2e-2)
    differentiable = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))[:limit]
    for k, s in enumerate(samples):
        theirs = (s.input, s.args, s.kwargs)
        ours = to_clew(list(theirs))
        what = f"sample {k} {describe(theirs)}"
        want_all = op.op(s.input, *s.args, **s.kwargs)
        try:
            got_all = f(ours[0], *ours[1], **ours[2])
        except Exception as e:
            raise type(e)(f"{what}: {e}") from e
        want, got = leaves(want_all), leaves(got_all)
        random = op.name in RANDOM
        if random:
            assert [tuple(w.shape) for w in want] == [tuple(g.shape) for g in got], what
            continue
        compare(want, got, what, tolerance)
        if not differentiable:
            continue
        ins, outs = leaves(theirs), leaves(ours)
        pairs = [(a, b) for a, b in zip(ins, outs) if a.requires_grad]
        roots = [(a, b) for a, b in zip(want, got) if a.requires_grad]
        assert all(b.requires_grad for _, b in roots), f"{what}: the result does not require grad"
        if not pairs or not roots:
            continue
        torch.manual_seed(k)
        seeds = [torch.randn_like(a) for a, _ in roots]
        gw = torch.autograd.grad(
            [a for a, _ in roots], [a for a, _ in pairs], seeds, allow_unused=True
        )
        gg = clew.autograd.grad(
            [b for _, b in roots],
            [b for _, b in pairs],
            [to_clew(x) for x in seeds],
            allow_unused=True,
        )
        compare(list(gw), list(gg), f"{what} gradient", tolerance * 5)
    return f"ok ({len(samples)})"


RANDOM = {
    "rand_like",
    "randn_like",
    "randint_like",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
    "normal",
    "bernoulli",
    "multinomial",
    "randn",
    "randint",
    "empty",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
    "empty_strided",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "log_normal",
    "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.dropout1d",
    "nn.functional.gumbel_softmax",
}


def describe(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"{str(x.dtype)[6:]}{list(x.shape)}"
    if isinstance(x, (list, tuple)):
        return "(" + ", ".join(describe(v) for v in x) + ")"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k}={describe(v)}" for k, v in x.items()) + "}"
    return repr(x)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", help="operators whose name contains this")
    parser.add_argument("--limit", type=int, default=40, help="samples an operator")
    parser.add_argument("--quiet", action="store_true", help="only what fails")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)
    counts: collections.Counter[str] = collections.Counter()
    for op in sorted(op_db, key=lambda op: op.name):
        if options.only and options.only not in op.name:
            continue
        if dtype not in op.supported_dtypes("cpu"):
            continue
        label = op.name + (f" ({op.variant_test_name})" if op.variant_test_name else "")
        try:
            status = check(op, dtype, options.limit)
            counts["ok"] += 1
            if options.quiet:
                continue
        except Absent as e:
            status = f"absent: {e}"
            counts["absent"] += 1
        except Exception as e:
            status = f"FAILED {type(e).__name__}: {str(e)[:300]}"
            counts["failed"] += 1
        print(f"{label:45} {status}", flush=True)
    total = sum(counts.values())
    print(
        f"{total} operators in {options.dtype}: "
        + ", ".join(f"{n} {k}" for k, n in counts.most_common())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
