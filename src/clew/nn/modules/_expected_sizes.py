"""The checks of recurrent layers that programs call which run the layers' weights themselves."""

from __future__ import annotations

from typing import Any

from clew._base.autocast import autocasting

from .module import Module


class _ExpectedSizes(Module):
    """What RNNBase offers beside its own run, where the core checks the same.

    `batch_sizes` is that of a PackedSequence, or None; tensors have a batch dim.
    """

    mode: str
    input_size: int
    hidden_size: int
    proj_size: int
    num_layers: int
    bidirectional: bool
    batch_first: bool
    _flat_weights: Any
    get_expected_cell_size: Any  # of an LSTM

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raises unless the input has the layer's dtype, number of dims and features.

        Args:
            input: (T, N, input_size), (N, T, input_size) with batch_first, or packed elements.
            batch_sizes: of a PackedSequence, or None.

        Raises:
            ValueError: another dtype than the weights', outside autocast.
            RuntimeError: another number of dims or features.

        Example:
            >>> clew.nn.GRU(4, 3).check_input(clew.ones(5, 2, 4), None)
        """
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not autocasting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )

    def _state_size(self, input: Any, batch_sizes: Any, features: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            count = int(batch_sizes[0])
        else:
            count = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (2 if self.bidirectional else 1), count, features

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the hidden state for an input.

        Args:
            input: (T, N, input_size), (N, T, input_size) with batch_first, or packed elements.
            batch_sizes: of a PackedSequence, or None.

        Returns:
            (num_layers * dirs, N, hidden_size or proj_size).

        Example:
            >>> clew.nn.GRU(4, 3).get_expected_hidden_size(clew.ones(5, 2, 4), None)
            (1, 2, 3)
        """
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self,
        hx: Any,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises unless a state has a shape.

        Args:
            hx: the state.
            expected_hidden_size: the shape.
            msg: the message, formatted with the expected shape and that which came.

        Raises:
            RuntimeError: it has another shape.

        Example:
            >>> clew.nn.GRU(4, 3).check_hidden_size(clew.ones(1, 2, 3), (1, 2, 3))
        """
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raises unless an input and a state fit the layer and each other.

        Args:
            input: (T, N, input_size), (N, T, input_size) with batch_first, or packed elements.
            hidden: the state, of an LSTM a pair.
            batch_sizes: of a PackedSequence, or None.

        Raises:
            ValueError: another dtype than the weights', outside autocast.
            RuntimeError: other shapes.

        Example:
            >>> clew.nn.GRU(4, 3).check_forward_args(clew.ones(5, 2, 4), clew.ones(1, 2, 3), None)
        """
        self.check_input(input, batch_sizes)
        size = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            self.check_hidden_size(hidden, size)
            return
        self.check_hidden_size(hidden[0], size, "Expected hidden[0] size {}, got {}")
        size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], size, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """A state with its sequences in another order.

        Args:
            hx: the state, of an LSTM a pair.
            permutation: which sequence comes to each place; None keeps the order.

        Returns:
            hx itself where permutation is None, else a new state.

        Example:
            >>> h = clew.tensor([[[1.0], [2.0]]])
            >>> clew.nn.GRU(4, 1).permute_hidden(h, clew.tensor([1, 0])).tolist()
            [[[2.0], [1.0]]]
        """
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)
