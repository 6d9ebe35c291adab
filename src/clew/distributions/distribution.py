"""The base of all distributions: shapes, validation, and what each may offer."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import clew
from clew import Size, Tensor
from clew._base.provenance import user_level
from clew.distributions import constraints
from clew.distributions.utils import all_true, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution over tensors.

    ``batch_shape`` counts independent distributions with their own parameters, ``event_shape`` is
    the shape of one draw; ``sample(s).shape == s + batch_shape + event_shape``.

    Parameters are numbers or floating point tensors; a draw has their dtype (`Categorical`'s is
    int64).

    Args:
        batch_shape: the shape of the parameters' batch.
        event_shape: the shape of a single draw.
        validate_args: whether parameters and values are checked; None takes the default, which is
            to check unless Python runs with ``-O``.

    Example:
        >>> normal = clew.distributions.Normal(clew.zeros(2), 1.0)
        >>> normal.sample((3,)).shape, normal.batch_shape, normal.event_shape
        (clew.Size([3, 2]), clew.Size([2]), clew.Size([]))
    """

    has_enumerate_support: Any = False
    _validate_args = __debug__

    if TYPE_CHECKING:
        has_rsample: Any
        arg_constraints: Any
        support: Any
    else:
        has_rsample = False

        @property
        def arg_constraints(self) -> dict[str, constraints.Constraint]:
            """What each parameter must satisfy."""
            self._lacks("arg_constraints")

        @property
        def support(self) -> constraints.Constraint:
            """Which values can be drawn."""
            self._lacks("support")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions made from now on check their arguments.

        Example:
            >>> clew.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: needs True or False; got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`, so its parameters are not "
                "checked; set it (to {} if there is nothing to check) or pass validate_args=False",
                stacklevel=user_level(),
            )
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # follows from the others
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _lacks(self, what: str) -> NoReturn:
        raise NotImplementedError(f"{type(self)} does not implement {what}")

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single draw."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch shape expanded; no memory is copied.

        Args:
            batch_shape: the new batch shape, which the present one broadcasts to.

        Returns:
            A distribution of the same class.
        """
        self._lacks("expand")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws ``sample_shape`` values of every batch member, without a gradient.

        Args:
            sample_shape: how many draws, a shape.

        Returns:
            A tensor of the shape sample_shape + batch_shape + event_shape.
        """
        with clew.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws values through which gradients flow to the parameters.

        Args:
            sample_shape: how many draws, a shape.

        Returns:
            A tensor of the shape sample_shape + batch_shape + event_shape.

        Raises:
            NotImplementedError: where ``has_rsample`` is False.
        """
        self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draws n values of every batch member; ``sample((n,))`` is the name to use.

        Args:
            n: how many draws.

        Returns:
            A tensor of the shape (n,) + batch_shape + event_shape.
        """
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead",
            FutureWarning,
            stacklevel=user_level(),
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density (or of the probability) at ``value``.

        Args:
            value: a tensor whose shape broadcasts with batch_shape + event_shape.

        Returns:
            One number for each event.
        """
        self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of drawing at most ``value``.

        Args:
            value: a tensor whose shape broadcasts with the batch shape.
        """
        self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value below which a draw lies with probability ``value``.

        Args:
            value: probabilities, whose shape broadcasts with the batch shape.
        """
        self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that can be drawn, along a new first dim.

        Args:
            expand: also repeat them for every batch member; else those dims have size one.

        Returns:
            A tensor of the shape (n,) + batch_shape + event_shape for n values.

        Raises:
            NotImplementedError: where they cannot be counted.
        """
        self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        """The expected value of -log_prob."""
        self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of ``sample(sample_shape)``."""
        return Size(Size(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raises unless ``value`` is a tensor of a fitting shape inside the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor; got {type(value).__name__}"
            )
        begin = value.ndim - len(self._event_shape)
        if begin < 0 or value.shape[begin:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: "
                f"{tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        whole = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(whole)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: "
                    f"{tuple(value.shape)} vs {tuple(whole)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support`, so values are not checked; set it or "
                "pass validate_args=False",
                stacklevel=user_level(),
            )
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n"
                f"{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for ``expand`` of class ``cls`` to fill."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def _expanded(self, cls: type, batch_shape: Any, _instance: Any = None) -> Any:
        """``expand`` for a class whose state is its parameters with the batch in front."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event = value.shape[value.ndim - constraint.event_dim :]
                new.__dict__[name] = value.expand(batch_shape + event)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [self.__dict__[name] for name in names]
        shown = [f"{n}: {v if v.numel() == 1 else v.size()}" for n, v in zip(names, values)]
        return f"{type(self).__name__}({', '.join(shown)})"
