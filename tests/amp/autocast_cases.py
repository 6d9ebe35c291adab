"""Calls whose result dtypes inside autocast are recorded from PyTorch; each takes the library and
a maker of tensors in the dtype under test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class Maker:
    """Tensors of small integers plus a half, in one dtype, or in float32 where asked."""

    def __init__(self, library: Any, dtype: str) -> None:
        self.t = library
        self.dtype = getattr(library, dtype)

    def __call__(self, *shape: int) -> Any:
        return self._values(*shape).to(self.dtype)

    def single(self, *shape: int) -> Any:
        return self._values(*shape).to(self.t.float32)

    def leaf(self, *shape: int) -> Any:
        return self.single(*shape).requires_grad_()

    def square(self, n: int = 3) -> Any:
        """Symmetric and positive definite."""
        return (self.t.eye(n) * 4 + 0.5).to(self.dtype)

    def _values(self, *shape: int) -> Any:
        n = 1
        for s in shape:
            n *= s
        return (self.t.arange(n) % 5 / 4 + 0.125).reshape(shape)


def _f(t: Any) -> Any:
    return t.nn.functional


def _rnn(kind: str) -> Callable[[Any, Maker], Any]:
    def run(t: Any, x: Maker) -> Any:
        t.manual_seed(0)
        return getattr(t.nn, kind)(3, 4)(x.single(5, 2, 3))

    return run


def _module(make: Callable[[Any], Any], *shape: int) -> Callable[[Any, Maker], Any]:
    def run(t: Any, x: Maker) -> Any:
        t.manual_seed(0)
        return make(t.nn)(x.single(*shape))

    return run


def _ints(t: Any, *values: int) -> Any:
    return t.tensor(values)


Case = Callable[[Any, Maker], Any]
# A name starting with "own " is one where PyTorch has no kernel for the dtype and clew has.
CASES: dict[str, Case] = {
    # products
    "mm": lambda t, x: t.mm(x(2, 3), x(3, 2)),
    "mm, float32 and the dtype": lambda t, x: t.mm(x(2, 3), x.single(3, 2)),
    "matmul": lambda t, x: x(2, 2, 3) @ x.single(3),
    "bmm": lambda t, x: t.bmm(x(2, 2, 3), x(2, 3, 2)),
    "addmm": lambda t, x: t.addmm(x.single(2, 2), x(2, 3), x(3, 2)),
    "baddbmm": lambda t, x: t.baddbmm(x(2, 2, 2), x(2, 2, 3), x(2, 3, 2)),
    "addbmm": lambda t, x: t.addbmm(x(2, 2), x(2, 2, 3), x(2, 3, 2)),
    "mv": lambda t, x: t.mv(x(2, 3), x(3)),
    "addmv": lambda t, x: t.addmv(x(2), x(2, 3), x(3)),
    "dot": lambda t, x: t.dot(x(3), x(3)),
    "vdot": lambda t, x: t.vdot(x(3), x(3)),
    "inner": lambda t, x: t.inner(x(2, 3), x(2, 3)),
    "outer": lambda t, x: t.outer(x(2), x(3)),
    "addr": lambda t, x: t.addr(x(2, 3), x(2), x(3)),
    "kron": lambda t, x: t.kron(x(2, 2), x(2, 2)),
    "einsum, product": lambda t, x: t.einsum("ij,jk->ik", x(2, 3), x(3, 2)),
    "einsum, trace": lambda t, x: t.einsum("ii->i", x(3, 3)),
    "tensordot": lambda t, x: t.tensordot(x(2, 3), x(3, 2), 1),
    "chain_matmul": lambda t, x: t.linalg.multi_dot([x(2, 3), x(3, 2), x(2, 4)]),
    "linalg.vecdot": lambda t, x: t.linalg.vecdot(x(2, 3), x(2, 3)),
    "linear": lambda t, x: _f(t).linear(x(2, 3), x.leaf(4, 3), x.leaf(4)),
    "bilinear": lambda t, x: _f(t).bilinear(x(2, 3), x(2, 3), x(4, 3, 3)),
    "conv1d": lambda t, x: _f(t).conv1d(x(1, 2, 5), x.leaf(3, 2, 3), x.leaf(3)),
    "conv2d": lambda t, x: _f(t).conv2d(x(1, 2, 5, 5), x.leaf(3, 2, 3, 3), padding="same"),
    "conv3d": lambda t, x: _f(t).conv3d(x(1, 2, 5, 5, 5), x(3, 2, 3, 3, 3)),
    "conv_transpose1d": lambda t, x: _f(t).conv_transpose1d(x(1, 2, 5), x(2, 3, 3)),
    "conv_transpose2d": lambda t, x: _f(t).conv_transpose2d(x(1, 2, 5, 5), x(2, 3, 3, 3)),
    "conv_tbc": lambda t, x: _f(t).conv_tbc(x(5, 1, 2), x(3, 2, 3), x(3)),
    "prelu": lambda t, x: _f(t).prelu(x(2, 3), x.leaf(1)),
    "attention": lambda t, x: _f(t).scaled_dot_product_attention(
        x(1, 2, 4, 8), x.single(1, 2, 4, 8), x(1, 2, 4, 8), attn_mask=x.single(4, 4)
    ),
    # float32
    "mse_loss": lambda t, x: _f(t).mse_loss(x(2, 3), x(2, 3)),
    "mse_loss, none": lambda t, x: _f(t).mse_loss(x(2, 3), x.single(2, 3), reduction="none"),
    "l1_loss": lambda t, x: _f(t).l1_loss(x(2, 3), x(2, 3)),
    "smooth_l1_loss": lambda t, x: _f(t).smooth_l1_loss(x(2, 3), x(2, 3)),
    "huber_loss": lambda t, x: _f(t).huber_loss(x(2, 3), x(2, 3)),
    "nll_loss": lambda t, x: _f(t).nll_loss(x(2, 3), _ints(t, 0, 2)),
    "nll_loss, weight": lambda t, x: _f(t).nll_loss(x(2, 3), _ints(t, 0, 2), x.single(3)),
    "nll_loss, images": lambda t, x: _f(t).nll_loss(x(1, 3, 1, 2), _ints(t, 0, 2).view(1, 1, 2)),
    "cross_entropy": lambda t, x: _f(t).cross_entropy(x(2, 3), _ints(t, 0, 2)),
    "cross_entropy, weight": lambda t, x: _f(t).cross_entropy(
        x(2, 3), _ints(t, 0, 2), x.single(3), label_smoothing=0.1
    ),
    "cross_entropy, probabilities": lambda t, x: _f(t).cross_entropy(x(2, 3), x(2, 3)),
    "kl_div": lambda t, x: _f(t).kl_div(x(2, 3), x(2, 3), reduction="batchmean"),
    "binary_cross_entropy": lambda t, x: _f(t).binary_cross_entropy(
        x(2, 2).clamp(0, 1), x.single(2, 2).clamp(0, 1)
    ),
    "binary_cross_entropy_with_logits": lambda t, x: _f(t).binary_cross_entropy_with_logits(
        x(2, 2), x(2, 2), pos_weight=x.single(2)
    ),
    "poisson_nll_loss": lambda t, x: _f(t).poisson_nll_loss(x(2, 3), x(2, 3)),
    "gaussian_nll_loss": lambda t, x: _f(t).gaussian_nll_loss(x(2, 3), x(2, 3), x(2, 3)),
    "hinge_embedding_loss": lambda t, x: _f(t).hinge_embedding_loss(x(2, 3), t.ones(2, 3)),
    "cosine_embedding_loss": lambda t, x: _f(t).cosine_embedding_loss(
        x(2, 3), x(2, 3), _ints(t, 1, -1)
    ),
    "margin_ranking_loss": lambda t, x: _f(t).margin_ranking_loss(x(3), x(3), x(3)),
    "soft_margin_loss": lambda t, x: _f(t).soft_margin_loss(x(3), t.ones(3)),
    "multi_margin_loss": lambda t, x: _f(t).multi_margin_loss(x(2, 3), _ints(t, 0, 1)),
    "multilabel_margin_loss": lambda t, x: _f(t).multilabel_margin_loss(
        x(1, 3), _ints(t, 0, -1, 1).view(1, 3)
    ),
    "multilabel_soft_margin_loss": lambda t, x: _f(t).multilabel_soft_margin_loss(
        x(2, 3), t.ones(2, 3)
    ),
    "triplet_margin_loss": lambda t, x: _f(t).triplet_margin_loss(x(2, 3), x(2, 3), x.single(2, 3)),
    "ctc_loss": lambda t, x: _f(t).ctc_loss(
        t.log_softmax(x.single(4, 1, 3), 2).to(x.dtype), _ints(t, 1, 2).view(1, 2), [4], [2]
    ),
    "prod": lambda t, x: t.prod(x(2, 3)),
    "prod, dim": lambda t, x: x(2, 3).prod(1),
    "trace": lambda t, x: t.trace(x(3, 3)),
    "polar": lambda t, x: t.polar(x(3), x(3)),
    "view_as_complex": lambda t, x: t.view_as_complex(x(3, 2)),
    "quantile": lambda t, x: t.quantile(x(5), 0.5),
    "nanquantile": lambda t, x: t.nanquantile(x(5), 0.5),
    "cdist": lambda t, x: t.cdist(x(2, 3), x(4, 3)),
    "stft": lambda t, x: t.stft(x(16), 8, return_complex=True, window=t.ones(8)),
    "grid_sample": lambda t, x: _f(t).grid_sample(
        x(1, 1, 3, 3), x(1, 2, 2, 2), align_corners=False
    ),
    "avg_pool3d": lambda t, x: _f(t).avg_pool3d(x(1, 1, 4, 4, 4), 2),
    "max_pool3d": lambda t, x: _f(t).max_pool3d(x(1, 1, 4, 4, 4), 2),
    "adaptive_avg_pool3d": lambda t, x: _f(t).adaptive_avg_pool3d(x(1, 1, 4, 4, 4), 2),
    "adaptive_max_pool3d": lambda t, x: _f(t).adaptive_max_pool3d(x(1, 1, 4, 4, 4), 2),
    "fractional_max_pool2d": lambda t, x: _f(t).fractional_max_pool2d(
        x(1, 1, 5, 5), 2, output_size=2, _random_samples=x(1, 1, 2)
    ),
    "max_unpool2d": lambda t, x: _f(t).max_unpool2d(
        *_f(t).max_pool2d(x(1, 1, 4, 4), 2, return_indices=True), 2
    ),
    "max_unpool3d": lambda t, x: _f(t).max_unpool3d(
        *_f(t).max_pool3d(x(1, 1, 4, 4, 4), 2, return_indices=True), 2
    ),
    "pad, reflect 1d": lambda t, x: _f(t).pad(x(1, 1, 4), (1, 1), mode="reflect"),
    "pad, reflect 2d": lambda t, x: _f(t).pad(x(1, 1, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "pad, reflect 3d": lambda t, x: _f(t).pad(x(1, 1, 4, 4, 4), (1,) * 6, mode="reflect"),
    "pad, replicate 1d": lambda t, x: _f(t).pad(x(1, 1, 4), (1, 1), mode="replicate"),
    "pad, replicate 3d": lambda t, x: _f(t).pad(x(1, 1, 4, 4, 4), (1,) * 6, mode="replicate"),
    "pad, circular": lambda t, x: _f(t).pad(x(1, 1, 4), (1, 1), mode="circular"),
    "pad, constant": lambda t, x: _f(t).pad(x(1, 1, 4), (1, 1)),
    # decompositions and transforms
    "cholesky": lambda t, x: t.linalg.cholesky(x.square()),
    "cholesky_solve": lambda t, x: t.cholesky_solve(x(3, 2), x.square()),
    "inverse": lambda t, x: t.inverse(x.square()),
    "pinverse": lambda t, x: t.pinverse(x.square()),
    "lu_solve": lambda t, x: t.lu_solve(x(3, 1), *t.linalg.lu_factor(x.square().to(t.float32))),
    "linalg.solve": lambda t, x: t.linalg.solve(x.square(), x(3, 2)),
    "linalg.qr": lambda t, x: t.linalg.qr(x.square()),
    "linalg.svd": lambda t, x: t.linalg.svd(x.square()),
    "linalg.svdvals": lambda t, x: t.linalg.svdvals(x.square()),
    "linalg.eigh": lambda t, x: t.linalg.eigh(x.square()),
    "linalg.eigvals": lambda t, x: t.linalg.eigvals(x.square()),
    "linalg.eigvalsh": lambda t, x: t.linalg.eigvalsh(x.square()),
    "linalg.lstsq": lambda t, x: t.linalg.lstsq(x.square(), x(3, 1))[0],
    "linalg.cond": lambda t, x: t.linalg.cond(x.square()),
    "linalg.matrix_rank": lambda t, x: t.linalg.matrix_rank(x.square()),
    "linalg.householder_product": lambda t, x: t.linalg.householder_product(x(3, 3), x(3)),
    "linalg.tensorinv": lambda t, x: t.linalg.tensorinv(x.square(4).view(4, 2, 2), ind=1),
    "linalg.tensorsolve": lambda t, x: t.linalg.tensorsolve(x.square(), x(3)),
    "linalg.det": lambda t, x: t.linalg.det(x.square()),
    "linalg.matrix_norm": lambda t, x: t.linalg.matrix_norm(x.square()),
    "triangular_solve": lambda t, x: t.triangular_solve(x(3, 1), x.square()),
    "fft": lambda t, x: t.fft.fft(x(8)),
    "ifft": lambda t, x: t.fft.ifft(x(8)),
    "rfft": lambda t, x: t.fft.rfft(x(8)),
    "irfft": lambda t, x: t.fft.irfft(x(8)),
    "hfft": lambda t, x: t.fft.hfft(x(8)),
    "ihfft": lambda t, x: t.fft.ihfft(x(8)),
    "fft2": lambda t, x: t.fft.fft2(x(4, 4)),
    "fftn": lambda t, x: t.fft.fftn(x(4, 4)),
    "rfftn": lambda t, x: t.fft.rfftn(x(4, 4)),
    # the widest
    "cat": lambda t, x: t.cat([x(2), x.single(2)]),
    "cat, one dtype": lambda t, x: t.cat([x(2), x(2)]),
    "stack": lambda t, x: t.stack([x(2), x.single(2)]),
    "stack, with integers": lambda t, x: t.stack([_ints(t, 1, 2), _ints(t, 3, 4)]),
    "hstack": lambda t, x: t.hstack([x(2), x.single(2)]),
    "index_copy": lambda t, x: t.index_copy(x(2, 3), 0, _ints(t, 1), x.single(1, 3)),
    # as they come
    "add": lambda t, x: x(2) + x.single(2),
    "mul": lambda t, x: x(2) * 2,
    "exp": lambda t, x: t.exp(x(2)),
    "sum": lambda t, x: x(2).sum(),
    "mean": lambda t, x: x(2).mean(),
    "pow": lambda t, x: x(2) ** 2,
    "cumsum": lambda t, x: x(2).cumsum(0),
    "norm": lambda t, x: t.linalg.vector_norm(x(4)),
    "relu": lambda t, x: t.relu(x(2)),
    "gelu": lambda t, x: _f(t).gelu(x(2)),
    "softmax": lambda t, x: t.softmax(x(2, 3), 1),
    "log_softmax": lambda t, x: t.log_softmax(x(2, 3), 1),
    "dropout": lambda t, x: _f(t).dropout(x(2, 3), 0.5),
    "layer_norm": lambda t, x: _f(t).layer_norm(x(2, 3), (3,), x.leaf(3), x.leaf(3)),
    "group_norm": lambda t, x: _f(t).group_norm(x(2, 4, 3), 2, x.single(4), x.single(4)),
    "batch_norm": lambda t, x: _f(t).batch_norm(
        x(4, 3), x.single(3), x.single(3), x.single(3), x.single(3), training=True
    ),
    "instance_norm": lambda t, x: _f(t).instance_norm(x(2, 3, 4)),
    "embedding": lambda t, x: _f(t).embedding(_ints(t, 0, 1), x(3, 2)),
    "max_pool2d": lambda t, x: _f(t).max_pool2d(x(1, 1, 4, 4), 2),
    "avg_pool2d": lambda t, x: _f(t).avg_pool2d(x(1, 1, 4, 4), 2),
    "interpolate": lambda t, x: _f(t).interpolate(x(1, 1, 4, 4), scale_factor=2, mode="bilinear"),
    "cosine_similarity": lambda t, x: _f(t).cosine_similarity(x(2, 3), x(2, 3)),
    "pairwise_distance": lambda t, x: _f(t).pairwise_distance(x(2, 3), x(2, 3)),
    "where": lambda t, x: t.where(x(2) > 1, x(2), x.single(2)),
    "topk": lambda t, x: t.topk(x(4), 2),
    "mm, out": lambda t, x: t.mm(x(2, 3), x(3, 2), out=x(2, 2)),
    "addmm_": lambda t, x: x(2, 2).addmm_(x(2, 3), x(3, 2)),
    "float64 product": lambda t, x: t.mm(x(2, 3).double(), x(3, 2).double()),
    "integer product": lambda t, x: t.mm(x(2, 3).long(), x(3, 2).long()),
    "complex product": lambda t, x: t.mm(x(2, 3).to(t.complex64), x(3, 2).to(t.complex64)),
    # modules
    "Linear": _module(lambda nn: nn.Linear(3, 2), 4, 3),
    "Conv2d and BatchNorm2d": _module(
        lambda nn: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), 2, 2, 5, 5
    ),
    "LayerNorm and Linear": _module(
        lambda nn: nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU()), 2, 4
    ),
    "TransformerEncoderLayer": _module(
        lambda nn: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, 3, 8
    ),
    "MultiheadAttention": lambda t, x: t.nn.MultiheadAttention(8, 2)(
        x.single(3, 2, 8), x.single(3, 2, 8), x.single(3, 2, 8)
    ),
    "RNN": _rnn("RNN"),
    "LSTM": _rnn("LSTM"),
    "GRU": _rnn("GRU"),
    "RNNCell": lambda t, x: t.nn.RNNCell(3, 4)(x.single(2, 3)),
    "LSTMCell": lambda t, x: t.nn.LSTMCell(3, 4)(x.single(2, 3)),
    "GRUCell": lambda t, x: t.nn.GRUCell(3, 4)(x.single(2, 3)),
    "GRU of x": lambda t, x: t.nn.GRU(3, 4, 2, bidirectional=True)(x(5, 2, 3)),
    "GRU with a state": lambda t, x: t.nn.GRU(3, 4)(x(5, 2, 3), x.single(1, 2, 4)),
    "GRU with a state of x": lambda t, x: t.nn.GRU(3, 4)(x.single(5, 2, 3), x(1, 2, 4)),
    "GRU of packed x": lambda t, x: t.nn.GRU(3, 4)(
        t.nn.utils.rnn.pack_padded_sequence(x(5, 2, 3), [5, 2])
    )[1],
    "LSTM of x": lambda t, x: t.nn.LSTM(3, 4)(x(5, 2, 3)),
    "LSTM with a state": lambda t, x: t.nn.LSTM(3, 4)(
        x(5, 2, 3), (x.single(1, 2, 4), x.single(1, 2, 4))
    ),
    "LSTM with a state of x": lambda t, x: t.nn.LSTM(3, 4)(
        x.single(5, 2, 3), (x(1, 2, 4), x(1, 2, 4))
    ),
    "LSTM with projections": lambda t, x: t.nn.LSTM(3, 4, 2, proj_size=2)(x(5, 2, 3)),
    "LSTM with projections and a state of x": lambda t, x: t.nn.LSTM(3, 4, proj_size=2)(
        x.single(5, 2, 3), (x(1, 2, 2), x(1, 2, 4))
    ),
    "RNN of x": lambda t, x: t.nn.RNN(3, 4)(x(5, 2, 3)),
    "RNNCell of x": lambda t, x: t.nn.RNNCell(3, 4)(x(2, 3)),
    "LSTMCell of x": lambda t, x: t.nn.LSTMCell(3, 4)(x(2, 3)),
    "LSTMCell with a state": lambda t, x: t.nn.LSTMCell(3, 4)(x(2, 3), (x(2, 4), x.single(2, 4))),
    "GRUCell of x": lambda t, x: t.nn.GRUCell(3, 4)(x(2, 3)),
    "GRUCell with a state": lambda t, x: t.nn.GRUCell(3, 4)(x(2, 3), x.single(2, 4)),
    "GRUCell with a state of x": lambda t, x: t.nn.GRUCell(3, 4)(x.single(2, 3), x(2, 4)),
    "Bilinear": lambda t, x: t.nn.Bilinear(3, 3, 2)(x.single(4, 3), x.single(4, 3)),
    "Embedding and Linear": lambda t, x: t.nn.Linear(4, 2)(t.nn.Embedding(5, 4)(_ints(t, 1, 2))),
}


def dtypes(result: Any) -> list[str]:
    """The names of the dtypes of a result's tensors, nested ones in order."""
    if hasattr(result, "dtype"):
        return [str(result.dtype).split(".")[-1]]
    if isinstance(result, (tuple, list)):
        return [name for part in result for name in dtypes(part)]
    return []


INPUTS = ("float32", "bfloat16", "float16", "float64")


def outcome(library: Any, case: Case, inputs: str, dtype: str) -> list[str] | str:
    """The dtypes of a case's results inside autocast; "error" where it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with library.autocast("cpu", dtype=getattr(library, dtype)):
            try:
                return dtypes(case(library, Maker(library, inputs)))
            except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError):
                return "error"
