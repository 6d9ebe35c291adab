"""Leaving Python: how long an export takes, and what the exported program costs to run.

The models are those of the export tests, written for clew; PyTorch runs the same source under
clew's name. PyTorch's `torch.export` does not take those whose control flow follows data.
Running: without gradients, the example's sizes, alternated in one process.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.suites.compile import alternated

UNIT = "ms"
BETTER = "lower"
MODELS = Path(__file__).parents[2] / "tests" / "export" / "export_models.py"
NAMES = (
    "mlp",
    "resnet",
    "mobile",
    "unet",
    "lstm",
    "gru",
    "lstm by hand",
    "encoder",
    "gpt",
    "sampler",
    "decoder with cache",
    "vit",
    "message passing",
    "experts",
    "adaptive",
    "tree lstm",
    "policy",
    "flow",
    "early return",
)
PARTS = len(NAMES)
LIMITS = {
    **{f"{name}: export": 1000.0 for name in NAMES},
    **{f"{name}: export to ONNX": 1000.0 for name in NAMES},
}


def source(t: Any) -> Any:
    """The models of the tests, made with the library t."""
    if t.__name__ != "clew":
        sys.modules["clew"] = t
        sys.modules["clew.export"] = importlib.import_module("torch.export")
    spec = importlib.util.spec_from_file_location("export_models", MODELS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["export_models"] = module
    spec.loader.exec_module(module)
    return module


def took(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of one call, and what it gave."""
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1e3, result


def run(t: Any, part: int) -> dict[str, float]:
    """Export, export to ONNX, and a call of the model and of the program, for one model."""
    name = NAMES[part]
    case, model, example, _ = source(t).make(name)
    found: dict[str, float] = {}
    calls, labels = [lambda: model(*example)], [f"{name}: eager"]
    with warnings.catch_warnings(), t.no_grad():
        warnings.simplefilter("ignore")
        try:
            options = {} if t.__name__ == "clew" else {"strict": False}
            export = importlib.import_module(f"{t.__name__}.export").export
            spent, program = took(
                lambda: export(model, example, dynamic_shapes=case.shapes, **options)
            )
        except Exception as error:  # what cannot be exported has no row
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            found[f"{name}: export"] = spent
            module = program.module()
            if t.__name__ == "clew":
                file = io.BytesIO()
                t.export.save(program, file)
                file.seek(0)
                module = t.export.load(file).module()
            calls.append(lambda: module(*example))
            labels.append(f"{name}: exported program")
        if t.__name__ == "clew" and importlib.util.find_spec("onnxruntime"):
            session, feed = onnx(t, name, model, example, case.shapes, found)
            calls.append(lambda: session.run(None, feed))
            labels.append(f"{name}: onnxruntime")
        times = alternated(calls, 0.3, 9)
    return found | dict(zip(labels, times, strict=True))


def onnx(t: Any, name: str, model: Any, example: Any, shapes: Any, found: dict[str, float]) -> Any:
    """A session of onnxruntime on the model's file, and its inputs."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "m.onnx"
        spent, _ = took(lambda: t.onnx.export(model, example, str(path), dynamic_shapes=shapes))
        found[f"{name}: export to ONNX"] = spent
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = t.get_num_threads()
        session = onnxruntime.InferenceSession(str(path), options)
    feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), example, strict=True)}
    return session, feed
