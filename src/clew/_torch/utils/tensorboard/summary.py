"""TensorBoard's messages, for programs that write them by themselves."""

from __future__ import annotations

from typing import Any

from clew.utils.tensorboard import _summary

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "hparams",
    "image",
    "pr_curve",
    "scalar",
    "tensor_proto",
    "text",
]


def hparams(
    hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None
) -> tuple[Any, Any, Any]:
    """The messages that say what a run was set to and how it ended: experiment, start, end.

    Args:
        hparam_dict: name and value of each setting.
        metric_dict: name and number of each result.
        hparam_domain_discrete: the values that a setting may have.
    """
    return _summary.hparams(hparam_dict or {}, metric_dict or {}, hparam_domain_discrete)


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Any:
    """A number.

    Args:
        name: its name.
        tensor: the number.
        collections: not used, as in PyTorch.
        new_style: keep it as a tensor.
        double_precision: keep it in float64.
    """
    return _summary.scalar(name, tensor, new_style, double_precision)


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor."""
    return _summary.tensor(tag, tensor)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How values are distributed.

    Args:
        name: its name.
        values: a tensor of any shape.
        bins: edges, or what numpy.histogram takes.
        max_bins: join neighbours until there are at most so many.
    """
    return _summary.histogram(name, values, bins, max_bins)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or several side by side.

    Args:
        tag: its name.
        tensor: bytes, or numbers in [0, 1].
        rescale: 1; PyTorch makes the picture larger by this.
        dataformats: the order of the dims.
    """
    if rescale != 1:
        raise NotImplementedError(f"image: rescale must be 1; got {rescale}")
    return _summary.image(tag, _summary.as_image(tensor, dataformats, "image"))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound."""
    return _summary.audio(tag, tensor, sample_rate)


def text(tag: str, text: str) -> Any:
    """A text."""
    return _summary.text(tag, text)


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """Which scalars are drawn together."""
    return _summary.layout(layout)


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Any:
    """Precision against recall.

    Args:
        tag: its name.
        labels: 0 or 1.
        predictions: numbers in [0, 1].
        num_thresholds: how many points.
        weights: of the labels.
    """
    return _summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
