"""torchvision's operations on files of images, through Pillow."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._torch.torchvision_ops.checks import need

_UNCHANGED, _GRAY, _GRAY_ALPHA, _RGB, _RGB_ALPHA = range(5)


def _open(data: Tensor, *kinds: str) -> Any:
    """The image of a file's bytes, which must be of one of some kinds."""
    from PIL import Image

    need(data.dtype is clew.uint8, f"decode: expected bytes, as uint8; got {data.dtype}")
    need(
        data.dim() == 1 and data.numel() > 0,
        f"decode: expected bytes, in one dimension; got {tuple(data.shape)}",
    )
    try:
        image = Image.open(io.BytesIO(data.contiguous().numpy().tobytes()))
    except OSError as error:
        raise RuntimeError(f"decode: not a whole image, {' or '.join(kinds)}: {error}") from error
    need(image.format in kinds, f"decode: expected {' or '.join(kinds)}; got {image.format}")
    return image


def _upright(image: Any, turn: bool) -> Any:
    """The image, turned as its camera says if that is wanted; a broken file raises."""
    from PIL import ImageOps

    try:
        image.load()
    except OSError as error:
        raise RuntimeError(f"decode: {image.format}: {error}") from error
    return ImageOps.exif_transpose(image) if turn else image


def _channels_first(image: Any) -> Any:
    array = np.array(image)
    return array.transpose(2, 0, 1) if array.ndim == 3 else array[None]


def _result(array: Any) -> Tensor:
    return clew.from_numpy(np.ascontiguousarray(array))


def _gray_of(color: Any) -> Any:
    """Red, green and blue as libpng weighs them: in parts of 32768, rounded down."""
    parts = np.array([9794, 19234, 3740], dtype=np.int64).reshape(3, 1, 1)
    return ((color.astype(np.int64) * parts).sum(0, keepdims=True) >> 15).astype(color.dtype)


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = _open(data, "PNG")
    depth, kind = (int(data[i]) for i in (24, 25))  # of the header, which comes first
    if depth == 16 and kind != 0:
        raise NotImplementedError("decode_png: colors or opacity of 16 bits are not supported")
    image = _upright(image, apply_exif_orientation)
    if image.mode == "P" and mode != _UNCHANGED:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    array = _channels_first(image)
    if array.dtype == np.int32:  # an older Pillow's form of 16 bits
        array = array.astype(np.uint16)
    if mode == _UNCHANGED:
        return _result(array)
    color, opacity = array, np.full_like(array[:1], np.iinfo(array.dtype).max)
    if len(array) % 2 == 0:
        color, opacity = array[:-1], array[-1:]
    if mode in (_GRAY, _GRAY_ALPHA) and len(color) == 3:
        color = _gray_of(color)
    elif mode in (_RGB, _RGB_ALPHA) and len(color) == 1:
        color = color.repeat(3, 0)
    return _result(np.concatenate([color, opacity]) if mode in (_GRAY_ALPHA, _RGB_ALPHA) else color)


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = _open(data, "JPEG", "MPO")
    need(
        mode in (_UNCHANGED, _GRAY, _RGB),
        "decode_jpeg: the mode should be UNCHANGED, GRAY or RGB: a JPEG has no opacity",
    )
    if mode == _GRAY and image.mode == "RGB":
        image.draft("L", image.size)  # the brightness, which the file keeps apart
    image = _upright(image, apply_exif_orientation)
    if mode != _UNCHANGED:
        image = image.convert("L" if mode == _GRAY else "RGB")
    array = _channels_first(image)
    return _result(255 - array if image.mode == "CMYK" else array)  # Pillow turns inks over


def decode_webp(encoded_data: Tensor, mode: int) -> Tensor:
    image = _upright(_open(encoded_data, "WEBP"), False)
    if mode in (_GRAY, _GRAY_ALPHA):
        warnings.warn(
            "decode_webp: there is no mode without colors; the image has them", stacklevel=2
        )
    elif mode != _UNCHANGED:
        image = image.convert("RGB" if mode == _RGB else "RGBA")
    return _result(_channels_first(image))


def decode_gif(data: Tensor) -> Tensor:
    from PIL import ImageSequence

    image = _open(data, "GIF")
    try:
        frames = [np.array(f.convert("RGB")) for f in ImageSequence.Iterator(image)]
    except OSError as error:
        raise RuntimeError(f"decode_gif: {error}") from error
    found = np.stack(frames).transpose(0, 3, 1, 2)
    return _result(found[0] if len(found) == 1 else found)


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    kind = _open(data, "PNG", "JPEG", "MPO", "WEBP", "GIF").format
    if kind == "GIF":
        return decode_gif(data)
    if kind == "WEBP":
        return decode_webp(data, mode)
    decode = decode_png if kind == "PNG" else decode_jpeg
    return decode(data, mode, apply_exif_orientation)


def _encode(data: Tensor, kind: str, **options: Any) -> Tensor:
    from PIL import Image

    name = f"encode_{kind.lower()}"
    need(data.dtype is clew.uint8, f"{name}: expected an image of uint8; got {data.dtype}")
    need(
        data.dim() == 3 and data.shape[0] in (1, 3),
        f"{name}: expected an image of 1 or 3 channels; got {tuple(data.shape)}",
    )
    array = np.ascontiguousarray(data.numpy().transpose(1, 2, 0))
    image = Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)
    out = io.BytesIO()
    image.save(out, kind, **options)
    return clew.frombuffer(bytearray(out.getvalue()), dtype=clew.uint8)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    need(1 <= quality <= 100, f"encode_jpeg: the quality should be 1 to 100; got {quality}")
    return _encode(data, "JPEG", quality=quality, subsampling=2)


def encode_png(data: Tensor, level: int) -> Tensor:
    need(0 <= level <= 9, f"encode_png: the level should be 0 to 9; got {level}")
    return _encode(data, "PNG", compress_level=level)


def read_file(filename: str) -> Tensor:
    try:
        with open(filename, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RuntimeError(f"read_file: {error}") from error
    return clew.frombuffer(bytearray(data), dtype=clew.uint8) if data else clew.empty(0).byte()


def write_file(filename: str, data: Tensor) -> None:
    need(data.dtype is clew.uint8, f"write_file: expected bytes, as uint8; got {data.dtype}")
    need(data.dim() == 1, f"write_file: expected one dimension; got {tuple(data.shape)}")
    try:
        with open(filename, "wb") as file:
            file.write(data.contiguous().numpy().tobytes())
    except OSError as error:
        raise RuntimeError(f"write_file: {error}") from error
