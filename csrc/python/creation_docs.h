// Documentation of the creation functions, in the form that CPython reads signatures from.
// May include: base/text.h.
// Invariant: each text opens with "name(signature)\n--\n\n"; its example runs as it stands.
#pragma once
#include "base/text.h"

namespace clew::python::docs {

// What several functions say of their options.
inline constexpr Text out_option = "    out: a tensor to write into instead of making one.\n";
inline constexpr Text dtype_default =
    "    dtype: element type; the default dtype when not given.\n";
inline constexpr Text dtype_of_values =
    "    dtype: element type; found from the values when not given.\n";
inline constexpr Text dtype_of_input = "    dtype: element type; input's when not given.\n";
inline constexpr Text device_and_grad =
    "    device: \"cpu\" or \"meta\" (shape only).\n"
    "    requires_grad: whether operations on the result are recorded.\n";
inline constexpr Text order_option = "    memory_format: order of the dims in memory.\n";
inline constexpr Text layout_options =
    "    layout: strided; the sparse ones have functions of their own.\n"
    "    pin_memory: accepted without an effect.\n";

constexpr const char* zeros = joined<
    "zeros(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False)\n"
    R"(--

Makes a tensor of zeros.

Args:
    size: the shape, as ints or as one tuple.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> clew.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
)">;

constexpr const char* ones = joined<
    "ones(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False)\n"
    R"(--

Makes a tensor of ones.

Args:
    size: the shape, as ints or as one tuple.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> clew.ones(2)
    tensor([1., 1.])
)">;

constexpr const char* empty = joined<
    "empty(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False, memory_format=None)\n"
    R"(--

Makes a tensor whose elements are whatever the memory held.

Args:
    size: the shape, as ints or as one tuple.
)",
    out_option, dtype_default, device_and_grad, order_option, layout_options, R"(
Returns:
    An uninitialised tensor of shape size.

Example:
    >>> clew.empty(2, 3).shape
    clew.Size([2, 3])
)">;

constexpr const char* full = joined<
    "full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Makes a tensor that holds one value everywhere.

Args:
    size: the shape, a tuple.
    fill_value: a number; it decides the dtype when none is given.
)",
    out_option, dtype_of_values, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> clew.full((2,), 7)
    tensor([7, 7])
)">;

constexpr const char* empty_strided = joined<
    "empty_strided(size, stride, *, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Makes an uninitialised tensor with given strides.

Args:
    size: the shape, a tuple.
    stride: for each dim the step in memory, in elements.
)",
    dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> clew.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
)">;

constexpr const char* zeros_like = joined<
    "zeros_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False, memory_format=None)\n"
    R"(--

Makes a tensor of zeros with the shape, dtype and device of another.

Args:
    input: the tensor to be like.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.zeros_like(clew.tensor([1, 2]))
    tensor([0, 0])
)">;

constexpr const char* ones_like = joined<
    "ones_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False, memory_format=None)\n"
    R"(--

Makes a tensor of ones with the shape, dtype and device of another.

Args:
    input: the tensor to be like.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.ones_like(clew.tensor([1.5, 2.5]))
    tensor([1., 1.])
)">;

constexpr const char* empty_like = joined<
    "empty_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False, memory_format=None)\n"
    R"(--

Makes a tensor of uninitialised elements with the shape, dtype and device of another.

Args:
    input: the tensor to be like.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.empty_like(clew.ones(2, 3)).shape
    clew.Size([2, 3])
)">;

constexpr const char* full_like = joined<
    "full_like(input, fill_value, *, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False, memory_format=None)\n"
    R"(--

Makes a tensor that holds one value, with the shape, dtype and device of another.

Args:
    input: the tensor to be like.
    fill_value: a number.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.full_like(clew.zeros(2), 3)
    tensor([3., 3.])
)">;

constexpr const char* arange = joined<
    "arange(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, "
    "device=None, pin_memory=False, requires_grad=False)\n"
    R"(--

Makes the numbers start, start + step, ... that lie before end.

Args:
    start: the first number; a lone argument is the end.
    end: the bound, left out.
    step: not zero.
)",
    out_option, dtype_of_values, device_and_grad, layout_options, R"(
Returns:
    A one-dimensional tensor of ceil((end - start) / step) elements.

Example:
    >>> clew.arange(1, 4)
    tensor([1, 2, 3])
)">;

constexpr const char* range = joined<
    "range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, "
    "device=None, pin_memory=False, requires_grad=False)\n"
    R"(--

Makes the numbers start, start + step, ... up to end, which is included; prefer arange.

Args:
    start: the first number.
    end: the last number.
    step: not zero.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A one-dimensional tensor of floor((end - start) / step) + 1 elements.

Example:
    >>> clew.range(1, 3)  # warns
    tensor([1., 2., 3.])
)">;

constexpr const char* linspace = joined<
    "linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Makes equally spaced numbers, both ends included.

Args:
    start: the first number.
    end: the last number.
    steps: how many.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A one-dimensional tensor of steps elements.

Example:
    >>> clew.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
)">;

constexpr const char* logspace = joined<
    "logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, "
    "device=None, pin_memory=False, requires_grad=False)\n"
    R"(--

Makes powers of base with equally spaced exponents.

Args:
    start: the first exponent.
    end: the last exponent.
    steps: how many.
    base: what is raised.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A one-dimensional tensor of steps elements.

Example:
    >>> clew.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
)">;

constexpr const char* eye = joined<
    "eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Makes a matrix with ones on the diagonal and zeros elsewhere.

Args:
    n: rows.
    m: columns; as many as rows when not given.
)",
    out_option, dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor [n, m].

Example:
    >>> clew.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
)">;

constexpr const char* tril_indices = joined<
    "tril_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, "
    "pin_memory=False)\n"
    R"(--

Lists the places of the lower triangle of a matrix, row by row.

Args:
    row: rows of the matrix.
    col: columns of the matrix.
    offset: which diagonal bounds the triangle; 0 is the main one.
    dtype: element type, int64 at first.
    device: "cpu" or "meta" (shape only).
)",
    layout_options, R"(
Returns:
    A tensor [2, count]: row numbers and column numbers.

Example:
    >>> clew.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
)">;

constexpr const char* triu_indices = joined<
    "triu_indices(row, col, offset=0, *, dtype=None, layout=None, device=None, "
    "pin_memory=False)\n"
    R"(--

Lists the places of the upper triangle of a matrix, row by row.

Args:
    row: rows of the matrix.
    col: columns of the matrix.
    offset: which diagonal bounds the triangle; 0 is the main one.
    dtype: element type, int64 at first.
    device: "cpu" or "meta" (shape only).
)",
    layout_options, R"(
Returns:
    A tensor [2, count]: row numbers and column numbers.

Example:
    >>> clew.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
)">;

constexpr const char* tensor = joined<
    "tensor(data, *, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False)\n"
    R"(--

Makes a tensor with a copy of data.

Args:
    data: a number, nested sequences of numbers, a NumPy array or a tensor.
)",
    dtype_of_values, device_and_grad, layout_options, R"(
Returns:
    A new leaf tensor.

Example:
    >>> clew.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
)">;

constexpr const char* scalar_tensor = joined<
    "scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, "
    "requires_grad=False)\n"
    R"(--

Makes a tensor without dims that holds a number.

Args:
    s: the number.
)",
    dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape ().

Example:
    >>> clew.scalar_tensor(3)
    tensor(3.)
)">;

constexpr const char* as_tensor = joined<
    "as_tensor(data, dtype=None, device=None)\n"
    R"(--

Makes a tensor of data, sharing memory and history where that is possible.

Args:
    data: what tensor() takes.
)",
    dtype_of_values, R"(    device: "cpu" or "meta" (shape only).

Returns:
    data itself when it is a fitting tensor, else a tensor that shares or copies.

Example:
    >>> x = clew.ones(2)
    >>> clew.as_tensor(x) is x
    True
)">;

constexpr const char* frombuffer =
    "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n"
    R"(--

Makes a tensor over the memory of an object with the buffer protocol.

Args:
    buffer: bytearray, memoryview, array ...; it is kept alive.
    dtype: how its bytes are read.
    count: number of elements; all that fit when negative.
    offset: bytes to skip.
    requires_grad: whether operations on the result are recorded.

Returns:
    A one-dimensional tensor that shares the memory.

Example:
    >>> clew.frombuffer(bytearray(b"ab"), dtype=clew.uint8)
    tensor([97, 98], dtype=clew.uint8)
)";

constexpr const char* from_numpy =
    "from_numpy(ndarray, /)\n"
    R"(--

Makes a tensor that shares a NumPy array's memory.

Args:
    ndarray: an array with a dtype that tensors have and without negative strides.

Returns:
    A tensor of the array's shape; writing to one shows in the other.

Example:
    >>> import numpy as np
    >>> clew.from_numpy(np.array([1, 2]))
    tensor([1, 2])
)";

constexpr const char* from_dlpack =
    "from_dlpack(ext_tensor, *, device=None, copy=None)\n"
    R"(--

Makes a tensor that shares the memory of another library's tensor.

Args:
    ext_tensor: an object with __dlpack__, or a DLPack capsule.
    device: the CPU, if given.
    copy: True copies the elements.

Returns:
    A tensor; writing to one shows in the other unless copied.

Example:
    >>> import numpy as np
    >>> clew.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
)";

constexpr const char* rand = joined<
    "rand(*size, out=None, generator=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Draws numbers evenly from [0, 1).

Args:
    size: the shape, as ints or as one tuple.
)",
    out_option,
    R"(    generator: where the random numbers come from; the default generator when not given.
)",
    dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> g = clew.Generator().manual_seed(0)
    >>> clew.rand(2, generator=g)
    tensor([0.4963, 0.7682])
)">;

constexpr const char* randn = joined<
    "randn(*size, out=None, generator=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Draws numbers from the normal distribution with mean 0 and variance 1.

Args:
    size: the shape, as ints or as one tuple.
)",
    out_option,
    R"(    generator: where the random numbers come from; the default generator when not given.
)",
    dtype_default, device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> g = clew.Generator().manual_seed(0)
    >>> clew.randn(2, generator=g)
    tensor([ 1.5410, -0.2934])
)">;

constexpr const char* rand_like = joined<
    "rand_like(input, *, generator=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False, memory_format=None)\n"
    R"(--

Draws numbers evenly from [0, 1) into a tensor like another.

Args:
    input: the tensor to be like.
    generator: where the random numbers come from; the default generator when not given.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.rand_like(clew.ones(2, 3)).shape
    clew.Size([2, 3])
)">;

constexpr const char* randn_like = joined<
    "randn_like(input, *, generator=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False, memory_format=None)\n"
    R"(--

Draws standard normal numbers into a tensor like another.

Args:
    input: the tensor to be like.
    generator: where the random numbers come from; the default generator when not given.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.randn_like(clew.ones(2, 3)).shape
    clew.Size([2, 3])
)">;

constexpr const char* randint = joined<
    "randint(low=0, high=None, size=None, *, generator=None, out=None, dtype=None, "
    "layout=None, device=None, pin_memory=False, requires_grad=False)\n"
    R"(--

Draws whole numbers evenly from [low, high).

Args:
    low: the smallest; with two arguments they are high and size.
    high: the bound, left out.
    size: the shape, a tuple.
    generator: where the random numbers come from; the default generator when not given.
)",
    out_option, R"(    dtype: element type, int64 at first.
)",
    device_and_grad, layout_options, R"(
Returns:
    A tensor of shape size.

Example:
    >>> g = clew.Generator().manual_seed(0)
    >>> clew.randint(10, (3,), generator=g)
    tensor([4, 9, 3])
)">;

constexpr const char* randint_like = joined<
    "randint_like(input, low=0, high=None, *, generator=None, dtype=None, "
    "layout=None, device=None, pin_memory=False, requires_grad=False, "
    "memory_format=None)\n"
    R"(--

Draws whole numbers evenly from [low, high) into a tensor like another.

Args:
    input: the tensor to be like.
    low: the smallest; a lone number is high.
    high: the bound, left out.
    generator: where the random numbers come from; the default generator when not given.
)",
    dtype_of_input, device_and_grad, order_option, layout_options, R"(
Returns:
    A tensor of input's shape.

Example:
    >>> clew.randint_like(clew.zeros(2), 1)
    tensor([0., 0.])
)">;

constexpr const char* randperm = joined<
    "randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, "
    "pin_memory=False, requires_grad=False)\n"
    R"(--

Draws an order of the numbers 0 to n - 1.

Args:
    n: how many.
    generator: where the random numbers come from; the default generator when not given.
)",
    out_option, R"(    dtype: element type, int64 at first.
)",
    device_and_grad, layout_options, R"(
Returns:
    A one-dimensional tensor of n elements.

Example:
    >>> g = clew.Generator().manual_seed(0)
    >>> clew.randperm(4, generator=g)
    tensor([0, 1, 3, 2])
)">;

}  // namespace clew::python::docs
