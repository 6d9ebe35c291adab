"""What the package's top level offers beyond the ops: Python-written functions, methods, and
helpful errors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from clew import _C

# Modules whose public functions appear at the top level, in order.
_SOURCES = (
    "clew._creation",
    "clew._functions",
    "clew._einsum",
    "clew._shaping",
)
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
    "optim": "clew.optim",
    "utils": "clew.utils",
    "serialization": "clew.serialization",
    "func": "clew.func",
    "linalg": "clew.linalg",
    "fft": "clew.fft",
    "signal": "clew.signal",
    "special": "clew.special",
    "distributions": "clew.distributions",
    "testing": "clew.testing",
    "amp": "clew.amp",
    "jit": "clew.jit",
    "backends": "clew.backends",
    "cuda": "clew.cuda",
    "version": "clew.version",
    "multiprocessing": "clew.multiprocessing",
    "hub": "clew.hub",
    "mps": "clew.mps",
    "xpu": "clew.xpu",
    "accelerator": "clew.accelerator",
    "distributed": "clew.distributed",
    "return_types": "clew.return_types",
}
_LAZY_NAMES = {
    "save": "clew.serialization",
    "load": "clew.serialization",
    "vmap": "clew.func",
    **dict.fromkeys(("histc", "histogram", "histogramdd"), "clew._lazy.histogram"),
    **dict.fromkeys(
        ("corrcoef", "cov", "isin", "nanquantile", "quantile", "renorm"), "clew._lazy.statistics"
    ),
    **dict.fromkeys(
        ("cumulative_trapezoid", "gradient", "trapezoid", "trapz"), "clew._lazy.calculus"
    ),
    **dict.fromkeys(
        (
            "alias_copy",
            "as_strided_copy",
            "detach_copy",
            "diagonal_copy",
            "expand_copy",
            "permute_copy",
            "select_copy",
            "slice_copy",
            "split_copy",
            "split_with_sizes_copy",
            "squeeze_copy",
            "t_copy",
            "transpose_copy",
            "unbind_copy",
            "unfold_copy",
            "unsqueeze_copy",
            "view_as_complex_copy",
            "view_as_real_copy",
            "view_copy",
        ),
        "clew._lazy.copies",
    ),
    **dict.fromkeys(("igamma", "igammac"), "clew.special._gamma"),
    **dict.fromkeys(
        (
            "adaptive_avg_pool1d",
            "avg_pool1d",
            "bilinear",
            "channel_shuffle",
            "cosine_similarity",
            "max_pool1d",
            "max_pool2d",
            "max_pool3d",
            "pairwise_distance",
            "pdist",
            "pixel_shuffle",
            "pixel_unshuffle",
            "rms_norm",
        ),
        "clew.nn.functional",
    ),
    **dict.fromkeys(
        (
            "adaptive_max_pool1d",
            "batch_norm",
            "binary_cross_entropy_with_logits",
            "cosine_embedding_loss",
            "ctc_loss",
            "group_norm",
            "hinge_embedding_loss",
            "instance_norm",
            "kl_div",
            "layer_norm",
            "margin_ranking_loss",
            "max_pool1d_with_indices",
            "poisson_nll_loss",
            "rrelu",
            "rrelu_",
            "triplet_margin_loss",
        ),
        "clew.nn._toplevel",
    ),
    **dict.fromkeys(("istft", "stft"), "clew.signal._stft"),
    **dict.fromkeys(
        ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
        "clew.signal._window_functions",
    ),
    **dict.fromkeys((*_LINALG, "lu_unpack"), "clew.linalg._toplevel"),
    **dict.fromkeys(("lobpcg", "pca_lowrank", "svd_lowrank"), "clew.linalg._lowrank"),
}
# Methods of Tensor written in modules that are loaded when a method is first called.
_LAZY_METHODS: dict[str, str] = {
    **dict.fromkeys(("apply_", "is_shared", "map_", "share_memory_"), "clew._lazy.memory"),
    **dict.fromkeys(("histc", "histogram"), "clew._lazy.histogram"),
    **dict.fromkeys(
        ("corrcoef", "cov", "nanquantile", "quantile", "renorm", "renorm_"), "clew._lazy.statistics"
    ),
    **dict.fromkeys(("igamma", "igamma_", "igammac", "igammac_"), "clew.special._gamma"),
    **dict.fromkeys(("istft", "stft"), "clew.signal._stft"),
    **dict.fromkeys(_LINALG, "clew.linalg._toplevel"),
}


def fill(namespace: dict[str, Any]) -> None:
    """Puts the Python-written functions into the package's namespace and the methods on Tensor."""
    from clew import _tensor

    _tensor.install()
    for name, path in _LAZY_METHODS.items():
        setattr(_C.Tensor, name, _LazyMethod(name, path))
    for source in _SOURCES:
        module = importlib.import_module(source)
        for name in module.__all__:
            namespace[name] = getattr(module, name)


class _LazyMethod:
    """Stands for a method until it is first looked up; then the function of that name in the
    module takes its place.
    """

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = getattr(importlib.import_module(self.module), self.name)
        setattr(_C.Tensor, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


def _find_function(name: str) -> Any:
    """The op of a dotted name; what pickled functions are looked up with."""
    short = name.rsplit(".", 1)[-1]
    return _C.functions.get(name) or getattr(_C.ops, short)


def _find_method(name: str) -> Any:
    return getattr(_C.Tensor, name)


def missing_name(module: str, name: str, known: Any) -> AttributeError:
    """The error for a name that clew lacks, naming the nearest that exists."""
    import difflib

    near = difflib.get_close_matches(
        name, [k for k in known if not k.startswith("_")], n=1, cutoff=0.6
    )
    hint = f"; the nearest name is '{near[0]}'" if near else ""
    return AttributeError(
        f"module '{module}' has no attribute '{name}': clew does not have it{hint}"
    )


def module_getattr(module: str, namespace: dict[str, Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: loads lazy parts, explains absent ones."""

    def __getattr__(name: str) -> Any:
        if name in ("_find_function", "_find_method"):
            return globals()[name]
        if module == "clew" and name in _LAZY_MODULES:
            try:
                found = importlib.import_module(_LAZY_MODULES[name])
            except ModuleNotFoundError as e:
                if e.name != _LAZY_MODULES[name]:
                    raise
                raise missing_name(module, name, namespace) from None
            namespace[name] = found
            return found
        if module == "clew" and name in _LAZY_NAMES:
            found = getattr(importlib.import_module(_LAZY_NAMES[name]), name)
            namespace[name] = found
            return found
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise missing_name(module, name, namespace)

    return __getattr__
