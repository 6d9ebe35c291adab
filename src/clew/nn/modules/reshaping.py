"""Modules that only rearrange or resize: flatten, fold, shuffles, upsampling, distances."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module

__all__ = [
    "ChannelShuffle",
    "CosineSimilarity",
    "Flatten",
    "Fold",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Flatten(Module):
    """Makes one dim of several, start_dim to end_dim.

    Args:
        start_dim: the first of them.
        end_dim: the last of them, itself included.

    Shapes:
        input: (N, ...) with the dims.
        returns: the same elements; the dims' sizes are multiplied: (N, C H W) for (N, C, H, W).

    Example:
        >>> tuple(clew.nn.Flatten()(clew.ones(2, 3, 4)).shape)
        (2, 12)
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes several dims of one; the inverse of Flatten.

    Args:
        dim: the dim, a number.
        unflattened_size: the sizes, a tuple or list; one may be -1, which is found.

    Shapes:
        input: (..., S, ...) with size S at dim.
        returns: (..., *unflattened_size, ...), whose product is S.

    Raises:
        TypeError: for a dim or sizes that are no int.
        NotImplementedError: for a named dim.

    Example:
        >>> clew.nn.Unflatten(1, (2, -1))(clew.ones(5, 6)).shape
        clew.Size([5, 2, 3])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise NotImplementedError("Unflatten: named dims are not supported; give a number")
        if not isinstance(dim, int):
            raise TypeError(f"unflattened_size: dim must be an int; got {type(dim).__name__}")
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Fold(Module):
    """Sums windows, as columns, back into images; elements of several windows are added.

    Args:
        output_size: size of the images: one number or (H, W).
        kernel_size: size of the windows: one number or (H, W).
        dilation: distance between a window's elements: one number or (H, W).
        padding: as the images were padded on both sides: one number or (H, W).
        stride: step of the windows: one number or (H, W).

    Shapes:
        input: (N, C * prod(kernel_size), L) or (C * prod(kernel_size), L),
            L = prod over d of (floor((size_d + 2 padding_d - dilation_d (kernel_size_d - 1) - 1) /
            stride_d) + 1), size = output_size.
        returns: (N, C, H, W) or (C, H, W), (H, W) = output_size.

    Example:
        >>> clew.nn.Fold((1, 3), (1, 2))(clew.ones(1, 2, 2)).tolist()
        [[[[1.0, 2.0, 1.0]]]]
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Takes images apart into windows, as columns.

    Args:
        kernel_size: size of the windows: one number or (H, W).
        dilation: distance between a window's elements: one number or (H, W).
        padding: zeros added on both sides: one number or (H, W).
        stride: step of the windows: one number or (H, W).

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: (N, C * prod(kernel_size), L) or (C * prod(kernel_size), L),
            L = prod over d of (floor((size_d + 2 padding_d - dilation_d (kernel_size_d - 1) - 1) /
            stride_d) + 1), size = (H, W).

    Example:
        >>> clew.nn.Unfold((1, 2))(clew.tensor([[[[1., 2., 3.]]]])).tolist()
        [[[1.0, 2.0], [2.0, 3.0]]]
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class PixelShuffle(Module):
    """Makes images larger of channels: r^2 of them become blocks of r by r pixels.

    y[c, r h + i, r w + j] = x[c r^2 + r i + j, h, w]. Shi et al. 2016, arXiv:1609.05158.

    Args:
        upscale_factor: r.

    Shapes:
        input: (..., C r^2, H, W).
        returns: (..., C, H r, W r).

    Example:
        >>> clew.nn.PixelShuffle(2)(clew.tensor([[[1.]], [[2.]], [[3.]], [[4.]]])).tolist()
        [[[1.0, 2.0], [3.0, 4.0]]]
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Makes channels of blocks of r by r pixels; the inverse of PixelShuffle.

    y[c r^2 + r i + j, h, w] = x[c, r h + i, r w + j].

    Args:
        downscale_factor: r; must divide H and W of the input.

    Shapes:
        input: (..., C, H r, W r).
        returns: (..., C r^2, H, W).

    Example:
        >>> clew.nn.PixelUnshuffle(2)(clew.tensor([[[1., 2.], [3., 4.]]])).flatten().tolist()
        [1.0, 2.0, 3.0, 4.0]
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Takes channels in turn from each of several groups.

    y[j groups + g] = x[g C / groups + j]. Zhang et al. 2018, arXiv:1707.01083.

    Args:
        groups: how many groups; must divide C.

    Shapes:
        input: (N, C, ...), 3 or more dims.
        returns: input's shape.

    Example:
        >>> x = clew.tensor([[[1.], [2.], [3.], [4.]]])
        >>> clew.nn.ChannelShuffle(2)(x).flatten().tolist()
        [1.0, 3.0, 2.0, 4.0]
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """Resizes all but the first two dims of a batch.

    Args:
        size: the wanted size: one number or one for each of the resized dims.
        scale_factor: or the factor to it, one number or a tuple; one of the two must be given.
        mode: "nearest" or "nearest-exact" (3, 4 or 5 dims), "linear" (3), "bilinear" or "bicubic"
            (4), "trilinear" (5) or "area" (3, 4 or 5).
        align_corners: the corner elements keep their values (linear and cubic modes); None is
            False.
        recompute_scale_factor: compute with the factor that follows from the rounded size.

    Shapes:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        returns: (N, C, L_out) and so on, size or L_out = floor(L scale_factor), of the other dims
            likewise.

    Raises:
        ValueError: in forward, for neither or both of size and scale_factor.

    Example:
        >>> clew.nn.Upsample(scale_factor=2)(clew.tensor([[[1., 2.]]])).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
        >>> up = clew.nn.Upsample(size=3, mode="linear", align_corners=True)
        >>> up(clew.tensor([[[1., 2.]]])).tolist()
        [[[1.0, 1.5, 2.0]]]
    """

    __constants__ = [
        "size",
        "scale_factor",
        "mode",
        "align_corners",
        "name",
        "recompute_scale_factor",
    ]

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images to the nearest neighbour's values.

    Upsample with mode="nearest".

    Args:
        size: the wanted size: one number or (H, W).
        scale_factor: or the factor to it: one number or (H, W); one of the two must be given.

    Shapes:
        input: (N, C, H, W).
        returns: (N, C, H_out, W_out), size or H_out = floor(H scale_factor) and W_out likewise.

    Example:
        >>> clew.nn.UpsamplingNearest2d(size=(1, 4))(clew.tensor([[[[1., 2.]]]])).tolist()
        [[[[1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images bilinearly with aligned corners.

    Upsample with mode="bilinear" and align_corners=True.

    Args:
        size: the wanted size: one number or (H, W).
        scale_factor: or the factor to it: one number or (H, W); one of the two must be given.

    Shapes:
        input: (N, C, H, W).
        returns: (N, C, H_out, W_out), size or H_out = floor(H scale_factor) and W_out likewise.

    Example:
        >>> clew.nn.UpsamplingBilinear2d(size=(1, 3))(clew.tensor([[[[1., 2.]]]])).tolist()
        [[[[1.0, 1.5, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PairwiseDistance(Module):
    """p-norm of the difference of rows: (sum |x1 - x2 + eps|^p)^(1/p).

    Args:
        p: the norm's order.
        eps: added to the differences, so that the gradient at 0 is finite.
        keepdim: keep the last dim, of size 1.

    Shapes:
        x1, x2: (N, E) or (E), or what broadcasts together.
        returns: (N) or (); (N, 1) or (1) with keepdim.

    Example:
        >>> distance = clew.nn.PairwiseDistance(eps=0.)
        >>> distance(clew.tensor([[0., 0.]]), clew.tensor([[3., 4.]])).tolist()
        [5.0]
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine of the angle between vectors: x1 · x2 / (max(|x1|, eps) max(|x2|, eps)).

    Args:
        dim: the dim of the vectors.
        eps: least length that is divided by.

    Shapes:
        x1, x2: (..., E, ...) with the vectors along dim, or what broadcasts together.
        returns: their shape without dim.

    Example:
        >>> same = clew.nn.CosineSimilarity()
        >>> same(clew.tensor([[1., 0.], [1., 0.]]), clew.tensor([[0., 3.], [5., 0.]])).tolist()
        [0.0, 1.0]
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
