"""Sobol sequences: points that fill a cube more evenly than random ones."""

from __future__ import annotations

from typing import Any

import clew
from clew._base.arguments import need_int
from clew._C import Tensor

__all__ = ["SobolEngine"]

_BITS = 30


class SobolEngine:
    """Points of a Sobol sequence: any first n of them fill the cube evenly.

    The direction numbers are SciPy's, which are those of Joe and Kuo.

    Args:
        dimension: of the cube, up to 21201.
        scramble: permute the digits at random; the points stay even.
        seed: of the permutation.

    Example:
        >>> from clew.quasirandom import SobolEngine
        >>> SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        dimension = need_int("SobolEngine", "dimension", dimension)
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]; got "
                f"{dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._directions = _directions(dimension)
        self.shift = clew.zeros(dimension, dtype=clew.int64, device="cpu")
        if scramble:
            self._scramble()
        self._state = self.shift.numpy().copy()
        self.sobolstate = self._directions

    def _scramble(self) -> None:
        import numpy as np

        generator = None
        if self.seed is not None:
            generator = clew.Generator()
            generator.manual_seed(self.seed)
        bits = clew.randint(2, (self.dimension, _BITS), generator=generator, device="cpu")
        places = 2 ** clew.arange(_BITS, device="cpu")
        self.shift = (bits * places).sum(1)
        # A random lower triangle, with ones on the diagonal, of each dim's binary digits.
        triangle = (self.dimension, _BITS, _BITS)
        lower = clew.randint(2, triangle, generator=generator, device="cpu").tril().numpy()
        lower[:, range(_BITS), range(_BITS)] = 1
        powers = 1 << np.arange(_BITS)[::-1]
        digits = (self._directions[..., None] & powers) > 0  # dim, direction, digit from the top
        mixed = np.einsum("dij,dkj->dki", lower.astype(np.int64), digits.astype(np.int64)) % 2
        self._directions = (mixed * powers).sum(-1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, as rows.

        Args:
            n: how many.
            out: where they go.
            dtype: their dtype.
        """
        import numpy as np

        n = self._count("draw", n)
        kind = dtype or clew.get_default_dtype()
        # From point to point one direction changes: that of the lowest zero bit of the number of
        # the point before. Nothing changes before the first point.
        before = range(self.num_generated - 1, self.num_generated + n - 1)
        bits = [(~k & -~k).bit_length() - 1 for k in before]
        points = self._directions[:, bits]
        if n:
            points[:, 0] = self._state ^ (points[:, 0] if self.num_generated else 0)
            np.bitwise_xor.accumulate(points, 1, out=points)
            self._state = points[:, -1].copy()
            self.num_generated += n
        # Scaled in double: as a float32 a point close to 1 would become 1.
        found = clew.from_numpy(points.T / np.float64(2**_BITS)).to(kind).contiguous()
        if kind is clew.float32:
            found = found.clamp(max=1 - 2**-24)
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points.

        Args:
            m: the exponent.
            out: where they go.
            dtype: their dtype.
        """
        m = need_int("SobolEngine.draw_base2", "m", m)
        if not 0 <= m <= _BITS:
            raise ValueError(f"SobolEngine.draw_base2: m must be in [0, {_BITS}]; got {m}")
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "SobolEngine.draw_base2: the number of points drawn in all must be a power of 2; "
                f"{self.num_generated} were drawn before, and {n} more make {total}"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self._state = self.shift.numpy().copy()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves n points out.

        Args:
            n: how many.

        Returns:
            the engine itself.
        """
        import numpy as np

        n = self._count("fast_forward", n)
        if n:
            self.num_generated += n
            # The point of number k is the sum of the directions that k's Gray code names.
            k = self.num_generated - 1
            named = [bit for bit in range(_BITS) if (k ^ k >> 1) >> bit & 1]
            directions = np.bitwise_xor.reduce(self._directions[:, named], 1)
            self._state = self.shift.numpy() ^ directions
        return self

    def _count(self, name: str, n: Any) -> int:
        n = need_int(f"SobolEngine.{name}", "n", n)
        if n < 0:
            raise RuntimeError(f"SobolEngine.{name}: n must not be negative; got {n}")
        if self.num_generated + n > 2**_BITS:
            raise RuntimeError(
                f"SobolEngine.{name}: there are no more points than 2**{_BITS}; "
                f"{self.num_generated} were drawn, and {n} more were asked for"
            )
        return n

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"


def _directions(dimension: int) -> Any:
    """The numbers by which points differ, (dimension, 30)."""
    try:
        from scipy.stats import qmc  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "SobolEngine: the direction numbers come from SciPy; install it: pip install scipy"
        ) from None
    import numpy as np

    # Points differ by a direction number: read them off the sequence itself.
    engine = qmc.Sobol(dimension, scramble=False, bits=_BITS)
    found = np.empty((dimension, _BITS), dtype=np.int64)
    table = getattr(engine, "_sv", None)
    if table is not None:
        found[:] = np.asarray(table)[:, :_BITS]
        return found
    raise RuntimeError("SobolEngine: this SciPy keeps its direction numbers elsewhere")
