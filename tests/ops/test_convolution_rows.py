"""Float32 convolutions along rows: depthwise of any stride, long lines, few output channels."""

from __future__ import annotations

import pytest

import clew

# Batch and channels, output channels, groups, sizes; then kernel, stride, padding, dilation by dim.
CASES = {
    "a long line of one channel": ((2, 1), 1, 1, (4000,), (64,), (1,), (32,), (1,)),
    "long depthwise lines": ((1, 5), 5, 5, (1500,), (31,), (1,), (0,), (1,)),
    "long strided lines": ((1, 3), 3, 3, (3001,), (9,), (3,), (4,), (2,)),
    "a line for few outputs": ((1, 16), 2, 1, (1300,), (31,), (1,), (15,), (1,)),
    "lines of many outputs": ((1, 1), 20, 1, (1200,), (10,), (5,), (0,), (1,)),
    "depthwise, every second": ((2, 5), 5, 5, (28, 29), (3, 3), (2, 2), (1, 1), (1, 1)),
    "depthwise, every third": ((1, 16), 16, 16, (30, 31), (5, 5), (3, 3), (2, 2), (1, 1)),
    "depthwise, uneven": ((1, 4), 4, 4, (40, 33), (4, 3), (2, 3), (3, 0), (2, 1)),
    "depthwise, gaps": ((2, 3), 3, 3, (33, 34), (2, 2), (4, 4), (0, 1), (1, 1)),
    "depthwise, more rows than a part": ((1, 2), 2, 2, (150, 20), (3, 3), (2, 1), (1, 1), (1, 1)),
    "depthwise, wide padding": ((1, 3), 3, 3, (16, 17), (3, 3), (2, 2), (7, 5), (1, 1)),
    "depthwise volumes": ((1, 3), 3, 3, (7, 9, 20), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1)),
    "one output channel": ((2, 33), 1, 1, (20, 75), (3, 3), (1, 1), (1, 1), (1, 1)),
    "two output channels": ((1, 9), 2, 1, (5, 12), (5, 3), (1, 1), (2, 1), (1, 1)),
    "three output channels": ((1, 20), 3, 1, (17, 31), (3, 3), (1, 1), (0, 0), (2, 2)),
    "four output channels": ((3, 8), 4, 1, (13, 129), (1, 7), (1, 1), (0, 3), (1, 1)),
}


def run(case, dtype, spoil=None):
    """The result, all gradients, and the transposed map; `spoil` changes x, w and the seed."""
    (n, channels), out, groups, sizes, kernel, stride, padding, dilation = CASES[case]
    nd = len(sizes)
    clew.manual_seed(0)
    x = clew.randn(n, channels, *sizes)
    w, b = clew.randn(out, channels // groups, *kernel), clew.randn(out)
    forward = getattr(clew.nn.functional, f"conv{nd}d")
    back = getattr(clew.nn.functional, f"conv_transpose{nd}d")
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    seed = clew.randn(forward(x.double(), w.double(), **options).shape)
    if spoil:
        spoil(x, w, seed)
    leaves = [t.to(dtype).requires_grad_() for t in (x, w, b)]
    y = forward(*leaves, **options)
    seed = seed.to(dtype)
    grads = clew.autograd.grad(y, leaves, seed)
    more = b[:1].to(dtype).expand(channels)
    return [y.detach(), *grads, back(seed, leaves[1].detach(), more, **options)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_as_float64(case, threads):
    before = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:
        narrow = run(case, clew.float32)
    finally:
        clew.set_num_threads(before)
    for got, want in zip(narrow, run(case, clew.float64)):
        assert got.shape == want.shape
        assert (got - want).abs().max() <= 4e-6 * want.abs().max()


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("depthwise")])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("which", ["w", "seed"])
def test_gradients_of_inputs_are_spoilt_only_where_they_meet_what_is_not_finite(case, value, which):
    def spoil(x, w, seed):
        {"w": w, "seed": seed}[which].flatten()[0] = value

    narrow, wide = run(case, clew.float32, spoil), run(case, clew.float64, spoil)
    for i in (1, 4):  # the gradient of x, and the transposed map
        finite = wide[i].isfinite()
        assert clew.equal(narrow[i].isfinite(), finite)
        largest = wide[i][finite].abs().max()
        assert (narrow[i][finite] - wide[i][finite]).abs().max() <= 1e-5 * largest
