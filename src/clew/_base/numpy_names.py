"""What NumPy calls otherwise: its names, and those of the same function here, for error messages.

Only names whose nearest in spelling is something else, or nothing.
"""

from __future__ import annotations

NAMES = {
    "append": "cat",
    "array": "tensor",
    "array_equal": "equal",
    "average": "mean",
    "blackman": "blackman_window",
    "conjugate": "conj",
    "copy": "clone",
    "degrees": "rad2deg",
    "digitize": "bucketize",
    "geomspace": "logspace",
    "hamming": "hamming_window",
    "hanning": "hann_window",
    "identity": "eye",
    "invert": "bitwise_not",
    "kaiser": "kaiser_window",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "ndarray": "Tensor",
    "nanpercentile": "nanquantile",
    "percentile": "quantile",
    "put_along_axis": "scatter",
    "radians": "deg2rad",
    "repeat": "repeat_interleave",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "rollaxis": "movedim",
    "savez": "save",
    "size": "numel",
    "vectorize": "vmap",
}
