"""Exported programs of models with autocast regions."""

from __future__ import annotations

import io

import pytest
from test_kept_python import leaves

import clew
from clew import nn
from clew.export import Dim, export, load, save
from clew.nn import functional as F

B, T = Dim("b"), Dim("t")


def same(model, example, others, shapes):
    file = io.BytesIO()
    save(export(model, example, dynamic_shapes=shapes), file)
    file.seek(0)
    module = load(file).module()
    for inputs in (example, *others):
        with clew.no_grad():
            for a, b in zip(leaves(model(*inputs)), leaves(module(*inputs)), strict=True):
                clew.testing.assert_close(clew.tensor(b), clew.tensor(a), rtol=0, atol=0)
    return module


class Regions(nn.Module):
    """Operations that autocast lowers, raises and widens, and functions written in Python."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 4), nn.LayerNorm(4)
        self.gru, self.lstm = nn.GRU(3, 4, batch_first=True), nn.LSTM(3, 4, batch_first=True)

    def forward(self, x):
        with clew.autocast("cpu", dtype=clew.bfloat16):
            y = self.linear(x)
            z = clew.cat([y, self.gru(x)[0]], -1)
            far, loss = clew.cdist(x, x), F.mse_loss(y, z[..., :4])
            scores = (y @ y.mT).softmax(-1)
            out = self.lstm(x)[0] + self.norm(y)
            with clew.autocast("cpu", enabled=False):
                plain = y.float() @ y.float().mT
        kinds = [t.dtype for t in (y, z, far, loss, scores, out, plain)]
        assert kinds[0] == clew.bfloat16 and kinds[2] == kinds[6] == clew.float32
        return [t.float() for t in (y, z, far, loss, scores, out, plain)]


def test_what_autocast_casts_is_cast_by_the_program():
    others = [(clew.randn(1, 2, 3),), (clew.randn(3, 7, 3),)]
    same(Regions(), (clew.randn(2, 5, 3),), others, ({0: B, 1: T},))


def test_a_branch_within_a_region():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 4)

        def forward(self, x):
            with clew.autocast("cpu", dtype=clew.bfloat16):
                if x.sum() > 0:
                    y = self.linear(x)
                else:
                    y = self.linear(-x) * 2
            return y.float()

    x = clew.randn(5, 3).abs()
    module = same(Model(), (x,), [(-x,), (x[:1],)], ({0: B},))
    module(x).sum().backward()
    assert module.linear.weight.grad.dtype == clew.float32


def test_an_onnx_file_of_a_dtype_that_onnxruntime_lacks():
    pytest.importorskip("onnxruntime")
    model, x = nn.Linear(3, 4).bfloat16(), clew.randn(2, 3).bfloat16()
    with pytest.warns(UserWarning, match="onnxruntime cannot run the file .* own loader"):
        made = clew.onnx.export(model, (x,), dynamic_shapes=({0: B},))
    read = clew.onnx.load(io.BytesIO(made.model_proto.SerializeToString()))
    x = clew.randn(5, 3).bfloat16()
    clew.testing.assert_close(read(x), model(x))
