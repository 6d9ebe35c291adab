"""The parameters of recurrent layers: their names, their shapes, and the lists of all of them."""

from __future__ import annotations

from typing import Any

import clew

from ..parameter import Parameter
from ._expected_sizes import _ExpectedSizes

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class _RecurrentWeights(_ExpectedSizes):
    """What RNNBase keeps its parameters by.

    `_names` has those of each layer and direction, `_flat_names` all in one list. A program may set
    `_flat_weights` to other tensors, which are used instead until a parameter is set by name.
    """

    bias: bool
    _names: list[list[str]]

    def _make_weights(self, device: Any, dtype: Any) -> None:
        gates = GATES[self.mode] * self.hidden_size
        out_size = self.proj_size or self.hidden_size
        dirs = 2 if self.bidirectional else 1
        self._names = []
        for layer in range(self.num_layers):
            width = self.input_size if layer == 0 else out_size * dirs
            shapes: dict[str, Any] = {"weight_ih": (gates, width), "weight_hh": (gates, out_size)}
            if self.bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if self.proj_size:
                shapes["weight_hr"] = (self.proj_size, self.hidden_size)
            for end in (f"_l{layer}", f"_l{layer}_reverse")[:dirs]:
                for name, shape in shapes.items():
                    fresh = clew.empty(shape, device=device, dtype=dtype)
                    setattr(self, name + end, Parameter(fresh))
                self._names.append([name + end for name in shapes])
        self._flat_names = self._flat_weights_names

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_all_weights" in state:  # of a file that PyTorch wrote
            state["_names"] = state.pop("_all_weights")
            state["_flat_names"] = state.pop("_flat_weights_names", None)
            state.pop("_flat_weights", None)
            state.pop("_flat_weight_refs", None)
        super().__setstate__(state)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._names for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        given: list[Any] | None = self.__dict__.get("_given_weights")
        if given is not None:
            return given
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        named = [getattr(self, name, None) for name in self._flat_weights_names]
        if len(weights) != len(named):
            raise ValueError(
                f"{type(self).__name__}._flat_weights: expected {len(named)} weights; got "
                f"{len(weights)}"
            )
        if all(a is b for a, b in zip(weights, named)):
            self.__dict__.pop("_given_weights", None)  # they are looked up by name
        else:
            self.__dict__["_given_weights"] = list(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        given = self.__dict__.get("_given_weights")
        if given is not None and name in self._flat_names:
            given[self._flat_names.index(name)] = value

    @property
    def _all_weights(self) -> list[list[str]]:
        return self._names

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Nothing to do: weights need no common memory here."""

    def _weights(self) -> list[Any]:
        # The table is asked directly: __getattr__ would cost more than a short sequence. A
        # parametrized weight is not in it.
        own = self._parameters
        if "_given_weights" in self.__dict__:
            return self._flat_weights
        try:
            return [own[name] for name in self._flat_names]
        except KeyError:
            return self._flat_weights
