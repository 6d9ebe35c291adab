"""What a saved step holds: data as copies, and the states of the generators of random numbers."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np

import clew
from clew import _C, Tensor

LIVE = "\0live"  # stands for what is no data: in a replay it is what the program has there


_PLAIN = frozenset((type(None), bool, int, float, str))


def copied(value: Any) -> Any:
    """A value as data: its tensors copied, and what is no data left out."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return clew.from_numpy(value.copy())
    if isinstance(value, (list, tuple)):
        return [copied(each) for each in value]
    if isinstance(value, dict) and {str, int}.issuperset(map(type, value)):
        return {key: copied(each) for key, each in value.items()}
    return value if isinstance(value, (int, float, str)) else LIVE


def of_a_loss(value: Any) -> Any:
    """The same of what a loss gets, with what gradients flow through left out: a replay computes it
    anew."""
    if isinstance(value, Tensor) and value.requires_grad:
        return LIVE
    if isinstance(value, (list, tuple)):
        return [of_a_loss(each) for each in value]
    return copied(value)


def given_back(saved: Any, live: Any) -> Any:
    """What the program has at a place, with the saved data in it. What gradients flow through stays
    as it is: the program computes it anew."""
    if isinstance(live, Tensor):
        fits = isinstance(saved, Tensor) and not live.requires_grad
        return saved.clone() if fits else live
    if isinstance(live, np.ndarray):
        return saved.numpy().copy() if isinstance(saved, Tensor) else live
    if isinstance(live, (list, tuple)):
        if not isinstance(saved, list) or len(saved) != len(live):
            return live
        both = [given_back(one, two) for one, two in zip(saved, live)]
        if isinstance(live, list):
            return both
        return type(live)(*both) if hasattr(live, "_fields") else tuple(both)
    if isinstance(live, dict):
        if not isinstance(saved, dict):
            return live
        return {key: given_back(saved.get(key, LIVE), each) for key, each in live.items()}
    # Of a state that there was not yet, such as a recurrent network's, there is nothing to go by.
    return saved if type(saved) is type(live) or (live is None and saved != LIVE) else live


def losses() -> dict[str, Any]:
    """The functions whose targets are data, by name."""
    module = clew.nn.functional
    names = [name for name in vars(module) if name.endswith("_loss")]
    names += ["cross_entropy", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"]
    return {name: getattr(module, name) for name in names}


# Operations in which what a model gave meets data, as in a loss that is written by hand. Each is
# also there in place.
_MEETING = """
    add sub mul div pow atan2 fmod remainder maximum minimum where lerp masked_fill masked_select
    matmul mm mv bmm dot addmm index gather index_select take_along_dim scatter xlogy hypot
    logaddexp distance mse_loss smooth_l1_loss huber_loss
""".split()


MEETS = frozenset(prefix + name for name in _MEETING for prefix in ("", "_"))


# Those of their names that take plain numbers, too.
TAKE_NUMBERS = frozenset(
    ["add", "sub", "mul", "div", "where"]
    + [f"__{r}{name}__" for r in ("", "r", "i") for name in ("add", "sub", "mul", "truediv")]
)


def nbytes_of(value: Any) -> int:
    """The bytes of the tensors in what copied() gave."""
    if isinstance(value, Tensor):
        return value.nbytes
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return 0
    found = 0
    for each in value:
        if type(each) not in _PLAIN:
            found += nbytes_of(each)
    return found


def tensors_of(model: Any) -> dict[str, Tensor]:
    """A model's parameters and buffers by name, each once."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        before = path + "." if path else ""
        for name, t in (*module._parameters.items(), *module._buffers.items()):
            if t is not None and id(t) not in seen:
                seen.add(id(t))
                found[before + name] = t
    return found


class Versions:
    """Copies of tensors, made anew only where a tensor was written since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, int, Tensor]] = {}

    def copy(self, t: Tensor) -> Tensor:
        known = self._known.get(id(t))
        if known is None or known[0] is not t or known[1] != t._version:
            known = self._known[id(t)] = (t, t._version, t.detach().clone())
        return known[2]


class Numpy:
    """NumPy's global random state, which takes long to be handed out: only where it has changed."""

    WORDS = 624  # of a Mersenne twister, each of 4 bytes; a position follows

    def __init__(self) -> None:
        self._known: Any = None
        self._raw = b""

    def state(self) -> Any:
        """What np.random.get_state() gives."""
        generator = np.random.mtrand._rand._bit_generator
        if type(generator) is not np.random.MT19937:
            return np.random.get_state()
        raw = ctypes.string_at(generator.ctypes.state_address, 4 * self.WORDS + 4)
        # A normal number that is kept may be used up without a trace in the words.
        kept = self._known is not None and self._known[3]
        if raw != self._raw or kept or self._known is None:
            self._known, self._raw = np.random.get_state(), raw
        return self._known


_numpy = Numpy()


def random_state() -> tuple[Any, ...]:
    """The states of the generators, as they hand them out."""
    return clew.get_rng_state(), random.getstate(), _numpy.state()


def random_data(state: tuple[Any, ...]) -> dict[str, Any]:
    """The same as data that a file can have."""
    own, (version, words, gauss), (kind, keys, *rest) = state
    return {
        "clew": own,
        "python": [version, list(words), gauss],
        "numpy": [str(kind), clew.from_numpy(np.asarray(keys, dtype=np.int64)), *rest],
    }


def set_random_state(state: dict[str, Any]) -> None:
    clew.set_rng_state(state["clew"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))


def params_of(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def is_outermost() -> bool:
    here = _C._here()
    return here is None or not here[2]


def is_in_module() -> bool:
    here = _C._here()
    return here is not None and here[3] is not None
