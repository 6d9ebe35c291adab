"""Comparing derivatives with finite differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base.arguments import in_graph, is_structured
from clew._base.provenance import user_level
from clew._C import Tensor, ones_like, randn_like, zeros_like
from clew.autograd._backward import grad
from clew.autograd.grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_stack = _C.functions["stack"]


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck when derivatives disagree."""


def _tensors(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _of_values(func: Callable[..., Any], ins: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function with the values of sparse and ragged tensors in their place: gradients are
    those at the places that they name.
    """
    if not any(map(is_structured, ins)):
        return func, ins

    def of_values(*values: Any) -> Any:
        given = [t._with(v) if is_structured(t) else v for t, v in zip(ins, values)]
        return tuple(
            o._elements if is_structured(o) else o
            for o in _tensors(func(*given, *values[len(ins) :]))
        )

    return of_values, in_graph(ins)


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(o for o in _tensors(outputs) if isinstance(o, Tensor) and o.requires_grad)


def _numeric_columns(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    target: Tensor,
    pick: Callable[[Any], Any],
    eps: float,
) -> list[list[Tensor]]:
    """For each element of target (and for complex ones each direction) the central difference of
    every output.
    """

    if any(step == 0 and size > 1 for size, step in zip(target.shape, target.stride())):
        raise RuntimeError(
            "gradcheck: inputs that require grad must have an element of memory for each of their "
            f"elements; got strides {target.stride()} for {tuple(target.shape)}. Call "
            ".contiguous() on the input first"
        )
    values = target.detach()

    def at(value: complex) -> list[Tensor]:
        with no_grad():
            values[place] = value
        return [o.detach().clone() for o in pick(func(*inputs))]

    columns = []
    directions = (eps, eps * 1j) if target.is_complex() else (eps,)
    for place in itertools.product(*map(range, target.shape)):
        for step in directions:
            original = values[place].item()
            try:
                high, low = at(original + step), at(original - step)
            finally:
                with no_grad():
                    values[place] = original
            columns.append([(h - low_) / (2 * eps) for h, low_ in zip(high, low)])
    return columns


def _fail(raise_exception: bool, message: str) -> bool:
    if raise_exception:
        raise GradcheckError(message)
    return False


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    r"""Checks the gradients of func at inputs against central differences.

    Each entry of the Jacobian must satisfy :math:`|a - n| \le atol + rtol |n|`. Complex inputs
    and outputs are checked along
    the real and the imaginary direction.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: float64 or complex128 tensors (others make the check too coarse), in any
            mixture with other values.
        eps: the step of the differences.
        atol, rtol: tolerances.
        raise_exception: raise on disagreement instead of returning False.
        nondet_tol: how much two backward runs may differ.
        check_undefined_grad: also run backward with gradients for some of the outputs only.
        check_grad_dtypes: gradients must have the dtype of their inputs.
        check_batched_grad: also compare gradients of a batch of output gradients, by vmap, with
            those of each.
        check_batched_forward_grad: the same of Jacobian-vector products.
        check_forward_ad: also check Jacobian-vector products.
        check_backward_ad: check vector-Jacobian products.
        fast_mode: compare along a random direction instead of entry by entry.
        masked: of sparse and ragged inputs the gradients at their places are compared, and False
            raises; without effect for dense ones.

    Returns:
        True when all agree.

    Raises:
        GradcheckError: they do not, and raise_exception is True.

    >>> x = clew.tensor([1.0, 2.0], dtype=clew.float64, requires_grad=True)
    >>> clew.autograd.gradcheck(lambda x: x.exp(), (x,))
    True
    """
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "gradcheck: setting check_batched_forward_grad=True requires check_forward_ad to be "
            "True"
        )
    ins = _tensors(inputs)
    if masked is False and any(map(is_structured, ins)):
        raise NotImplementedError(
            "gradcheck: masked=False is not offered for sparse and ragged inputs, whose gradients "
            "are those at their places; pass masked=True"
        )
    func, ins = _of_values(func, ins)
    wanted = [t for t in ins if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError("gradcheck: expects at least one input that requires grad")
    for t in wanted:
        if t.dtype.name not in ("float64", "complex128"):
            import warnings

            warnings.warn(
                f"gradcheck: an input of dtype {t.dtype} is not double precision; the check "
                f"will likely fail",
                stacklevel=user_level(),
            )
    outputs = _differentiable(func(*ins))
    if not outputs:
        return _check_no_gradient(func, ins, wanted, eps, raise_exception)
    if check_batched_grad and not _batched(func, ins, wanted, raise_exception, False):
        return False
    if check_batched_forward_grad and not _batched(func, ins, wanted, raise_exception, True):
        return False
    if fast_mode:
        return _fast(
            func, ins, wanted, eps, atol, rtol, raise_exception, check_backward_ad, check_forward_ad
        )
    which = [
        i for i, o in enumerate(_tensors(func(*ins))) if isinstance(o, Tensor) and o.requires_grad
    ]
    numeric = [
        _numeric_columns(func, ins, t, lambda outs: _chosen(outs, which), eps) for t in wanted
    ]
    if check_backward_ad and not _slow_backward(
        func, ins, wanted, numeric, atol, rtol, raise_exception, nondet_tol, check_grad_dtypes
    ):
        return False
    if check_forward_ad and not _slow_forward(
        func, ins, wanted, numeric, atol, rtol, raise_exception
    ):
        return False
    return not check_undefined_grad or _undefined(func, ins, wanted, raise_exception)


def _check_no_gradient(func: Any, ins: Any, wanted: Any, eps: float, raise_exception: bool) -> bool:
    """Outputs that claim no gradient must not change with the inputs."""

    def floats(outputs: Any) -> tuple[Tensor, ...]:
        return tuple(
            o
            for o in _tensors(outputs)
            if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())
        )

    for i, t in enumerate(wanted):
        for column in _numeric_columns(func, ins, t, floats, eps):
            if any((c != 0).any() for c in column):
                return _fail(
                    raise_exception,
                    f"gradcheck: the output does not require grad but changes with input {i}: "
                    f"{column}",
                )
    return True


def _seeds_for(out: Tensor) -> list[Any]:
    return [1.0, 1j] if out.is_complex() else [1.0]


def _slow_backward(
    func: Any,
    ins: Any,
    wanted: Any,
    numeric: Any,
    atol: float,
    rtol: float,
    raise_exception: bool,
    nondet_tol: float,
    check_dtypes: bool,
) -> bool:

    outputs = _differentiable(func(*ins))
    for o, out in enumerate(outputs):
        for j in range(out.numel()):
            for seed in _seeds_for(out):
                start = zeros_like(out).contiguous()
                start.view(-1)[j] = seed
                got = grad(out, wanted, start, retain_graph=True, allow_unused=True)
                again = grad(out, wanted, start, retain_graph=True, allow_unused=True)
                for i, (t, g, g2) in enumerate(zip(wanted, got, again)):
                    if g is not None and g.numel() and (g - g2).abs().max().item() > nondet_tol:
                        return _fail(
                            raise_exception,
                            f"gradcheck: backward of output {o} is not deterministic for input {i}",
                        )
                    if g is not None and check_dtypes and g.dtype is not t.dtype:
                        return _fail(
                            raise_exception,
                            f"gradcheck: gradient {i} has dtype {g.dtype}; the input has {t.dtype}",
                        )
                    flat = zeros_like(t).reshape(-1) if g is None else g.reshape(-1)
                    per = 2 if t.is_complex() else 1
                    for k in range(t.numel()):
                        value = flat[k].item()
                        for part in range(per):
                            n = numeric[i][k * per + part][o].reshape(-1)[j].item()
                            # A real loss Re(conj(seed) * out) changes by Re(conj(seed) * d out)
                            # along each direction.
                            expect = (complex(seed).conjugate() * n).real
                            have = complex(value).real if part == 0 else complex(value).imag
                            if not abs(have - expect) <= atol + rtol * abs(expect):
                                return _fail(
                                    raise_exception,
                                    f"gradcheck: Jacobian mismatch for output {o} with respect "
                                    f"to input {i}, at output element "
                                    f"{j} and input element {k}: numerical {expect}, "
                                    f"analytical {have}",
                                )
    return True


def _slow_forward(
    func: Any, ins: Any, wanted: Any, numeric: Any, atol: float, rtol: float, raise_exception: bool
) -> bool:
    from clew.autograd.functional import _jvp

    for i, t in enumerate(wanted):
        for k in range(t.numel()):
            for part, step in enumerate((1.0, 1j) if t.is_complex() else (1.0,)):
                tangents = [zeros_like(s) for s in wanted]
                tangents[i].view(-1)[k] = step
                outputs = _differentiable(func(*ins))
                got = _jvp(outputs, wanted, tangents, False, False, "gradcheck")
                per = 2 if t.is_complex() else 1
                for o, (have, expect) in enumerate(zip(got, numeric[i][k * per + part])):
                    if not _close(have, expect, atol, rtol):
                        return _fail(
                            raise_exception,
                            f"gradcheck: forward-mode mismatch for output {o}, input {i}, "
                            f"element {k}: numerical {expect}, "
                            f"analytical {have}",
                        )
    return True


def _close(a: Tensor, b: Tensor, atol: float, rtol: float) -> bool:
    return bool(((a - b).abs() <= atol + rtol * b.abs()).all().item())


def _fast(
    func: Any,
    ins: Any,
    wanted: Any,
    eps: float,
    atol: float,
    rtol: float,
    raise_exception: bool,
    backward: bool,
    forward: bool,
) -> bool:
    """Compares u^T J v along random u and v."""
    from clew.autograd.functional import _jvp

    directions = [randn_like(t) for t in wanted]
    directions = [d / d.norm().clamp(min=1e-30).item() if d.numel() else d for d in directions]

    def moved(sign: float) -> list[Tensor]:
        originals = [t.detach().clone() for t in wanted]
        try:
            with no_grad():
                for t, d in zip(wanted, directions):
                    t.detach().add_(d * (sign * eps))
            return [o.detach().clone() for o in _chosen(func(*ins), count)]
        finally:
            with no_grad():
                for t, original in zip(wanted, originals):
                    t.detach().copy_(original)

    count = [
        i for i, o in enumerate(_tensors(func(*ins))) if isinstance(o, Tensor) and o.requires_grad
    ]
    numeric = [(h - low_) / (2 * eps) for h, low_ in zip(moved(1.0), moved(-1.0))]
    outputs = _differentiable(func(*ins))  # recorded after the inputs were moved and put back
    for o, (out, n) in enumerate(zip(outputs, numeric)):
        u = randn_like(out)
        expect = (u.conj() * n).real.sum().item() if out.is_complex() else (u * n).sum().item()
        if backward:
            got = grad(out, wanted, u, retain_graph=True, allow_unused=True)
            have = 0.0
            for g, d in zip(got, directions):
                if g is not None:
                    have += (
                        (g.conj() * d).real.sum().item() if d.is_complex() else (g * d).sum().item()
                    )
            scale = max(abs(expect), abs(have))
            if not abs(have - expect) <= atol * max(1.0, out.numel() ** 0.5) + rtol * scale:
                return _fail(
                    raise_exception,
                    f"gradcheck: output {o} along a random direction: numerical {expect}, "
                    f"analytical {have}",
                )
    if forward:
        tangents = _jvp(outputs, wanted, directions, False, False, "gradcheck")
        for o, (tangent, n) in enumerate(zip(tangents, numeric)):
            if not _close(tangent, n, atol, rtol):
                return _fail(
                    raise_exception,
                    f"gradcheck: forward-mode mismatch for output {o}: numerical {n}, "
                    f"analytical {tangent}",
                )
    return True


def _batched(func: Any, ins: Any, wanted: Any, raise_exception: bool, forward: bool) -> bool:
    """Products with a batch of two vectors, made at once by vmap, must be those with each."""
    from clew.autograd.functional import _jvp
    from clew.func._vmap import vmap

    outputs = _differentiable(func(*ins))
    what = "Jacobian-vector products" if forward else "gradients"

    def pull(out: Tensor) -> Any:
        def products(start: Tensor) -> tuple[Tensor, ...]:
            got = grad(out, wanted, start, retain_graph=True, allow_unused=True)
            return tuple(zeros_like(t) if g is None else g for t, g in zip(wanted, got))

        return products

    def push(*tangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(_jvp(outputs, wanted, list(tangents), False, False, "gradcheck"))

    rules = [(push, wanted)] if forward else [(pull(out), (out,)) for out in outputs]
    for rule, like in rules:
        vectors = [[randn_like(t.detach()) for t in like] for _ in range(2)]
        expected = [rule(*v) for v in vectors]
        try:
            got = vmap(rule)(*(_stack(v) for v in zip(*vectors)))
        except RuntimeError as problem:
            return _fail(
                raise_exception, f"gradcheck: while computing batched {what}, got: {problem}"
            )
        for i, (have, each) in enumerate(zip(got, zip(*expected))):
            if not _close(have, _stack(each), 1e-8, 1e-5):
                return _fail(
                    raise_exception,
                    f"gradcheck: batched {what} {i} disagree with those of each vector: "
                    f"{have} and {_stack(each)}",
                )
    return True


def _chosen(outputs: Any, which: list[int]) -> list[Tensor]:
    items = _tensors(outputs)
    return [items[i] for i in which]


def _undefined(func: Any, ins: Any, wanted: Any, raise_exception: bool) -> bool:
    """Backward must cope with outputs that get no gradient: it equals zero gradients for them."""

    outputs = _differentiable(func(*ins))
    if len(outputs) < 2:
        return True
    for o, out in enumerate(outputs):
        alone = grad(out, wanted, ones_like(out), retain_graph=True, allow_unused=True)
        seeds = [ones_like(x) if i == o else zeros_like(x) for i, x in enumerate(outputs)]
        together = grad(outputs, wanted, seeds, retain_graph=True, allow_unused=True)
        for i, (a, b, t) in enumerate(zip(alone, together, wanted)):
            a = zeros_like(t) if a is None else a
            b = zeros_like(t) if b is None else b
            if not _close(a, b, 1e-12, 1e-9):
                return _fail(
                    raise_exception,
                    f"gradcheck: input {i} gets another gradient when only output {o} has one: "
                    f"{a} and {b}",
                )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks the gradients of the gradients of func, with respect to inputs and grad_outputs.

    Args:
        func, inputs, eps, atol, rtol, raise_exception, fast_mode: as in :func:`gradcheck`.
        nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad: as there.
        grad_outputs: the gradients backward starts with; random by default.
        gen_non_contig_grad_outputs: the random ones are not contiguous.
        check_fwd_over_rev: also check Jacobian-vector products of the gradients.
        check_rev_over_rev: check vector-Jacobian products of the gradients.
        masked: without effect: gradients of sparse and ragged inputs are those at their places.

    >>> x = clew.tensor([1.0, 2.0], dtype=clew.float64, requires_grad=True)
    >>> clew.autograd.gradgradcheck(lambda x: x**3, (x,))
    True
    """
    func, ins = _of_values(func, _tensors(inputs))
    outputs = _differentiable(func(*ins))
    if grad_outputs is None:
        seeds = []
        for o in outputs:
            seeds.append(randn_like(o).contiguous().requires_grad_())
    else:
        seeds = list(_tensors(grad_outputs))
    count = len(ins)
    spread = gen_non_contig_grad_outputs and grad_outputs is None

    def begin(seed: Tensor) -> Tensor:
        # The seeds that are varied are contiguous; what backward gets need not be.
        return seed.repeat_interleave(2, dim=-1)[..., ::2] if spread and seed.ndim else seed

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        with _enabled():
            outs = _differentiable(func(*args[:count]))
            live = [t for t in args[:count] if isinstance(t, Tensor) and t.requires_grad]
            starts = [begin(seed) for seed in args[count:]]
            got = grad(outs, live, starts, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    return gradcheck(
        gradients,
        (*ins, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _enabled() -> Any:

    return enable_grad()
