"""Throughput of large operations, all threads: GB/s of the bytes that must move (every input read
and every output written once), GF/s of arithmetic; the machine's own limits measured beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bench.timer import milliseconds

UNIT = "GB/s or GF/s"
BETTER = "higher"

TRIAD, PEAK = "triad (the limit)", "matmul 2048 (the limit)"
# What large memory-bound operations should reach of the triad's rate ...
SHARE = 0.85
# ... and cases that are something else: algorithms, and what the caches hold.
NOT_OF_MEMORY = frozenset(
    (
        "sort of 1e6",
        "sort of 1e6 integers",
        "unique of 1e6",
        "top 1000 of 1e6",
        "sort of 1000 rows of 1000",
        "top 10 of 1000 rows of 1000",
        "randn",
        "softmax 64x256",
        "gelu 64x256",
        "add 512x512",
        "exp 512x512",
        "softmax 512x512",
        "layer_norm 512x512",
        "sum of rows 512x512",
        "transposed copy 512x512",
        "layer_norm 512x512, with backward",
        "gather of elements 1000x1000",
        "scatter_add of elements 1000x1000",
        "erf of 2e6, float64",
        "atan2 of 2e6, float64",
        "gelu of 4e6, bfloat16",
        "softmax of 4000x1000, bfloat16, columns",
        "gelu of 4e6, bfloat16, with backward",
        "grid_sample 8x16x128x128",
        "grid_sample 8x16x128x128, with backward",
        "grid_sample 8x16x128x128, bicubic, with backward",
        "grid_sample 2x8x32x32x32, with backward",
    )
)


def least(measured: dict[str, float]) -> dict[str, float]:
    """The GB/s that the memory-bound cases should reach."""
    names = list(measured)
    of_memory = names[: names.index(PEAK)]
    wanted = SHARE * measured[TRIAD]
    return {name: wanted for name in of_memory if name != TRIAD and name not in NOT_OF_MEMORY}


N = 4096  # rows and columns of the large matrices: 64 MB of float32


def triad(threads: int) -> Callable[[], object]:
    """STREAM's triad ``out = x + 2 y`` on 64 MB arrays without the library that is measured.

    NumPy lets go of the GIL, so each thread works on a part of its own, in blocks: the second of
    the two passes that NumPy needs finds its block in the cache.
    """
    x, y, out = (np.ones(N * N, dtype=np.float32) for _ in range(3))
    block = 1 << 17
    pool = ThreadPoolExecutor(threads)
    edges = [N * N * k // threads // block * block for k in range(threads)] + [N * N]

    def part(begin: int, end: int) -> None:
        for i in range(begin, end, block):
            piece = slice(i, min(i + block, end))
            np.multiply(y[piece], np.float32(2), out=out[piece])
            np.add(x[piece], out[piece], out=out[piece])

    return lambda: list(pool.map(part, edges[:-1], edges[1:]))


def memory_bound(t: Any) -> dict[str, tuple[Callable[[], object], float]]:
    """Calls and the MB that they must move."""
    f = t.nn.functional
    x, y = t.randn(N, N), t.randn(N, N)
    out = t.empty(N, N)
    small = t.randn(64, 256)
    middle, other = t.randn(512, 512, requires_grad=True), t.randn(512, 512)
    seen = middle.detach()
    weight, bias = t.ones(N), t.zeros(N)
    index = t.randint(0, N, (N,))
    table = t.randn(N, N)
    image = t.randn(64, 64, 64, 64)
    mean, var = t.zeros(64), t.ones(64)
    mb = N * N * 4 / 1e6
    recorded = t.randn(N, N, requires_grad=True)

    def backward(g: Any) -> Callable[[], object]:
        def call() -> None:
            recorded.grad = None
            g(recorded).backward(y)

        return call

    recorded_image = t.randn(64, 64, 64, 64, requires_grad=True)
    scale, shift = t.ones(64, requires_grad=True), t.zeros(64, requires_grad=True)
    classes = t.randint(0, N, (N,))
    embedded = t.randn(50000, 512, requires_grad=True)
    words, flow = t.randint(0, 50000, (8192,)), t.randn(8192, 512)
    long = t.randn(1_000_000)
    ids, rows = t.randint(0, 1_000_000, (1_000_000,)), t.randn(1000, 1000)

    places, double = t.randint(0, 1000, (1000, 1000)), t.randn(2_000_000, dtype=t.float64)
    short = t.randn(4_000_000).bfloat16()
    photos, grid = t.randn(8, 16, 128, 128), t.rand(8, 128, 128, 2) * 2 - 1

    volumes, shifts = t.randn(2, 8, 32, 32, 32), t.rand(2, 32, 32, 32, 3) * 2 - 1

    def sampled(images: Any, places: Any, mode: str) -> Callable[[], object]:
        images, places = images.clone().requires_grad_(), places.clone().requires_grad_()
        flow = t.ones(*images.shape[:2], *places.shape[1:-1])

        def call() -> None:
            images.grad = places.grad = None
            f.grid_sample(images, places, mode, align_corners=False).backward(flow)

        return call

    short_recorded, short_flow = short.clone().requires_grad_(), t.ones_like(short)

    def short_gelu_step() -> None:
        short_recorded.grad = None
        f.gelu(short_recorded).backward(short_flow)

    def batch_norm_step() -> None:
        recorded_image.grad = scale.grad = shift.grad = None
        f.batch_norm(recorded_image, mean, var, scale, shift, training=True).backward(image)

    def cross_entropy_step() -> None:
        recorded.grad = None
        f.cross_entropy(recorded, classes).backward()

    def mse_step() -> None:
        recorded.grad = None
        f.mse_loss(recorded, y).backward()

    def middle_step() -> None:
        middle.grad = None
        f.layer_norm(middle, (512,)).backward(other)

    def embedding_step() -> None:
        embedded.grad = None
        f.embedding(words, embedded).backward(flow)

    return {
        TRIAD: (triad(t.get_num_threads()), 3 * mb),
        "add into out": (lambda: t.add(x, y, alpha=2, out=out), 3 * mb),
        "add in place": (lambda: out.add_(y), 3 * mb),
        "add": (lambda: x + y, 3 * mb),
        "mul by a number": (lambda: x * 1.5, 2 * mb),
        "exp": (lambda: x.exp(), 2 * mb),
        "tanh": (lambda: x.tanh(), 2 * mb),
        "sigmoid": (lambda: x.sigmoid(), 2 * mb),
        "gelu": (lambda: f.gelu(x), 2 * mb),
        "gelu, tanh form": (lambda: f.gelu(x, approximate="tanh"), 2 * mb),
        "silu": (lambda: f.silu(x), 2 * mb),
        "relu": (lambda: x.relu(), 2 * mb),
        "sin": (lambda: x.sin(), 2 * mb),
        "cos": (lambda: x.cos(), 2 * mb),
        "erf": (lambda: x.erf(), 2 * mb),
        "pow 2.5 of abs": (lambda: x.abs().pow(2.5), 4 * mb),
        "pow 2.7 of abs": (lambda: x.abs().pow(2.7), 4 * mb),
        "log of abs": (lambda: x.abs().log(), 4 * mb),
        "softmax, rows": (lambda: x.softmax(-1), 2 * mb),
        "softmax, columns": (lambda: x.softmax(0), 2 * mb),
        "log_softmax": (lambda: x.log_softmax(-1), 2 * mb),
        "layer_norm": (lambda: f.layer_norm(x, (N,), weight, bias), 2 * mb),
        "layer_norm, with backward": (backward(lambda v: f.layer_norm(v, (N,), weight)), 7 * mb),
        "rms_norm": (lambda: f.rms_norm(x, (N,), weight), 2 * mb),
        "rms_norm, with backward": (backward(lambda v: f.rms_norm(v, (N,), weight)), 7 * mb),
        "mse_loss": (lambda: f.mse_loss(x, y), 2 * mb),
        "mse_loss, with backward": (mse_step, 5 * mb),
        "softmax, with backward": (backward(lambda v: v.softmax(-1)), 7 * mb),
        "gelu, with backward": (backward(lambda v: f.gelu(v)), 7 * mb),
        "relu, with backward": (backward(lambda v: v.relu()), 5 * mb),
        "tanh, with backward": (backward(lambda v: v.tanh()), 5 * mb),
        "sqrt of square, with backward": (backward(lambda v: v.square().sqrt()), 10 * mb),
        "batch_norm, evaluating": (lambda: f.batch_norm(image, mean, var), 2 * 67.1),
        "sum": (lambda: x.sum(), mb),
        "sum of rows": (lambda: x.sum(1), mb),
        "sum of columns": (lambda: x.sum(0), mb),
        "max of rows": (lambda: x.max(1), mb),
        "transposed copy": (lambda: x.t().contiguous(), 2 * mb),
        "NCHW to NHWC": (lambda: image.permute(0, 2, 3, 1).contiguous(), 2 * 67.1),
        "cat": (lambda: t.cat([x, y]), 4 * mb),
        "where": (lambda: t.where(x > 0, x, y), 4.25 * mb),
        "gather of rows": (lambda: table[index], 2 * mb),
        "cumsum": (lambda: x.cumsum(-1), 2 * mb),
        "dropout": (lambda: f.dropout(x, 0.1), 2 * mb),
        "to bfloat16": (lambda: x.bfloat16(), 1.5 * mb),
        "batch_norm, training, with backward": (batch_norm_step, 8 * 67.1),
        "cross_entropy, with backward": (cross_entropy_step, 3 * mb),
        "embedding of 50000x512, with backward": (embedding_step, 4 * 16.8 + 102.4),
        "variance of rows": (lambda: x.var(1), mb),
        "cumsum, columns": (lambda: x.cumsum(0), 2 * mb),
        "randn": (lambda: t.randn(N, N), mb),
        "sort of 1e6": (lambda: long.sort(), 16),
        "sort of 1e6 integers": (lambda: ids.sort(), 24),
        "unique of 1e6": (lambda: t.unique(ids), 13),
        "top 1000 of 1e6": (lambda: long.topk(1000), 4),
        "sort of 1000 rows of 1000": (lambda: rows.sort(-1), 16),
        "top 10 of 1000 rows of 1000": (lambda: rows.topk(10), 4),
        "softmax 64x256": (lambda: small.softmax(-1), 2 * 0.0655),
        "gelu 64x256": (lambda: f.gelu(small), 2 * 0.0655),
        "add 512x512": (lambda: seen + other, 3 * 1.05),
        "exp 512x512": (lambda: seen.exp(), 2 * 1.05),
        "softmax 512x512": (lambda: seen.softmax(-1), 2 * 1.05),
        "layer_norm 512x512": (lambda: f.layer_norm(seen, (512,)), 2 * 1.05),
        "sum of rows 512x512": (lambda: seen.sum(1), 1.05),
        "transposed copy 512x512": (lambda: seen.t().contiguous(), 2 * 1.05),
        "layer_norm 512x512, with backward": (middle_step, 7 * 1.05),
        "gather of elements 1000x1000": (lambda: rows.gather(1, places), 16),
        "scatter_add of elements 1000x1000": (lambda: rows.scatter_add(1, places, rows), 20),
        "erf of 2e6, float64": (lambda: double.erf(), 32),
        "atan2 of 2e6, float64": (lambda: t.atan2(double, double), 32),
        "gelu of 4e6, bfloat16": (lambda: f.gelu(short), 16),
        "softmax of 4000x1000, bfloat16, columns": (lambda: short.view(4000, 1000).softmax(0), 16),
        "gelu of 4e6, bfloat16, with backward": (short_gelu_step, 40),
        "grid_sample 8x16x128x128": (
            lambda: f.grid_sample(photos, grid, align_corners=False),
            17.8,
        ),
        "grid_sample 8x16x128x128, with backward": (sampled(photos, grid, "bilinear"), 44.1),
        "grid_sample 8x16x128x128, bicubic, with backward": (
            sampled(photos, grid, "bicubic"),
            44.1,
        ),
        "grid_sample 2x8x32x32x32, with backward": (sampled(volumes, shifts, "bilinear"), 12.1),
    }


def arithmetic(t: Any) -> dict[str, tuple[Callable[[], object], float]]:
    """Calls and their GFLOP."""
    f = t.nn.functional
    a, b = t.randn(2048, 2048), t.randn(2048, 2048)
    s = t.randn(128, 128)
    batch = t.randn(64, 128, 128)
    h, w, bias = t.randn(512, 1024), t.randn(4096, 1024), t.randn(4096)
    ah, bh = t.randn(512, 512).bfloat16(), t.randn(512, 512).bfloat16()
    ad, bd = t.randn(1024, 1024, dtype=t.float64), t.randn(1024, 1024, dtype=t.float64)
    image, kernel = t.randn(16, 64, 56, 56), t.randn(64, 64, 3, 3)
    q = t.randn(4, 8, 512, 64)
    conv = 2 * 16 * 64 * 64 * 9 * 56 * 56 / 1e9
    leaf, filters = t.randn(16, 64, 56, 56, requires_grad=True), kernel.clone().requires_grad_()

    rows, weight = t.randn(512, 384, requires_grad=True), t.randn(1152, 384, requires_grad=True)
    slope = t.randn(512, 1152)
    heads = [t.randn(4, 8, 512, 64, requires_grad=True) for _ in range(3)]
    out_slope = t.randn(4, 8, 512, 64)
    scores = 2 * 4 * 8 * 512 * 512 * 64 / 2 / 1e9  # one product of causal attention

    def linear_step() -> None:
        t.autograd.grad(f.linear(rows, weight), (rows, weight), slope)

    def attention_step() -> None:
        y = f.scaled_dot_product_attention(*heads, is_causal=True)
        t.autograd.grad(y, heads, out_slope)

    def conv_step() -> None:
        leaf.grad = filters.grad = None
        f.conv2d(leaf, filters, padding=1).sum().backward()

    last, wide = image.to(memory_format=t.channels_last), t.randn(256, 64, 1, 1)
    taps, large, line = t.randn(64, 1, 7, 7), t.randn(64, 3, 7, 7), t.randn(64, 64, 3)
    photo, sound = t.randn(4, 3, 112, 112), t.randn(16, 64, 256)
    volume, cube = t.randn(2, 16, 16, 16, 16), t.randn(16, 16, 3, 3, 3)
    lines, wave = t.randn(256, 1024), t.randn(2**20)
    systems, sides = t.randn(64, 8, 8) + 8 * t.eye(8), t.randn(64, 8, 2)
    even, positive = b[:64, :64] + b[:64, :64].mT, a[:512] @ a[:512].mT

    return {
        PEAK: (lambda: a @ b, 2 * 2.048**3),
        "matmul 128": (lambda: s @ s, 2 * 0.128**3),
        "bmm 64x128": (lambda: batch @ batch, 64 * 2 * 0.128**3),
        "linear 512x1024 to 4096": (lambda: f.linear(h, w, bias), 2 * 0.512 * 1.024 * 4.096),
        "linear 4x1024 to 4096": (lambda: f.linear(h[:4], w, bias), 2 * 0.004 * 1.024 * 4.096),
        "matmul 512 bfloat16": (lambda: ah @ bh, 2 * 0.512**3),
        "matmul 1024 float64": (lambda: ad @ bd, 2 * 1.024**3),
        "conv2d 3x3, 64 channels, 56x56": (lambda: f.conv2d(image, kernel, padding=1), conv),
        "conv2d, with backward": (conv_step, 3 * conv),
        "conv2d 3x3, channels last": (lambda: f.conv2d(last, kernel, padding=1), conv),
        "conv2d 3x3, stride 2": (lambda: f.conv2d(image, kernel, None, 2, 1), conv / 4),
        "conv2d 1x1, 64 to 256 channels": (lambda: f.conv2d(image, wide), conv * 4 / 9),
        "conv2d 7x7, depthwise": (
            lambda: f.conv2d(image, taps, padding=3, groups=64),
            conv * 49 / 9 / 64,
        ),
        "conv2d 7x7, stride 2, 3 to 64 channels": (
            lambda: f.conv2d(photo, large, None, 2, 3),
            2 * 4 * 64 * 3 * 49 * 56 * 56 / 1e9,
        ),
        "conv1d 3, 64 channels": (
            lambda: f.conv1d(sound, line, padding=1),
            2 * 16 * 64 * 64 * 3 * 256 / 1e9,
        ),
        "conv3d 3x3x3, 16 channels": (
            lambda: f.conv3d(volume, cube, padding=1),
            2 * 2 * 16 * 16 * 27 * 16**3 / 1e9,
        ),
        "conv_transpose2d 3x3, stride 2": (
            lambda: f.conv_transpose2d(image, kernel, None, 2, 1),
            conv,
        ),
        "attention 512, causal": (
            lambda: f.scaled_dot_product_attention(q, q, q, is_causal=True),
            2 * scores,
        ),
        "attention 512, causal, with backward": (attention_step, 7 * scores),
        "linear 384 to 1152, with backward": (linear_step, 3 * 2 * 0.512 * 0.384 * 1.152),
        "fft of 256 lines of 1024": (lambda: t.fft.fft(lines), 256 * 1024 * 5 * 10 / 1e9),
        "rfft of 2^20": (lambda: t.fft.rfft(wave), 2**20 * 2.5 * 20 / 1e9),
        "eigh 64x64": (lambda: t.linalg.eigh(even), 9 * 64**3 / 1e9),
        "solve 64 systems of 8": (lambda: t.linalg.solve(systems, sides), 64 * 2 / 3 * 8**3 / 1e9),
        "cholesky 512x512": (lambda: t.linalg.cholesky(positive), 512**3 / 3e9),
    }


# Parts of the memory-bound and of the arithmetic cases, each beside its limit once more.
PARTS_OF_MEMORY, PARTS_OF_ARITHMETIC = 6, 2
PARTS = PARTS_OF_MEMORY + PARTS_OF_ARITHMETIC


def run(t: Any, part: int) -> dict[str, float]:
    """GB/s and GF/s of a part of the cases and of their limit."""
    t.manual_seed(0)
    if part < PARTS_OF_MEMORY:
        limit, scale, parts, cases = TRIAD, 1.0, PARTS_OF_MEMORY, memory_bound(t)
    else:
        part -= PARTS_OF_MEMORY
        limit, scale, parts, cases = PEAK, 1e3, PARTS_OF_ARITHMETIC, arithmetic(t)
    names = [name for name in cases if name != limit]
    each = -(-len(names) // parts)
    found = {}
    for name in [limit, *names[part * each : (part + 1) * each]]:
        call, work = cases[name]
        found[name] = scale * work / milliseconds(call, seconds=0.25)
    return found
