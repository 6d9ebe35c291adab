"""torchvision's reading and writing of images on clew, through Pillow."""

import io
import zlib

import numpy as np
import pytest

import clew
from clew._torch import torchvision_ops

Image = pytest.importorskip("PIL.Image")
torchvision_ops.register("image.so")
ops = clew.ops.image
UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)
COLOR = (np.arange(192).reshape(8, 8, 3) * 5 % 256).astype(np.uint8)
ALPHA = np.dstack([COLOR, COLOR[..., 0] // 2])
SIXTEEN = (np.arange(64).reshape(8, 8) * 1000).astype(np.uint16)


def file(image, kind="PNG", **options):
    image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    out = io.BytesIO()
    image.save(out, kind, **options)
    return clew.frombuffer(bytearray(out.getvalue()), dtype=clew.uint8)


def libpng_gray(color):
    """libpng's weights of red, green and blue, in whole numbers."""
    red, green, blue = color[..., :3].astype(int).transpose(2, 0, 1)
    return (9794 * red + 19234 * green + 3740 * blue) // 32768


@pytest.mark.parametrize("decode", [ops.decode_png, ops.decode_image])
def test_png_in_each_mode(decode):
    data, gray = file(ALPHA), libpng_gray(ALPHA)
    first = ALPHA.transpose(2, 0, 1)
    assert decode(data, UNCHANGED).tolist() == first.tolist()
    assert decode(data, RGB).tolist() == first[:3].tolist()
    assert decode(data, RGB_ALPHA).tolist() == first.tolist()
    assert decode(data, GRAY).tolist() == [gray.tolist()]
    assert decode(data, GRAY_ALPHA).tolist() == [gray.tolist(), first[3].tolist()]
    plain = file(COLOR[..., 0])
    assert decode(plain, UNCHANGED).tolist() == [COLOR[..., 0].tolist()]
    assert decode(plain, RGB).tolist() == [COLOR[..., 0].tolist()] * 3
    full = np.full((8, 8), 255).tolist()
    assert decode(plain, RGB_ALPHA).tolist() == [COLOR[..., 0].tolist()] * 3 + [full]
    assert decode(file(COLOR[..., 0] > 99), UNCHANGED).unique().tolist() == [0, 255]


def test_png_with_a_palette_or_with_16_bits():
    image = Image.fromarray(COLOR).quantize(200)
    data = file(image)
    assert ops.decode_png(data, UNCHANGED).tolist() == [np.array(image).tolist()]
    color = np.array(image.convert("RGB"))
    assert ops.decode_png(data, RGB).tolist() == color.transpose(2, 0, 1).tolist()
    assert ops.decode_png(data, GRAY).tolist() == [libpng_gray(color).tolist()]
    data = file(SIXTEEN)
    for mode, channels in [(UNCHANGED, 1), (GRAY, 1), (RGB, 3)]:
        got = ops.decode_png(data, mode)
        assert got.dtype is clew.uint16 and got.tolist() == [SIXTEEN.tolist()] * channels
    assert ops.decode_png(data, GRAY_ALPHA)[1].unique().tolist() == [65535]
    header = bytearray(file(COLOR).numpy().tobytes())
    header[24] = 16  # as if its colors had 16 bits
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    with pytest.raises(NotImplementedError, match="16 bits"):
        ops.decode_png(clew.frombuffer(header, dtype=clew.uint8), RGB)


@pytest.mark.parametrize("decode", [ops.decode_jpeg, ops.decode_image])
def test_jpeg_in_each_mode(decode):
    smooth = np.add.outer(np.arange(24), np.arange(32))[..., None] * np.array([1, 2, 3])
    smooth = smooth.astype(np.uint8)
    data = file(smooth, "JPEG", quality=95)
    image = Image.open(io.BytesIO(data.numpy().tobytes()))
    assert decode(data, UNCHANGED).tolist() == np.array(image).transpose(2, 0, 1).tolist()
    assert decode(data, RGB).shape == (3, 24, 32)
    # The brightness as the file has it, not that of the colors made of it.
    bright = Image.open(io.BytesIO(data.numpy().tobytes()))
    bright.draft("L", bright.size)
    assert decode(data, GRAY).tolist() == [np.array(bright).tolist()]
    for mode in (GRAY_ALPHA, RGB_ALPHA):
        with pytest.raises(RuntimeError, match="mode"):
            decode(data, mode)
    inks = file(Image.fromarray(smooth).convert("CMYK"), "JPEG", quality=100)
    want = 255 - smooth.astype(int).transpose(2, 0, 1)  # inks are what colors lack, turned over
    got = decode(inks, UNCHANGED).numpy().astype(int)
    assert got.shape == (4, 24, 32) and abs(255 - got[:3] - want).max() < 12


def test_turned_as_the_camera_says():
    exif = Image.Exif()
    exif[0x112] = 6  # a quarter turn to the right
    data = file(COLOR[:4], exif=exif)
    want = np.rot90(COLOR[:4], -1).transpose(2, 0, 1)
    assert ops.decode_png(data, RGB, True).tolist() == want.tolist()
    assert ops.decode_png(data, RGB).shape == (3, 4, 8)
    jpeg = file(COLOR[:4], "JPEG", exif=exif)
    assert ops.decode_image(jpeg, RGB, True).shape == (3, 8, 4)


def test_gif_and_webp():
    frames = [Image.fromarray(np.full((4, 6, 3), v, dtype=np.uint8)) for v in (10, 100, 200)]
    many = file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    for got in (ops.decode_gif(many), ops.decode_image(many, GRAY)):
        assert got.shape == (3, 3, 4, 6) and got[:, 0, 0, 0].tolist() == [10, 100, 200]
    assert ops.decode_gif(file(frames[1], "GIF")).shape == (3, 4, 6)
    data = file(ALPHA, "WEBP", lossless=True, exact=True)
    first = ALPHA.transpose(2, 0, 1).tolist()
    assert ops.decode_webp(data, UNCHANGED).tolist() == first
    assert ops.decode_image(data, RGB).tolist() == first[:3]
    with pytest.warns(UserWarning, match="without colors"):
        assert ops.decode_webp(data, GRAY).tolist() == first


def test_encoded_and_read_back(tmp_path):
    image = clew.from_numpy(np.ascontiguousarray(COLOR.transpose(2, 0, 1)))
    path = str(tmp_path / "image.png")
    ops.write_file(path, ops.encode_png(image, 6))
    assert ops.decode_image(ops.read_file(path), UNCHANGED).tolist() == image.tolist()
    assert ops.decode_png(ops.encode_png(image[:1], 9), UNCHANGED).tolist() == image[:1].tolist()
    assert ops.decode_jpeg(ops.encode_jpeg(image, 90), UNCHANGED).shape == (3, 8, 8)


def test_what_is_refused(tmp_path):
    image = clew.from_numpy(np.ascontiguousarray(COLOR.transpose(2, 0, 1)))
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    png, jpeg = file(noise), file(noise, "JPEG")
    for f, words in [
        (lambda: ops.decode_image(png.float(), RGB), "uint8"),
        (lambda: ops.decode_image(png.reshape(1, -1), RGB), "one dimension"),
        (lambda: ops.decode_image(png[:0], RGB), "one dimension"),
        (lambda: ops.decode_image(clew.arange(40).byte(), RGB), "not a whole image"),
        (lambda: ops.decode_png(jpeg, RGB), "expected PNG; got JPEG"),
        (lambda: ops.decode_jpeg(png, RGB), "got PNG"),
        (lambda: ops.decode_webp(png, RGB), "expected WEBP"),
        (lambda: ops.decode_gif(png), "expected GIF"),
        (lambda: ops.decode_png(png[:90], RGB), "truncated"),
        (lambda: ops.decode_jpeg(jpeg[:200], RGB), "not a whole image"),
        (lambda: ops.decode_jpeg(jpeg[: len(jpeg) // 2], RGB), "JPEG: "),
        (lambda: ops.encode_png(image.float(), 6), "uint8"),
        (lambda: ops.encode_png(image[:2], 6), "1 or 3 channels"),
        (lambda: ops.encode_jpeg(image[0], 75), "1 or 3 channels"),
        (lambda: ops.encode_jpeg(image, 0), "quality"),
        (lambda: ops.encode_png(image, 10), "level"),
        (lambda: ops.read_file(str(tmp_path / "none")), "No such file"),
        (lambda: ops.write_file(str(tmp_path / "no" / "a"), png), "No such file"),
        (lambda: ops.write_file(str(tmp_path / "a"), png.float()), "uint8"),
        (lambda: ops.write_file(str(tmp_path / "a"), png.reshape(1, -1)), "one dimension"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            f()
