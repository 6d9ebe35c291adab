"""What is called: operations, public functions, Tensor's methods, modules; and with which kinds."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import clew
from clew import _C, nn

PARAMETER = re.compile(r"(\*|[\w\[\]?]+\*? \w+)(=[^,()\[\]]+|='[^']*'|=\[[^\]]*\])?")
MODULES = [
    "clew",
    "clew.nn.functional",
    "clew.nn.init",
    "clew.nn.utils",
    "clew.nn.utils.rnn",
    "clew.linalg",
    "clew.fft",
    "clew.special",
    "clew.signal.windows",
    "clew.masked",
    "clew.autograd",
    "clew.autograd.functional",
    "clew.func",
]
# They end or reach out of the process, wait for somebody, or change what the fuzzer stands on.
LEFT_OUT = re.compile(
    r"^_|^(save|load|hub|compile|main|fork|wait|set_num_.*|set_default_.*|set_printoptions|seed|"
    r"initial_seed|empty_cache|import_module|set_rng_state|from_file|share_memory_?|cuda|to_file|"
    r"set_deterministic.*|use_deterministic.*|set_warn_always|set_flush_denormal|get_rng_state|"
    r"set_autocast.*|set_grad_enabled|typename|gradcheck|gradgradcheck|detect_anomaly|"
    r"set_detect_anomaly|set_multithreading_enabled|(inference|no_grad|enable_grad).*|"
    r"is_.*_enabled|profiler.*|emit_.*|kineto.*)$"
)
SPECIAL = ("__getitem__", "__setitem__", "__array__", "__deepcopy__", "__contains__")
# What a parameter of this name mostly takes.
KINDS = {
    "Tensor": "input other x a b self tensor weight target query key value grad mask index src end "
    "source values indices data mat mat1 mat2 vec vec1 vec2 batch1 batch2 tensor1 tensor2 "
    "running_mean running_var mean var bias exponent condition boundaries sorted_sequence "
    "anchor positive negative x1 x2 input1 input2 log_probs targets grid L U LU A B tau "
    "hx cx embedding",
    "Tensor[]": "tensors inputs matrices parameters sequences arrays",
    "int": "dim n k m diagonal offset chunks sections num_classes groups bins dim0 dim1 N M "
    "upscale_factor downscale_factor num_samples ord start step steps dimension length "
    "correction num_layers window_length",
    "int[]": "size sizes shape dims shifts repeats kernel_size stride padding dilation output_size "
    "pad normalized_shape axes split_size_or_sections s scale_factor kernel "
    "output_padding source destination",
    "bool": "keepdim inplace training unbiased descending largest sorted align_corners ceil_mode "
    "count_include_pad log_target full zero_infinity return_indices upper left reverse "
    "as_tuple affine batch_first bidirectional is_causal requires_grad right equal_nan",
    "float": "p eps momentum alpha beta lambd negative_slope rtol atol margin delta threshold "
    "temperature dropout std sigma rcond q low high max_norm norm_type lr gain",
    "str": "reduction mode padding_mode norm equation indexing reduce approximate nonlinearity",
    "dtype": "dtype out_dtype",
    "device": "device",
    "memory_format": "memory_format",
    "generator": "generator",
    "None": "layout pin_memory names padding_idx _weight _freeze",
    "extent": "in_features out_features in_channels out_channels num_features embed_dim num_heads "
    "hidden_size input_size num_embeddings embedding_dim d_model nhead num_channels "
    "num_groups n_classes in1_features in2_features num_parameters n_fft win_length",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}


@dataclass(frozen=True)
class Parameter:
    """How to choose one argument."""

    kind: str
    name: str
    optional: bool
    keyword: bool


@dataclass(frozen=True)
class Target:
    """Something to call, by a name that says what it is."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    module: bool = False


def declared(signature: str) -> tuple[Parameter, ...]:
    """The parameters in the signature of an operation."""
    inside = signature[signature.index("(") + 1 : signature.index(") ->")]
    found = []
    keyword = False
    for text, default in PARAMETER.findall(inside):
        if text == "*":
            keyword = True
            continue
        kind, name = text.split(" ")
        found.append(Parameter(kind, name, bool(default), keyword))
    return tuple(found)


def guessed(function: Callable[..., Any], skip: int = 0) -> tuple[Parameter, ...] | None:
    """The parameters of a function, their kinds by their names; None where nothing tells them."""
    signatures = getattr(function, "signatures", None)
    if signatures:
        return declared(signatures[0])[skip:]
    try:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None
    found = []
    for p in parameters:
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            if p.kind is p.VAR_POSITIONAL:
                found.append(Parameter("Tensor", "*", False, False))
            continue
        kind = KIND_OF.get(p.name, "any")
        if kind == "any" and isinstance(p.default, (bool, int, float, str)):
            kind = type(p.default).__name__
        optional = p.default is not p.empty
        found.append(Parameter(kind, p.name, optional, p.kind is p.KEYWORD_ONLY))
    return tuple(found)


def operations(private: bool) -> Iterator[Target]:
    """The operations of the core."""
    for name in dir(_C.ops):
        if name.startswith("__") or (name.startswith("_") and not private):
            continue
        function = getattr(_C.ops, name)
        for signature in function.signatures:
            yield Target(f"ops.{name}", function, declared(signature))


def functions() -> Iterator[Target]:
    """Public functions of PyTorch's modules that are not operations themselves."""
    seen: set[int] = set()
    for path in MODULES:
        module = importlib.import_module(path)
        for name in sorted(dir(module)):
            function = getattr(module, name, None)
            if LEFT_OUT.match(name) or not callable(function) or inspect.isclass(function):
                continue
            if id(function) in seen:
                continue
            seen.add(id(function))
            unknown = (Parameter("Tensor", "*", False, False), Parameter("any", "*", True, False))
            yield Target(f"{path}.{name}", function, guessed(function) or unknown)


def methods() -> Iterator[Target]:
    """Tensor's methods, called on a tensor."""
    for name in sorted(dir(clew.Tensor)):
        function = getattr(clew.Tensor, name, None)
        if (LEFT_OUT.match(name) and name not in SPECIAL) or not callable(function):
            continue
        parameters = guessed(function, 1)
        if parameters is None:
            parameters = (Parameter("any", "*", True, False), Parameter("any", "*", True, False))
        own = (Parameter("Tensor", "*", False, False),)
        yield Target(f"Tensor.{name}", function, own + parameters)


def modules() -> Iterator[Target]:
    """Modules of nn, made and called."""
    for name in sorted(dir(nn)):
        made = getattr(nn, name, None)
        if not (inspect.isclass(made) and issubclass(made, nn.Module)) or name == "Module":
            continue
        parameters = guessed(made)
        if parameters is not None:
            yield Target(f"nn.{name}", made, parameters, module=True)


def everything(private: bool) -> list[Target]:
    """All there is to call."""
    return [*operations(private), *functions(), *methods(), *modules()]
