"""What the package offers that is loaded when it is first asked for, and the errors of modules for
names that they lack.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from clew import _C
from clew._base import names as _lazy_names
from clew._base.makers import MAKERS, hidden

# Linear algebra that is both at the top level and on Tensor.
_LINALG = tuple(
    """
    cholesky cholesky_inverse cholesky_solve det geqrf inverse logdet lu lu_solve matrix_exp
    matrix_power orgqr ormqr pinverse qr slogdet svd triangular_solve
    """.split()
)
# Submodules and names that are loaded when first asked for.
_LAZY_MODULES = {
    "nn": "clew.nn",
    "ops": "clew.ops",
    "optim": "clew.optim",
    "utils": "clew.utils",
    "serialization": "clew.serialization",
    "func": "clew.func",
    "linalg": "clew.linalg",
    "fft": "clew.fft",
    "masked": "clew.masked",
    "sparse": "clew.sparse",
    "nested": "clew.nested",
    "debug": "clew.debug",
    "signal": "clew.signal",
    "special": "clew.special",
    "distributions": "clew.distributions",
    "testing": "clew.testing",
    "amp": "clew.amp",
    "jit": "clew.jit",
    "backends": "clew.backends",
    "cpu": "clew.cpu",
    "cuda": "clew.cuda",
    "version": "clew.version",
    "multiprocessing": "clew.multiprocessing",
    "hub": "clew.hub",
    "compiler": "clew.compiler",
    "overrides": "clew.overrides",
    "functional": "clew.functional",
    "storage": "clew.storage",
    "types": "clew.types",
    "_utils": "clew._utils",
    "mps": "clew.mps",
    "xpu": "clew.xpu",
    "accelerator": "clew.accelerator",
    "distributed": "clew.distributed",
    "return_types": "clew.return_types",
    "array_api": "clew.array_api",
    "profiler": "clew.profiler",
    "fx": "clew.fx",
    "futures": "clew.futures",
    "library": "clew.library",
    "quasirandom": "clew.quasirandom",
    "ao": "clew.ao",
    "onnx": "clew.onnx",
    "export": "clew.export",
    "__config__": "clew.__config__",
    "__future__": "clew.__future__",
}
_LAZY_NAMES = {
    "save": "clew.serialization",
    "graph": "clew._insight.graph.graph",
    "compile": "clew._program.compiled",
    "autobatch": "clew._program.autobatch",
    "deferred": "clew._program.region",
    "memory_budget": "clew._program.budget",
    "offload": "clew._program.offload",
    "DisableTorchFunction": "clew.overrides",
    **dict.fromkeys(
        (
            "get_deterministic_debug_mode",
            "is_deterministic_algorithms_warn_only_enabled",
            "is_warn_always_enabled",
            "set_deterministic_debug_mode",
            "set_warn_always",
        ),
        "clew._ops.modes",
    ),
    "DisableTorchFunctionSubclass": "clew.overrides",
    "load": "clew.serialization",
    "vmap": "clew.func",
    **_lazy_names.by_name(_lazy_names.FUNCTIONS),
    **dict.fromkeys(("igamma", "igammac"), "clew.special._gamma"),
    **dict.fromkeys(("istft", "stft"), "clew.signal._stft"),
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
        "clew.signal._window_functions",
    ),
    **dict.fromkeys((*_LINALG, "lu_unpack"), "clew.linalg._toplevel"),
    "nuclear_norm": "clew.linalg._norms",
    **dict.fromkeys(("lobpcg", "pca_lowrank", "svd_lowrank"), "clew.linalg._lowrank"),
}
# Methods of Tensor written in modules that are loaded when a method is first called.
_LAZY_METHODS: dict[str, str] = {
    **_lazy_names.by_name(_lazy_names.METHODS),
    "history": "clew._insight.graph.history",
    "_dispatch_lowered": "clew._torch.utils._python_dispatch",
    **dict.fromkeys(("apply_", "is_shared", "map_", "share_memory_"), "clew._ops.memory"),
    **dict.fromkeys(("igamma", "igamma_", "igammac", "igammac_"), "clew.special._gamma"),
    **dict.fromkeys(("istft", "stft"), "clew.signal._stft"),
    **dict.fromkeys(_LINALG, "clew.linalg._toplevel"),
}


def _find_function(name: str) -> Any:
    """The op of a dotted name; what pickled functions are looked up with."""
    short = name.rsplit(".", 1)[-1]
    return _C.functions.get(name) or getattr(_C.ops, short)


def _find_method(name: str) -> Any:
    return getattr(_C.Tensor, name)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The public name among ``known`` that ``name`` may be a slip of, or NumPy's word for."""
    import difflib

    from clew._base.numpy_names import NAMES

    public = [k for k in known if not k.startswith("_") and k != "annotations"]
    if NAMES.get(name) in public:
        return NAMES[name]
    same = [k for k in public if k.lower() == name.lower()]
    if same:  # AdamW of Adamw, though Adam is as near
        return next((k for k in same if k[0] == name[0]), same[0])
    near = difflib.get_close_matches(name, public, n=1, cutoff=0.72)
    if near:
        return near[0]
    lower = {k.lower(): k for k in public}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=0.72)
    return lower[near[0]] if near else None


class _MissingName(AttributeError):
    """Looks for the nearest name only when its text is read: `hasattr()` never does."""

    def __init__(self, module: str, name: str, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(f"module '{module}' has no attribute '{name}': clew does not have it")
        self._missing, self._known = name, known

    def __str__(self) -> str:
        near = nearest_name(self._missing, self._known())
        return f"{self.args[0]}; the nearest name is '{near}'" if near else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


# Tracebacks show it as the AttributeError that programs catch.
_MissingName.__name__ = _MissingName.__qualname__ = "AttributeError"
_MissingName.__module__ = "builtins"


def missing_name(module: str, name: str, known: Any) -> AttributeError:
    """The error for a name that clew lacks, naming the nearest that exists.

    Args:
        module: where it was looked for.
        name: what was looked for.
        known: the names that are there, or a function that gives them.
    """
    return _MissingName(module, name, known if callable(known) else lambda: known)


def module_getattr(module: str, namespace: dict[str, Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: loads lazy parts, explains absent ones."""

    def known() -> Iterable[str]:
        return (*namespace, *_LAZY_MODULES, *_LAZY_NAMES) if module == "clew" else namespace

    def __getattr__(name: str) -> Any:
        if name in ("_find_function", "_find_method"):
            return globals()[name]
        if module == "clew" and name in hidden:
            return hidden[name]()
        if module == "clew" and name in _LAZY_MODULES:
            try:
                found = importlib.import_module(_LAZY_MODULES[name])
            except ModuleNotFoundError as e:
                if e.name != _LAZY_MODULES[name]:
                    raise
                raise missing_name(module, name, known) from None
            namespace[name] = found
            return found
        if module == "clew" and name in _LAZY_NAMES:
            found = getattr(importlib.import_module(_LAZY_NAMES[name]), name)
            namespace[name] = found
            return found
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise missing_name(module, name, known)

    return __getattr__


def module_dir(namespace: dict[str, Any], later: Iterable[str] = ()) -> Callable[[], list[str]]:
    """A module's ``__dir__``: the names it has, and those that are loaded when asked for.

    Args:
        namespace: the module's ``globals()``.
        later: names and submodules that its ``__getattr__`` loads.
    """

    def __dir__() -> list[str]:
        return sorted({*namespace, *later} - {"Any", "TYPE_CHECKING", "annotations"})

    return __dir__


def top_dir(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """``__dir__`` of the package itself."""
    return module_dir(namespace, (*_LAZY_MODULES, *_LAZY_NAMES, *MAKERS))
