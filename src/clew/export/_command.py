"""The command `clew export`."""

from __future__ import annotations

import argparse
import os
import sys
import types
from collections.abc import Sequence
from typing import Any

from clew.export._errors import ExportError

__all__ = ["main"]

_EPILOG = """
FILE.py:NAME names a Module, or a function or class that makes one when it is called without
arguments. The file may import torch: it gets clew. The example is a file of clew.save (or
torch.save): a tensor, a tuple of arguments, or a dict of named ones.

  clew export train.py:model --example x.pt -o m.onnx --dynamic x:0=batch,1=time
"""


def main(args: Sequence[str]) -> int:
    """Exports a model from a Python file.

    Args:
        args: the words after `clew export`.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="clew export", description="writes a model as an ONNX file or as clew's own program",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("model", metavar="FILE.py:NAME", help="the model")
    parser.add_argument("--example", required=True, help="a file with the model's arguments")
    parser.add_argument(
        "-o", "--output", required=True,
        help="the file to write: ONNX when it ends in .onnx, else clew's own format",
    )  # fmt: skip
    parser.add_argument(
        "--dynamic", action="append", default=[], metavar="ARG:DIM=NAME,...",
        help="sizes that may vary; 'auto' lets all vary that can",
    )  # fmt: skip
    parser.add_argument("--weights", help="a state dict to load into the model")
    parser.add_argument("--opset", type=int, default=None, help="of the ONNX operators (20)")
    parser.add_argument("--train", action="store_true", help="do not call eval() first")
    parser.add_argument("--show", action="store_true", help="print the program")
    given = parser.parse_args(list(args))
    from clew._cli.run import install, uninstall

    before, path = list(sys.meta_path), list(sys.path)
    install()
    installed = sys.meta_path != before
    try:
        return _export(given)
    except (ExportError, OSError, ImportError) as e:
        print(f"clew export: {e}", file=sys.stderr)
        return 1
    finally:
        sys.path[:] = path
        if installed:
            uninstall()


def _export(given: Any) -> int:
    import clew
    from clew.export import export, save

    model = _model(given.model)
    if given.weights:
        model.load_state_dict(clew.load(given.weights))
    if not given.train:
        model.eval()
    example = clew.load(given.example)
    args, kwargs = (), {}
    if isinstance(example, dict):
        kwargs = example
    else:
        args = tuple(example) if isinstance(example, (tuple, list)) else (example,)
    shapes = _shapes(given.dynamic, model, args, kwargs)
    program = export(model, args, kwargs, dynamic_shapes=shapes)
    if given.show:
        print(program)
    if given.output.endswith(".onnx"):
        clew.onnx.export(program, f=given.output, opset_version=given.opset)
    else:
        save(program, given.output)
    calls = sum(1 for _ in program._program.walk())
    size = os.path.getsize(given.output)
    print(f"{given.output}: {calls} calls, {size:,} bytes, compared on {len(program._examples)} "
          f"inputs")  # fmt: skip
    return 0


def _model(text: str) -> Any:
    from clew.nn import Module

    path, colon, name = text.rpartition(":")
    if not colon or not name or not os.path.isfile(path):
        raise ExportError(f"{text!r} is not FILE.py:NAME with a file that exists")
    path = os.path.abspath(path)
    sys.path.insert(0, os.path.dirname(path))
    module = types.ModuleType(os.path.splitext(os.path.basename(path))[0])
    module.__file__ = path
    sys.modules.setdefault(module.__name__, module)
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ExportError(f"{path} has no {name!r}")
        found = getattr(found, part)
    if not isinstance(found, Module) and callable(found):
        found = found()
    if not isinstance(found, Module):
        raise ExportError(f"{name} in {path} is no Module, and makes none")
    return found


def _shapes(texts: list[str], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from clew import Tensor
    from clew.export import Dim
    from clew.export._module import run_names

    if not texts:
        return None
    names = run_names(model.forward)[: len(args)]
    names += [f"arg{i}" for i in range(len(names), len(args))]
    shapes: dict[str, Any] = {}
    for text in texts:
        if text == "auto":
            for name, x in [*zip(names, args), *kwargs.items()]:
                if isinstance(x, Tensor):
                    shapes[name] = dict.fromkeys(range(x.dim()), Dim.AUTO)
            continue
        name, colon, dims = text.partition(":")
        if not colon:
            raise ExportError(f"--dynamic {text!r}: write ARG:DIM=NAME,DIM=NAME")
        table = shapes.setdefault(name, {})
        for part in dims.split(","):
            number, _, label = part.partition("=")
            if not number.lstrip("-").isdigit():
                raise ExportError(f"--dynamic {text!r}: {number!r} is no dim")
            table[int(number)] = Dim(label) if label else Dim.AUTO
    return tuple(shapes.get(n) for n in (*names, *kwargs)) if not set(shapes) - {
        *names, *kwargs} else shapes  # fmt: skip
