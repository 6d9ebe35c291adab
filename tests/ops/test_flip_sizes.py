"""flip of rows of any length, of dims that are turned as one, of parts."""

import numpy as np
import pytest

import clew

DTYPES = [clew.uint8, clew.int16, clew.bfloat16, clew.float32, clew.float64, clew.complex128]


def bits(x):
    return x.view(clew.uint8 if x.element_size() == 1 else clew.int16).numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 7, 15, 16, 17, 63, 64, 65, 1000, 40001, 300007])
def test_rows(length, dtype):
    x = clew.arange(length).to(dtype)
    places = clew.arange(length - 1, -1, -1)
    assert np.array_equal(bits(x.flip(0)), bits(x[places]))
    y = clew.cat([x, x + 1]).reshape(2, length)
    assert np.array_equal(bits(y.flip(1)), bits(y[:, places]))
    assert np.array_equal(bits(y.flip(0, 1)), bits(y[[1, 0]][:, places]))


@pytest.mark.parametrize("dtype", [clew.uint8, clew.float32])
@pytest.mark.parametrize("dims", [(2, 3), (1, 2, 3), (0, 3), (1, 3), (0, 1, 2, 3), (1, 2), (3,)])
def test_dims(dims, dtype):
    x = clew.randint(0, 200, (3, 4, 17, 33)).to(dtype)
    for y in (x, x.transpose(1, 3), x.contiguous(memory_format=clew.channels_last), x[:, 1:, ::2]):
        assert np.array_equal(y.flip(dims).numpy(), np.flip(y.numpy(), dims))
    one = x[:, :, :1]
    assert np.array_equal(one.flip(dims).numpy(), np.flip(one.numpy(), dims))


def test_one_thread_and_two_agree():
    before, x = clew.get_num_threads(), clew.randn(200_001)
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            assert np.array_equal(x.flip(0).numpy(), x.numpy()[::-1])
    finally:
        clew.set_num_threads(before)
