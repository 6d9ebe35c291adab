"""clew.onnx.export: a program, written as ONNX, compared and stored."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._base.provenance import user_level
from clew.export._export import record
from clew.export._ir import Value
from clew.export._module import ProgramModule, run_names
from clew.export._program import ExportedProgram
from clew.export._prove import difference_of
from clew.nn import Module
from clew.onnx._aliases import check_aliases
from clew.onnx._errors import OnnxExporterError
from clew.onnx._package import need_onnx
from clew.onnx._state import carried_state

__all__ = ["ONNXProgram", "export"]

_LEAST = 18


class ONNXProgram:
    """A model as ONNX; `export` returns it.

    Attributes:
        model_proto: the file's content, of the onnx package.
        exported_program: what it was written from.
        checks: conditions on sizes that the program relies on and that a file cannot check.
        state: of buffers that a run changes: the input that a buffer is, and the output that says
            what it is afterwards.

    Args:
        model: the file's content.
        program: what it was written from.
        checks: see above.
        state: see above.

    Example:
        >>> program = clew.onnx.export(clew.nn.Linear(2, 1), clew.ones(3, 2))
        >>> isinstance(program, clew.onnx.ONNXProgram), program(clew.ones(3, 2))[0].shape
        (True, clew.Size([3, 1]))
    """

    def __init__(
        self, model: Any, program: ExportedProgram, checks: list[str], state: dict[str, str]
    ) -> None:
        self.model_proto, self.exported_program, self.checks = model, program, checks
        self.state = state

    def save(self, destination: Any) -> None:
        """Writes the file.

        Args:
            destination: a path or a binary file.
        """
        data = self.model_proto.SerializeToString()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        from clew._base.whole_files import replacing

        with replacing(os.fspath(destination)) as file:
            file.write(data)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Runs it with onnxruntime; without that, with clew's own loader.

        Args:
            args: tensors, as the model takes them.
            kwargs: likewise.
        """
        module = ProgramModule(self.exported_program._program)
        leaves = module._leaves(args, kwargs)
        return tuple(run_model(self.model_proto, leaves))

    def __repr__(self) -> str:
        return f"<ONNXProgram of {len(self.model_proto.graph.node)} nodes>"


def run_model(model: Any, tensors: list[Tensor], session: Any = None) -> list[Tensor]:
    """The outputs of a model."""
    session = session_of(model) if session is None else session
    if not session:
        from clew.onnx._load import module_of

        result = module_of(model)(*tensors)
        return list(result) if isinstance(result, tuple) else [result]
    names = [i.name for i in session.get_inputs()]
    wanted = {i.name for i in model.graph.input}
    given = [i.name for i in model.graph.input]
    feed = {n: t.detach().numpy() for n, t in zip(given, tensors) if n in names and n in wanted}
    return [clew.tensor(np.asarray(x)) for x in session.run(None, feed)]


def session_of(model: Any) -> Any:
    """A session of onnxruntime; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e):  # of dtypes, as bfloat16
            warnings.warn(
                f"onnx.export: onnxruntime cannot run the file on the CPU, and clew's own loader "
                f"runs it instead: {e}",
                stacklevel=user_level(),
            )
            return None
        raise OnnxExporterError(f"onnx.export: onnxruntime refuses the file: {e}") from e


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Any = None,
    output_names: Any = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = False,
    dynamic_shapes: Any = None,
    dynamic_axes: Any = None,
    export_params: bool = True,
    do_constant_folding: bool = True,
    keep_initializers_as_inputs: bool = False,
    verify: bool = True,
    optimize: bool = True,
    training: Any = None,
    report: bool = False,
) -> ONNXProgram:
    """Writes a model as an ONNX file.

    Branches and loops that data or sizes decide become If and Loop. The file is run on the example
    and on others of other sizes and values (by onnxruntime where it is installed, else by clew's
    own loader) and compared with the model before it is written.

    Args:
        model: a Module, a function, or an ExportedProgram.
        args: a tuple of arguments, or one tensor.
        f: a path or a binary file; None writes none.
        kwargs: named arguments.
        verbose: print what was written.
        input_names: of the file's inputs, in order.
        output_names: of its outputs.
        opset_version: of the operators, 18 or more; 20 when None.
        dynamo: both ways are one here.
        external_data: must be false: weights are stored in the file.
        dynamic_shapes: which sizes may vary, as for `clew.export.export`.
        dynamic_axes: PyTorch's older form of it: {input name: {dim: name} or [dims]}.
        export_params: must be true.
        do_constant_folding: accepted; runtimes fold constants.
        keep_initializers_as_inputs: must be false.
        verify: must be true: every file is compared.
        optimize: accepted; what nothing needs is never written.
        training: None or TrainingMode.EVAL or PRESERVE.
        report: must be false.

    Returns:
        the program, with the file's content as ``model_proto``.

    Raises:
        ExportError: something cannot be kept, or the file's results differ.
        ImportError: the onnx package is not installed.

    Example:
        >>> program = clew.onnx.export(clew.nn.Linear(2, 1), clew.ones(3, 2), "linear.onnx")
        >>> program.model_proto.graph.node[0].op_type
        'Gemm'
    """
    onnx = need_onnx()
    from clew.onnx import _lower, _rules

    assert _rules.LOADED  # they register what they can write
    _refuse_options(
        external_data=(external_data, False),
        export_params=(export_params, True),
        keep_initializers_as_inputs=(keep_initializers_as_inputs, False),
        verify=(verify, True),
        report=(report, False),
    )
    if training is not None and int(training) == 2:
        raise OnnxExporterError("onnx.export: training files are not written")
    opset = _checked_opset(20 if opset_version is None else opset_version)
    program, axes = _recorded(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names)
    check_aliases(program._program)
    builder = _lower.Builder(program._program, opset)
    written = builder.model(input_names, output_names, str(program))
    _warn_of_axes(axes, written.graph)
    try:
        onnx.checker.check_model(written)
    except onnx.checker.ValidationError as e:
        raise OnnxExporterError(f"onnx.export: internal error, the file is not valid: {e}") from e
    _verify(written, program, [v.source[1] for v in carried_state(program._program) if v.source])
    checks = list(dict.fromkeys(builder.guards))
    _warn_of_limits(checks, builder.state, _constants(program._program.out_tree))
    made = ONNXProgram(written, program, checks, dict(builder.state))
    if f is not None:
        made.save(f)
    if verbose:
        print(onnx.helper.printable_graph(written.graph))
    return made


def _refuse_options(**options: tuple[Any, bool]) -> None:
    """Refuses options that have another value than the only one there is."""
    for name, (given, wanted) in options.items():
        if bool(given) is not wanted:
            raise OnnxExporterError(f"onnx.export: {name} must be {wanted}")


def _checked_opset(opset: Any) -> int:
    newest = need_onnx().defs.onnx_opset_version()
    if not isinstance(opset, int) or not _LEAST <= opset <= newest:
        raise OnnxExporterError(
            f"onnx.export: opset_version must be from {_LEAST} to {newest}; got {opset!r}"
        )
    return opset


def _recorded(
    model: Any, args: Any, kwargs: Any, dynamic_shapes: Any, dynamic_axes: Any, input_names: Any
) -> tuple[ExportedProgram, dict[str, Any]]:
    """The model as a program, and what is left of dynamic_axes when its inputs are known."""
    if isinstance(model, ExportedProgram):
        if not model._examples:
            raise OnnxExporterError(
                "onnx.export: a program that was loaded has no example to compare with; export "
                "the model itself"
            )
        return model, {}
    axes: dict[str, Any] = {}
    args = args if isinstance(args, tuple) else (args,)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict) and isinstance(model, Module) and not kwargs:
        if set(args[-1]) <= set(run_names(model.forward)[len(args) - 1 :]):
            kwargs, args = args[-1], args[:-1]
    if dynamic_axes is not None:
        if dynamic_shapes is not None:
            raise OnnxExporterError("onnx.export: give dynamic_shapes or dynamic_axes")
        dynamic_shapes, axes = _from_axes(dynamic_axes, model, args, kwargs, input_names)
    return record(model, args, kwargs, dynamic_shapes, keep_added=False), axes


def _warn_of_axes(axes: dict[str, Any], graph: Any) -> None:
    inputs, outputs = ([v.name for v in vs] for vs in (graph.input, graph.output))
    if unknown := sorted(axes.keys() - {*outputs}):
        warnings.warn(
            f"onnx.export: dynamic_axes: {', '.join(map(repr, unknown))} are no inputs or outputs "
            f"and make no size vary; the inputs are {inputs}, the outputs {outputs}",
            stacklevel=user_level(),
        )


def _warn_of_limits(checks: list[str], state: dict[str, str], left_out: list[Any]) -> None:
    """Says what the file cannot keep: conditions, values from run to run, constant results."""
    if checks:
        warnings.warn(
            "onnx.export: the program relies on conditions that an ONNX file cannot check: "
            + "; ".join(checks),
            stacklevel=user_level(),
        )
    if state:
        pairs = ", ".join(f"{o} to {i}" for i, o in state.items())
        warnings.warn(
            f"onnx.export: forward() changes {', '.join(state)}, and an ONNX file keeps "
            f"nothing between runs: give the outputs behind the model's own to the next run as "
            f"inputs ({pairs}), which start with what is stored. clew.onnx.load() does so.",
            stacklevel=user_level(),
        )
    if left_out:
        warnings.warn(
            f"onnx.export: the model returns the constants {left_out}, which are no outputs of the "
            f"file: its outputs are the tensors and the numbers that vary, in order",
            stacklevel=user_level(),
        )


def _constants(spec: Any) -> list[Any]:
    """Numbers of a result that are the same in every run."""
    if spec[0] == "constant":
        return [spec[1]] if isinstance(spec[1], (bool, int, float)) else []
    if spec[0] == "leaf":
        return []
    parts = spec[2] if spec[0] == "dict" else spec[3] if spec[0] == "named" else spec[1]
    return [x for part in parts for x in _constants(part)]


def _from_axes(
    axes: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """PyTorch's older form of dynamic_shapes, which names tensors as the file does.

    Returns:
        dynamic_shapes, and what is left of ``axes``: of outputs, and of nothing.
    """
    own = run_names(model.forward if isinstance(model, Module) else model)
    own += [f"arg{i}" for i in range(len(own), len(args))]
    left, listed = dict(axes), iter(names or ())

    def shape(x: Any, name: str) -> Any:
        if isinstance(x, dict):
            return {k: shape(v, f"{name}_{k}") for k, v in x.items()}
        if isinstance(x, (tuple, list)):
            return [shape(v, f"{name}_{i}") for i, v in enumerate(x)]
        if not isinstance(x, Tensor):
            return None
        given = next(listed, name)
        dims = left.pop(given, None)
        dims = left.pop(name, None) if dims is None else dims
        if dims is None or isinstance(dims, dict):
            return dims and {d: str(n) for d, n in dims.items()}
        return {d: f"{given}_dim_{d}" for d in dims}

    shapes = {n: shape(x, n) for n, x in (*zip(own, args), *kwargs.items())}
    return shapes, left


def _verify(model: Any, program: ExportedProgram, state: list[str]) -> None:
    """Compares the file with the program on every example.

    Args:
        model: the file's content.
        program: what it was written from.
        state: names of the tensors whose values are further outputs.
    """
    from clew.onnx._draws import DRAWS

    session = session_of(model) or False
    random = any(n.op in DRAWS for n in program._program.walk())
    inner = program._program
    for tensors, expected in program._examples:
        try:
            got = run_model(model, tensors, session)
        except OnnxExporterError:
            raise
        except Exception as e:
            raise OnnxExporterError(
                f"onnx.export: the file fails for inputs of the shapes "
                f"{[list(t.shape) for t in tensors]}: {e}"
            ) from e
        ends = _state_after(inner, tensors, state) if state else []
        for k, (a, b) in enumerate(zip([*expected, *ends], got)):
            if not isinstance(a, Tensor):
                a = clew.tensor(a, dtype=b.dtype)
            if random:
                if k >= len(expected):
                    continue
                fixed = getattr(inner.body.results[k], "sizes", ())
                fits = a.dim() == b.dim() and a.dtype == b.dtype
                # What is drawn may decide the sizes that vary.
                if not fits or any(n not in (None, m) for n, m in zip(fixed, b.shape)):
                    raise OnnxExporterError(
                        f"onnx.export: output {k} of the file is {b.dtype.name}{list(b.shape)}, "
                        f"and the model's is {a.dtype.name}{list(a.shape)}"
                    )
                continue
            like = inner.body.results[k] if k < len(expected) else None
            if isinstance(like, Value) and like.kind != "tensor":
                a = a.to(b.dtype)
            difference = difference_of(a, b, 1e-3)
            if difference:
                raise OnnxExporterError(
                    f"onnx.export: output {k} of the file differs from the model's for inputs of "
                    f"the shapes {[list(t.shape) for t in tensors]}: {difference}"
                )


def _state_after(program: Any, tensors: list[Tensor], names: list[str]) -> list[Tensor]:
    """What tensors of the model are after a run."""
    kept = [program.tensors[n] for n in names]
    before = [t.detach().clone() for t in kept]
    with clew.no_grad():
        try:
            ProgramModule(program)._run(*[t.detach().clone() for t in tensors])
            return [t.detach().clone() for t in kept]
        finally:
            for t, old in zip(kept, before):
                t.copy_(old)
