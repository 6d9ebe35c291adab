"""Functions of the core that make tensors: which modes watch them, and how the package then gives
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# They do not ask modes by themselves, as operations do.
MAKERS = (
    "arange as_tensor empty empty_strided eye full linspace logspace ones rand randint randn "
    "randperm scalar_tensor tensor tril_indices triu_indices zeros"
).split()

# While a mode watches them: each by its name, as what gives it to whoever looks it up.
hidden: dict[str, Callable[[], Any]] = {}
