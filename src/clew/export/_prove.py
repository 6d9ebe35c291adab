"""Proves a program: it gives what the model gives, on values and sizes that it has not met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import clew
from clew import Tensor
from clew.export import _tree
from clew.export._errors import ExportError
from clew.export._ir import Program, values_in, written
from clew.export._module import ProgramModule
from clew.export._shapes import Sizes, examples
from clew.export._stand_ins import _shape_of

if TYPE_CHECKING:
    from clew.export._export import _Runner

SEED = 20_240_611


def prove(
    runner: _Runner, program: Program, first: list[Tensor], second: list[Tensor], sizes: Sizes
) -> Iterator[tuple[list[Tensor], list[Any]]]:
    """Compares the program with the model on the examples and on others; yields them with the
    results.

    Raises:
        ExportError: the results differ.
    """
    module = ProgramModule(program)
    rng = np.random.default_rng(SEED + 1)
    pool = [first, second]
    tries = 0
    for tried in examples(first, sizes, rng, more=2):
        tries += 1
        if len(pool) >= 4 or tries > 8:
            break
        try:
            runner.results[id(tried)] = runner(tried)
        except Exception:
            continue
        pool.append(tried)
    carried = runner.carries(first, second)
    if carried:
        raise ExportError(
            f"export: forward() keeps values from run to run in {', '.join(carried)}\n"
            f"  A program keeps buffers, which are written in place or get tensors of the same "
            f"size, and no other attributes: register a buffer, or take the value as an argument "
            f"and return it."
        )
    _prove_state(runner, program, first, second)
    for tensors in pool:
        expected: list[Any] = []
        wanted = runner.results.get(id(tensors))
        _tree.flatten(wanted, expected, "the result", is_leaf)
        got: list[Any] = []
        runner.restore()
        clew.manual_seed(SEED)
        try:
            with clew.no_grad():
                whole = module._run(*[t.detach().clone() for t in tensors])
        except Exception as e:
            from clew.export._code import GuardFailed

            shapes = [list(_shape_of(t)) for t in tensors]
            if isinstance(e, GuardFailed) and tensors is not first and tensors is not second:
                continue
            raise ExportError(
                f"export: the recorded program fails for inputs of the shapes {shapes}, where the "
                f"model does not: {e}"
            ) from e
        finally:
            runner.restore()
        results: list[Any] = []
        _tree.match(program.out_tree, whole, results, "the result")
        _tree.flatten(whole, got, "the result", is_leaf)
        _compare(expected, got, tensors)
        yield tensors, results


def _prove_state(
    runner: _Runner, program: Program, first: list[Tensor], second: list[Tensor]
) -> None:
    """Compares two runs one after the other, where the program changes what the model keeps."""
    kept = {v.id for v in program.kept}
    if not any(v.id in kept for n in program.walk() for v in values_in(written(n))):
        return
    module = ProgramModule(program)

    def one_after_the_other(run: Callable[[list[Tensor]], Any]) -> list[Any]:
        leaves: list[Any] = []
        runner.restore()
        try:
            for tensors in (first, second):
                clew.manual_seed(SEED)
                made: list[Any] = []
                with clew.no_grad():
                    _tree.flatten(run(tensors), made, "the result", is_leaf)
                leaves += [x.clone() if isinstance(x, Tensor) else x for x in made]
        finally:
            runner.restore()
        return leaves

    try:
        expected = one_after_the_other(runner._run)
    except Exception:
        return  # the model takes the second example only as a first one
    try:
        got = one_after_the_other(lambda tensors: module._run(*[t.clone() for t in tensors]))
        _compare(expected, got, second)
    except (ExportError, RuntimeError) as e:
        raise ExportError(
            f"export: a second run of the program is not the model's second run: {e}"
        ) from e


def is_leaf(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float))


def _compare(expected: list[Any], got: list[Any], tensors: list[Tensor]) -> None:
    shapes = [list(_shape_of(t)) for t in tensors]
    if len(expected) != len(got):
        raise ExportError(
            f"export: the model gives {len(expected)} results for inputs of the shapes {shapes} "
            f"and the recorded program {len(got)}: the structure of the result depends on data"
        )
    for k, (a, b) in enumerate(zip(expected, got)):
        difference = difference_of(a, b)
        if difference:
            raise ExportError(
                f"export: result {k} of the recorded program differs from the model's for inputs "
                f"of the shapes {shapes}: {difference}\n  A number or a tensor that Python made of "
                f"data, or that changes from run to run (through NumPy, a random number of "
                f"Python's, a global, an attribute of an object), became a constant; compute it "
                f"with clew's operations in forward()."
            )


def difference_of(a: Any, b: Any, tolerance: float = 1e-4) -> str:
    """How two results differ; empty where they agree."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        x, y = (v.item() if isinstance(v, Tensor) else v for v in (a, b))
        same = x == y or (isinstance(x, float) and abs(x - y) <= tolerance * max(1, abs(x)))
        return "" if same or (x != x and y != y) else f"{x!r} and {y!r}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype.name}{list(a.shape)} and {b.dtype.name}{list(b.shape)}"
    if not a.numel():
        return ""
    x, y = a.detach(), b.detach()
    if not (a.is_floating_point() or a.is_complex()):
        wrong = int((x != y).sum())
        return f"{wrong} elements differ" if wrong else ""
    if a.dtype in (clew.float16, clew.bfloat16):
        x, y, tolerance = x.float(), y.float(), max(tolerance, 2e-2)
    scale = float(x.abs().nan_to_num(0, 0, 0).amax())
    if clew.allclose(x, y, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True):
        return ""
    return f"by up to {float((x - y).abs().nan_to_num(0, 0, 0).amax()):.3g}, beside {scale:.3g}"
