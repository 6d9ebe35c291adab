"""Batch normalisation, lazy forms too."""

from __future__ import annotations

import sys
from typing import Any

import clew

from .. import functional as F
from .. import init
from ..parameter import UninitializedBuffer, UninitializedParameter
from ._affine import add_affine
from .lazy import LazyModuleMixin
from .module import Module
from .utils import check_dims, check_whole

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch and instance normalisation share."""

    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    _version = 2
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_whole(self, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        add_affine(self, num_features, affine, bias, device, dtype)
        if track_running_stats:
            self.register_buffer(
                "running_mean", clew.zeros(num_features, device=device, dtype=dtype)
            )
            self.register_buffer("running_var", clew.ones(num_features, device=device, dtype=dtype))
            self.register_buffer(
                "num_batches_tracked", clew.tensor(0, dtype=clew.int64, device=device)
            )
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the count to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to 1, bias to 0 and the running statistics back."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Version 2 added the count of batches; older files do not have it.
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                own = self.num_batches_tracked
                known = own is not None and own.device.type != "meta"
                state_dict[key] = own if known else clew.tensor(0, dtype=clew.int64)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        state = self._buffers
        if self.training and self.track_running_stats:
            count = state["num_batches_tracked"]
            if count is not None:
                count.add_(1)
                if self.momentum is None:
                    factor = 1.0 / float(count)
        mean, var = state["running_mean"], state["running_var"]
        by_batch = self.training or (mean is None and var is None)
        used = not self.training or self.track_running_stats
        if by_batch:
            if self.eps <= 0:
                raise ValueError(
                    f"{type(self).__name__}: eps must be positive during training; got {self.eps}"
                )
            used = used and input.numel() > 0  # an empty batch says nothing about the data
        return F.batch_norm(
            input,
            mean if used else None,
            var if used else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class _Check1d:
    def _check_input_dim(self, input: Any) -> None:
        check_dims(self, input, 2, 3)


class _Check2d:
    def _check_input_dim(self, input: Any) -> None:
        check_dims(self, input, 4)


class _Check3d:
    def _check_input_dim(self, input: Any) -> None:
        check_dims(self, input, 5)


class BatchNorm1d(_Check1d, _BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var of each channel over N and
    L: the batch's in training, the running ones in evaluation. The running var is unbiased. Ioffe
    and Szegedy 2015, arXiv:1502.03167.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C) or (N, C, L).
        returns: input's shape.

    Raises:
        ValueError: for an input of other than 2 or 3 dims, or in training an eps that is not
            positive.

    Example:
        >>> norm = clew.nn.BatchNorm1d(2, eps=1e-12)
        >>> norm(clew.tensor([[1., 5.], [3., 5.]])).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        >>> norm.running_mean
        tensor([0.2000, 0.5000])
    """


class BatchNorm2d(_Check2d, _BatchNorm):
    """Batch normalisation of (N, C, H, W).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var of each channel over N, H
    and W: the batch's in training, the running ones in evaluation. The running var is unbiased.
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, H, W).
        returns: input's shape.

    Raises:
        ValueError: for an input of other than 4 dims, or in training an eps that is not positive.

    Example:
        >>> norm = clew.nn.BatchNorm2d(3)
        >>> norm(clew.ones(2, 3, 4, 4)).shape
        clew.Size([2, 3, 4, 4])
        >>> sorted(norm.state_dict())[:2]
        ['bias', 'num_batches_tracked']
    """


class BatchNorm3d(_Check3d, _BatchNorm):
    """Batch normalisation of (N, C, D, H, W).

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and (biased) var of each channel over N, D,
    H and W: the batch's in training, the running ones in evaluation. The running var is unbiased.
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, D, H, W).
        returns: input's shape.

    Raises:
        ValueError: for an input of other than 5 dims, or in training an eps that is not positive.

    Example:
        >>> clew.nn.BatchNorm3d(3)(clew.ones(2, 3, 4, 4, 4)).shape
        clew.Size([2, 3, 4, 4, 4])
    """


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the mean and variance of all processes' batches together.

    y = (x - mean) / sqrt(var + eps) weight + bias, mean and var of each channel over the batches of
    all processes in training, the running ones in evaluation. With one process it is BatchNorm of
    any dims.

    Args:
        num_features: C, channels of the input.
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        process_group: whose batches; all processes' if None.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, ...), 2 or more dims.
        returns: input's shape.

    Raises:
        ValueError: for an input of fewer than 2 dims.

    Example:
        >>> net = clew.nn.Sequential(clew.nn.Conv2d(1, 3, 3), clew.nn.BatchNorm2d(3))
        >>> net = clew.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        >>> type(net[1]).__name__, net(clew.ones(2, 1, 5, 5)).shape
        ('SyncBatchNorm', clew.Size([2, 3, 3, 3]))
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Any) -> Any:
        """Normalises a batch, with the other processes in training."""
        own = self.training or self._buffers.get("running_mean") is None
        c10d = sys.modules.get("clew.distributed.distributed_c10d")  # without it one process
        if not own or c10d is None or not c10d.is_initialized():
            return super().forward(input)
        if c10d.get_world_size(self.process_group) == 1:
            return super().forward(input)
        return self._forward_together(input)

    def _forward_together(self, input: Any) -> Any:
        from clew.distributed.nn.functional import all_reduce

        self._check_input_dim(input)
        group, dims = self.process_group, [d for d in range(input.dim()) if d != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        x = input.float() if input.dtype in (clew.float16, clew.bfloat16) else input
        here = x.new_full((1,), x.numel() / x.shape[1])
        sums = all_reduce(clew.cat([x.sum(dims), here]), group=group)
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centred = x - mean.view(shape)
        var = all_reduce((centred * centred).sum(dims), group=group) / count
        if self.training and self.track_running_stats:
            with clew.no_grad():
                self.num_batches_tracked.add_(1)
                factor = self.momentum
                if factor is None:
                    factor = 1.0 / float(self.num_batches_tracked)
                unbiased = var * (count / (count - 1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)
        made = centred * (var + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            made = made * self.weight.view(shape)
        if self.bias is not None:
            made = made + self.bias.view(shape)
        return made.to(input.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replaces the batch norms below a module by SyncBatchNorm.

        Args:
            module: the module.
            process_group: whose batches; all processes' if None.

        Returns:
            the module, or its replacement.
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            if module.affine:
                made.weight = module.weight
                made.bias = module.bias
            for name, buf in module._buffers.items():
                made._buffers[name] = buf
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _LazyNormBase(LazyModuleMixin):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, bias=bias)
        me: Any = self
        me.affine = affine
        me.track_running_stats = track_running_stats
        if affine:
            me.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                me.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            me.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            me.running_var = UninitializedBuffer(device=device, dtype=dtype)
            me.num_batches_tracked = clew.tensor(0, dtype=clew.int64, device=device)

    def reset_parameters(self) -> None:
        me: Any = self
        if not self.has_uninitialized_params() and me.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        me: Any = self
        if not self.has_uninitialized_params():
            return
        me.num_features = input.shape[1]
        for t in (me.weight, me.bias, me.running_mean, me.running_var):
            if t is not None:
                t.materialize((me.num_features,))
        me.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C) or (N, C, L); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyBatchNorm1d()
        >>> norm(clew.ones(2, 3, 5)).shape, norm.num_features
        (clew.Size([2, 3, 5]), 3)
        >>> type(norm).__name__
        'BatchNorm1d'
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, H, W); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyBatchNorm2d()
        >>> norm(clew.ones(2, 3, 5, 5)).shape, norm.num_features
        (clew.Size([2, 3, 5, 5]), 3)
        >>> type(norm).__name__
        'BatchNorm2d'
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d that takes num_features from its first input; then it is one.

    Args:
        eps: added to the variance, so that it is never zero.
        momentum: part of the new statistics in the running ones; None takes the plain average.
        affine: learn weight and bias, one number for each channel.
        track_running_stats: keep running statistics for evaluation; without them evaluation uses
            the batch's own.
        device: where parameters and buffers live.
        dtype: what they hold.
        bias: learn the bias; False leaves the weight alone.

    Shapes:
        input: (N, C, D, H, W); the first one's C becomes num_features.
        returns: input's shape.

    Example:
        >>> norm = clew.nn.LazyBatchNorm3d()
        >>> norm(clew.ones(2, 3, 4, 5, 5)).shape, norm.num_features
        (clew.Size([2, 3, 4, 5, 5]), 3)
        >>> type(norm).__name__
        'BatchNorm3d'
    """

    cls_to_become = BatchNorm3d
