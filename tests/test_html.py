"""What notebooks show."""

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest

import clew
from clew import nn
from clew._tensor import html as _html


def pixels(page):
    """The picture in a page, read by the format's own description."""
    data = base64.b64decode(re.search(r'base64,([^"]*)"', page).group(1))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, rows, size = 8, b"", None
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length :][:4])[0]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        rows += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height = size
    lines = np.frombuffer(zlib.decompress(rows), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_a_tensor_shows_statistics_and_a_picture():
    x = clew.linspace(0, 99, 100).reshape(5, 20).clone()
    page = x._repr_html_()
    assert "float32[5, 20]" in page and ">99<" in page and ">49.5<" in page
    shown = pixels(page)
    assert shown.shape == (5, 20, 3)
    assert tuple(shown[0, 0]) == (0, 0, 0) and tuple(shown[4, 19]) == (255, 255, 255)
    x[2, 3] = float("nan")
    assert tuple(pixels(x._repr_html_())[2, 3]) == (255, 160, 0) and "nan" in x._repr_html_()
    signed = pixels((x.nan_to_num() - 50)._repr_html_())
    assert signed[0, 0, 2] == 255 > signed[0, 0, 0] and signed[4, 19, 0] == 255 > signed[4, 19, 2]


def test_large_and_deep_tensors():
    page = clew.zeros(2, 3, 1000, 300)._repr_html_()
    assert pixels(page).shape == (125, 100, 3) and "[0, 0, :, :]" in page
    for dtype in (clew.bool, clew.uint8, clew.int64, clew.float16, clew.bfloat16, clew.float64):
        assert f"{dtype.name}[100]" in clew.ones(100, dtype=dtype)._repr_html_()
    y = clew.ones(100, requires_grad=True) * 2
    assert "made by MulBackward0" in y._repr_html_()


class _Own(clew.Tensor):
    pass


@pytest.mark.parametrize(
    "value",
    [
        clew.ones(3),
        clew.tensor(2.0),
        clew.empty(100, device="meta"),
        clew.zeros(100, dtype=clew.complex64),
        clew.eye(20).to_sparse(),
        clew.ones(100).as_subclass(_Own),
        clew.empty(0, 5),
    ],
    ids=lambda value: f"{value.dtype.name}{tuple(value.shape)}",
)
def test_what_shows_as_text(value):
    assert value._repr_html_() is None


def test_a_module_is_a_tree():
    net = nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Sequential(nn.ReLU()), nn.LazyLinear(3)
    )
    net[0].weight.requires_grad_(False)
    page = net._repr_html_()
    ElementTree.fromstring(f"<p>{page}</p>")  # every tag is closed
    assert "float32[5, 4]" in page and "parameter, frozen" in page and "running_mean" in page
    assert "35 parameters" in page and "20 of them frozen" in page and "[?]" in page

    class Named(nn.Module):
        def __repr__(self):
            return "<b>mine</b>"

    assert Named()._repr_html_() is None
    assert "&lt;b&gt;" in nn.Sequential(type("<b>", (nn.Module,), {})())._repr_html_()


def test_a_table_of_the_profiler():
    with clew.profiler.profile() as prof:
        clew.ones(3) + 1
    assert prof.key_averages()._repr_html_().startswith("<pre")
    assert _html.table("a < b").endswith("a &lt; b</pre>")


def _printed():
    """One of each of the things that print as tables and reports."""
    layer, x = nn.Linear(3, 2), clew.ones(4, 3)
    with clew.debug.leaks() as grown:
        kept = clew.ones(1000)
    with clew.profiler.profile(profile_memory=True) as prof:
        loss = layer(x).sum() * kept.mean()
    with clew.autobatch():
        layer(x)
    with clew.memory_budget(None) as budget:
        layer(x)
    graph = clew.graph(loss)
    return [
        clew.debug.memory(),
        clew.debug.summary(x),
        clew.debug.NonFinite("log", "NaN", False, "a < b", (), ()),
        clew.debug.compare(lambda: layer(x), lambda: layer(x + 1)),
        grown,
        graph.by_module(),
        graph.why(layer.weight).uses,
        loss.history(),
        graph.why(layer.weight),
        layer.summary(x),
        prof.peak(),
        prof.by_module(),
        clew.autobatch.report(),
        budget.report(),
    ]


def test_what_prints_as_a_table_keeps_its_lines():
    pages = {type(value).__name__: (value._repr_html_(), str(value)) for value in _printed()}
    assert len(pages) == 14
    for name, (page, text) in pages.items():
        assert page == _html.table(text), name


def test_what_the_doctor_finds_keeps_its_lines():
    from clew._insight.debug.doctor.finding import Finding

    page = Finding("a < b", "train.py:3", "1.5", "write b < a")._repr_html_()
    assert page.startswith("<pre") and "a &lt; b\n  at train.py:3" in page
