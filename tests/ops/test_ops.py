"""The generic suite: every op of the table, every sample."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import machinery as m
import numpy as np
import pytest

import clew
from clew import _C, _namespace
from samples import E, Op, load

TABLE = load()
OPS = sorted(TABLE.values(), key=lambda op: op.name)
WITH_GRAD = [op for op in OPS if op.grad]


def by_name(op: Any) -> str:
    return op.name if isinstance(op, Op) else str(op)


def all_op_names() -> set[str]:
    """Dotted names of the public functions; plain names of methods and private ops."""
    dotted = {n for n in _C.functions if not n.endswith("_")}
    short = {m.public_name(n) for n in dotted}
    rest = {n for n in dir(_C.ops) if not n.startswith("__") and not n.endswith("_")}
    # Tensor.unfold is another op than nn.functional.unfold.
    methods = {n for n in short if type(getattr(clew.Tensor, n, None)).__name__ == "OpMethod"}
    return dotted | (rest - short) | methods


# What functions written in Python end in, which have samples themselves: they shape, broadcast and
# check what these take as it is.
BEHIND_FUNCTIONS = set(
    """
    _cholesky _cholesky_solve _det _eig _eigh _fft_c2c _fft_c2r _fft_r2c _geqrf _grid_sample
    _grid_sample_grid_grad _grid_sample_input_grad _householder_product _inverse _ldl_factor
    _ldl_solve _lstsq _lu_factor _lu_permutation _lu_solve _lu_unpack _ormqr _polynomial _qr
    _slogdet _solve _solve_triangular _svd _matrix_exp _airy_ai _airy_ai_slope _bessel_j0 _bessel_j1
    _bessel_y0 _bessel_y1 _bessel_k0 _bessel_k1 _bessel_k0e _bessel_k1e _gammainc _gammaincc
    _spherical_bessel_j0
    """.split()
)


def test_every_op_has_samples():
    missing = sorted(all_op_names() - set(TABLE) - BEHIND_FUNCTIONS)
    assert not missing, f"{len(missing)} ops without samples: {missing}"


# Modules of functions written in Python, all of which have samples too.
COVERED_MODULES: tuple[str, ...] = ("fft", "linalg", "masked", "signal.windows", "special")


# Of tensors of another class, which tests/test_masked_tensor.py is about.
OF_MASKED_TENSORS = {
    "masked.as_masked_tensor",
    "masked.is_masked_tensor",
    "masked.masked_tensor",
}


@pytest.mark.parametrize("module", COVERED_MODULES)
def test_every_python_function_has_samples(module: str):
    names = {f"{module}.{n}" for n in importlib.import_module(f"clew.{module}").__all__}
    callables = {
        n for n in names if callable(m.function(n)) and not isinstance(m.function(n), type)
    }
    callables -= OF_MASKED_TENSORS
    assert callables <= set(TABLE), f"without samples: {sorted(callables - set(TABLE))}"


def test_every_lazy_function_has_samples():
    """What clew/_ops offers at the top level; lists of tensors are in test_foreach.py, and what is
    not about values in test_small.py."""
    import test_small

    names = {n for n, module in _namespace._LAZY_NAMES.items() if module.startswith("clew._ops.")}
    names -= {n for n in names if isinstance(getattr(clew, n), type)}  # the legacy types
    names -= test_small.TESTED_HERE | {"index_put_"}  # in place, which index_put's samples try too
    names = {n for n in names if not n.startswith(("_foreach_", "_amp_foreach_"))}
    assert names <= set(TABLE), f"without samples: {sorted(names - set(TABLE))}"


def test_samples_name_existing_ops():
    for name in set(TABLE) - all_op_names():
        assert callable(m.function(name)), name


def assert_close(got: Any, want: Any, dtype_name: str, factor: float, context: str) -> None:
    got, want = m.to_numpy(got), want
    if isinstance(want, (tuple, list)) and isinstance(got, tuple):
        assert len(got) == len(want), context
        for g, w in zip(got, want):
            if w is not None:
                assert_close(g, w, dtype_name, factor, context)
        return
    want = np.asarray(want)
    assert got.shape == want.shape, f"{context}: shape {got.shape}, expected {want.shape}"
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=context)
        return
    rtol, atol = m.TOLERANCE[dtype_name]
    np.testing.assert_allclose(
        got.astype(np.complex128 if got.dtype.kind == "c" else np.float64),
        want,
        rtol=rtol * factor,
        atol=atol * factor,
        equal_nan=True,
        err_msg=context,
    )


def has_complex(sample: Any) -> bool:
    found = []
    m.map_sample(sample, lambda a: found.append(a.dtype.kind == "c"))
    return any(found)


def fits(sample: Any, dtype_name: str) -> bool:
    return has_complex(sample) == dtype_name.startswith("complex")


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_forward(op: Op):
    """Results agree with the reference computed in double precision from the rounded inputs."""
    if op.reference is None:
        assert op.why, f"{op.name} has no reference; say why"
        return
    ran = 0
    for dtype_name in op.dtypes:
        for sample in m.samples_of(op):
            if not fits(sample, dtype_name):
                continue
            tensors = m.map_sample(sample, lambda a, d=dtype_name: m.to_tensor(a, d))
            exact = m.map_sample(
                sample, lambda a, d=dtype_name: m.to_numpy(m.to_tensor(a, d)).astype(_wide(a))
            )
            with np.errstate(all="ignore"):
                want = op.reference(*exact.args, **exact.kwargs)
            got = m.function(op.name)(*tensors.args, **tensors.kwargs)
            assert_close(got, want, dtype_name, op.rtol, f"{op.name}{sample} in {dtype_name}")
            ran += 1
    assert ran, f"{op.name}: no sample fits any of {op.dtypes}"


def _wide(a: np.ndarray) -> Any:
    return {"f": np.float64, "c": np.complex128}.get(a.dtype.kind, a.dtype)


@pytest.mark.parametrize("op", [op for op in OPS if op.integers], ids=by_name)
def test_forward_integers(op: Op):
    for dtype_name in op.integers:
        for sample in m.samples_of(op):
            if has_complex(sample):
                continue

            def to_int(a: np.ndarray, d: str = dtype_name) -> np.ndarray:
                if a.dtype.kind != "f":
                    return a
                b = np.round(a * 3)
                return np.asarray(np.abs(b) if d.startswith("uint") else b).astype(d)

            ints = m.map_sample(sample, to_int)
            tensors = m.map_sample(ints, lambda a: clew.tensor(a))
            with np.errstate(all="ignore"):
                want = op.reference(*ints.args, **ints.kwargs)
            got = m.function(op.name)(*tensors.args, **tensors.kwargs)
            assert_close(
                got, want, "float32", max(op.rtol, 1.0), f"{op.name}{ints} in {dtype_name}"
            )


@pytest.mark.parametrize("op", WITH_GRAD, ids=by_name)
def test_first_derivatives(op: Op):
    """<seed, J direction> by backward, by forward (the transpose of backward) and by finite
    differences.
    """
    rng = np.random.default_rng(1)
    checked = 0
    for sample, problem in m.derivative_samples(op):
        inputs = [t.detach().clone().requires_grad_() for t in problem.inputs]
        outputs = [o for o in problem(*inputs) if o.requires_grad]
        assert outputs, f"{op.name}{sample}: the result does not require grad"
        keep = [i for i, o in enumerate(problem(*inputs)) if o.requires_grad]

        def run(*xs: Any, keep: Any = keep, problem: Any = problem) -> Any:
            got = problem(*xs)
            return [got[i] for i in keep]

        for _ in range(2):
            directions = [m.random_like(t, rng) for t in inputs]
            seeds = [m.random_like(o, rng) for o in outputs]
            want = problem.smooth_derivative(run, [t.detach() for t in inputs], directions, seeds)
            if want is None:
                continue
            checked += 1
            grads = clew.autograd.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True)
            for g, t in zip(grads, inputs):
                assert g is None or (g.shape == t.shape and g.dtype == t.dtype), (
                    f"{op.name}{sample}"
                )
            have = sum(m.inner(g, d) for g, d in zip(grads, directions) if g is not None)
            scale = max(1.0, abs(want))
            assert abs(have - want) < 2e-4 * scale, (
                f"{op.name}{sample}: backward {have}, finite differences {want}"
            )
            if op.second:
                _, tangents = clew.autograd.functional.jvp(
                    lambda *xs: tuple(run(*xs)), tuple(inputs), tuple(directions)
                )
                forward = sum(m.inner(s, t) for s, t in zip(seeds, tangents))
                assert abs(forward - have) < 1e-8 * max(1.0, abs(have)), (
                    f"{op.name}{sample}: <v, J t> and <J^T v, t> differ"
                )
    assert checked, f"{op.name}: no derivative could be checked; give a sample away from kinks"


@pytest.mark.parametrize("op", [op for op in WITH_GRAD if op.second], ids=by_name)
def test_second_derivatives(op: Op):
    """The gradient's own gradient, with respect to inputs and to the seed, against finite
    differences.
    """
    rng = np.random.default_rng(2)
    for sample, problem in m.derivative_samples(op):
        inputs = [t.detach().clone().requires_grad_() for t in problem.inputs]
        outputs = problem(*inputs)
        keep = [i for i, o in enumerate(outputs) if o.requires_grad]
        seeds = [m.random_like(outputs[i], rng).requires_grad_() for i in keep]
        n = len(inputs)

        def gradient(*xs: Any, keep: Any = keep, problem: Any = problem, n: int = n) -> Any:
            with clew.enable_grad():
                live = [x if x.requires_grad else x.detach().requires_grad_() for x in xs[:n]]
                got = problem(*live)
                grads = clew.autograd.grad(
                    [got[i] for i in keep], live, list(xs[n:]), create_graph=True, allow_unused=True
                )
            return [clew.zeros_like(x) if g is None else g for g, x in zip(grads, live)]

        everything = [*inputs, *seeds]
        first = gradient(*everything)
        live = [g for g in first if g.requires_grad]
        if not live:
            continue
        which = [i for i, g in enumerate(first) if g.requires_grad]
        directions = [m.random_like(t, rng) for t in everything]
        weights = [m.random_like(g, rng) for g in live]
        want = problem.smooth_derivative(
            lambda *xs, which=which, gradient=gradient: [gradient(*xs)[i].detach() for i in which],
            [t.detach() for t in everything],
            directions,
            weights,
        )
        if want is None:
            continue
        got = clew.autograd.grad(live, everything, weights, allow_unused=True)
        have = sum(m.inner(g, d) for g, d in zip(got, directions) if g is not None)
        assert abs(have - want) < 1e-3 * max(1.0, abs(want)), (
            f"{op.name}{sample}: second order {have}, differences {want}"
        )


def strided(t: clew.Tensor) -> clew.Tensor:
    """The same values at other strides: every other element of a larger, transposed tensor."""
    if t.ndim == 0:
        return clew.stack([t, t])[1]
    wide = clew.stack([t, t], dim=-1).flatten(-2)[..., ::2] if t.shape[-1] else t
    if wide.ndim >= 2:
        wide = wide.transpose(0, 1).contiguous().transpose(0, 1)
        wide = clew.stack([wide, wide], dim=0)[1]
    return wide


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_strided_inputs(op: Op):
    if "random" in op.why:
        return
    for sample in m.samples_of(op):
        plain = m.double(sample)
        other = m.replace_tensors(plain, [strided(t) for t in m.tensors_in(plain)])
        want = m.flat_outputs(m.function(op.name)(*plain.args, **plain.kwargs))
        got = m.flat_outputs(m.function(op.name)(*other.args, **other.kwargs))
        for g, w in zip(m.to_numpy(got), m.to_numpy(want), strict=True):
            np.testing.assert_allclose(
                g, w, rtol=1e-9, atol=1e-9, err_msg=f"{op.name}{sample} strided"
            )


def expanded(t: clew.Tensor, dim: int) -> clew.Tensor:
    """The first slice along dim, as often as t has slices, at a stride of 0."""
    return t.narrow(dim, 0, 1).expand(t.shape) if t.ndim > dim and t.shape[dim] > 1 else t


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_expanded_inputs(op: Op):
    if "random" in op.why or "writes" in op.why or op.name.startswith(("view", "_ctc_loss")):
        return  # these ask for strides
    for sample, dim in itertools.product(m.samples_of(op), range(3)):
        plain = m.double(sample)
        wide = [expanded(t, dim) for t in m.tensors_in(plain)]
        if not any(0 in t.stride() and t.numel() for t in wide):
            continue
        dense = m.replace_tensors(plain, [t.contiguous() for t in wide])
        try:
            want = m.to_numpy(m.flat_outputs(m.function(op.name)(*dense.args, **dense.kwargs)))
        except (RuntimeError, ValueError, IndexError):
            continue  # equal slices are not for all: singular matrices
        spread = m.replace_tensors(plain, wide)
        got = m.to_numpy(m.flat_outputs(m.function(op.name)(*spread.args, **spread.kwargs)))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(
                g, w, rtol=1e-9, atol=1e-9, err_msg=f"{op.name}{sample} expanded along {dim}"
            )


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_inputs_are_left_alone(op: Op):
    for sample in m.samples_of(op):
        tensors = m.double(sample)
        before = [m.to_numpy(t).copy() for t in m.tensors_in(tensors)]
        m.function(op.name)(*tensors.args, **tensors.kwargs)
        for b, t in zip(before, m.tensors_in(tensors)):
            if "writes" not in op.why:
                np.testing.assert_array_equal(b, m.to_numpy(t), err_msg=f"{op.name}{sample}")


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_inplace(op: Op):
    """name_(x, ...) gives what name(x, ...) gives, returns x, counts a version, and has the same
    gradient.
    """
    inplace = m.inplace_function(op.name)
    if inplace is None or not op.inplace or "random" in op.why:
        return
    ran = 0
    for sample in m.samples_of(op):
        tensors = m.double(sample)
        if not isinstance(tensors.args[0], clew.Tensor):
            continue
        want = m.function(op.name)(*tensors.args, **tensors.kwargs)
        target = tensors.args[0].clone()
        if want.shape != target.shape or not clew.can_cast(want.dtype, target.dtype):
            with pytest.raises(RuntimeError):
                inplace(target, *tensors.args[1:], **tensors.kwargs)
            continue
        version = target._version
        assert inplace(target, *tensors.args[1:], **tensors.kwargs) is target
        assert target._version > version
        np.testing.assert_allclose(
            m.to_numpy(target), m.to_numpy(want).astype(m.to_numpy(target).dtype), equal_nan=True
        )
        ran += 1
        if (
            op.grad
            and m.is_inexact(tensors.args[0])
            and want.requires_grad is False
            and target.numel()
        ):
            x = tensors.args[0].detach().clone().requires_grad_()
            y = x * 1
            inplace(y, *tensors.args[1:], **tensors.kwargs)
            if not y.requires_grad:
                continue
            seed = clew.ones_like(y)
            got = clew.autograd.grad(y, x, seed)[0]
            expect = clew.autograd.grad(
                m.function(op.name)(x, *tensors.args[1:], **tensors.kwargs),
                x,
                seed,
                allow_unused=True,
            )
            if expect[0] is not None:
                np.testing.assert_allclose(
                    m.to_numpy(got), m.to_numpy(expect[0]), rtol=1e-9, atol=1e-9, equal_nan=True
                )
    assert ran or not m.samples_of(op)


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.out and not op.name.startswith("_")], ids=by_name
)
def test_out(op: Op):
    """out= receives the result (resized when empty), and refuses gradients."""
    if "random" in op.why or "view" in op.why:
        return
    for sample in m.samples_of(op)[:2]:
        tensors = m.double(sample)
        want = m.function(op.name)(*tensors.args, **tensors.kwargs)
        if not isinstance(want, clew.Tensor):
            continue
        out = clew.empty(0, dtype=want.dtype)
        assert m.function(op.name)(*tensors.args, out=out, **tensors.kwargs) is out
        assert out.shape == want.shape
        np.testing.assert_allclose(m.to_numpy(out), m.to_numpy(want), equal_nan=True)


@pytest.mark.parametrize("op", OPS, ids=by_name)
def test_meta(op: Op):
    """The shape rule alone gives the shape and dtype that the kernel's result has."""
    if "data" in op.why:
        return
    for sample in m.samples_of(op):
        tensors = m.double(sample)
        if not m.tensors_in(tensors):
            continue
        want = m.flat_outputs(m.function(op.name)(*tensors.args, **tensors.kwargs))
        meta = m.replace_tensors(tensors, [t.to("meta") for t in m.tensors_in(tensors)])
        got = m.flat_outputs(m.function(op.name)(*meta.args, **meta.kwargs))
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert (g.shape, g.dtype, g.device.type) == (w.shape, w.dtype, "meta"), (
                f"{op.name}{sample}"
            )


@pytest.mark.parametrize(
    "case",
    [(op, e) for op in OPS for e in op.errors],
    ids=lambda c: f"{c[0].name}-{c[1].match[:30]}",
)
def test_errors(case: tuple[Op, E]):
    op, e = case
    s = m.map_sample(e.sample, lambda a: m.to_tensor(a, None))
    with pytest.raises(e.error, match=e.match):
        m.function(op.name)(*s.args, **s.kwargs)


@pytest.mark.parametrize("name", sorted(all_op_names()))
def test_survives_nonsense(name: str):
    """No arguments, and arguments of every wrong kind, give exceptions."""
    f = m.function(name)
    x = clew.ones(2, 3)
    for args in [
        (),
        (None,),
        ("a",),
        (object(),),
        (x, "a"),
        (x, object(), object()),
        (x, x, x, x, x, x, x, x),
        (x, 10**30),
    ]:
        try:
            f(*args)
        except Exception as e:
            assert not isinstance(e, SystemError), f"{name}{args}: {e}"
            assert "internal error" not in str(e), f"{name}{args}: {e}"
    with pytest.raises(TypeError):
        f(x, no_such_argument=1)
