"""What ragged tensors refuse, and what the messages say."""

from __future__ import annotations

import io
import pickle

import pytest

import clew

X = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(4, 3)])
V = clew.ones(6, 3)
FROM = clew.nested.nested_tensor_from_jagged
N = clew.nested


def J(rows):
    return N.nested_tensor(rows, layout=clew.jagged)


def t(*numbers):
    return clew.tensor(list(numbers))


BAD = [
    (lambda: FROM(V, t(0, 4, 2, 6)), RuntimeError, "must not decrease; got 4 before 2"),
    (lambda: FROM(V, t(1, 4, 6)), RuntimeError, r"offsets\[0\] must be 0"),
    (lambda: FROM(V, t(0, 4, 5)), RuntimeError, r"offsets\[-1\] must be the size of values .* 6"),
    (lambda: FROM(V, t(0.0, 6.0)), RuntimeError, "int64 or int32; got clew.float32"),
    (lambda: FROM(V, clew.zeros(1, 2).long()), RuntimeError, "must be a vector"),
    (lambda: FROM(V, t().long()), RuntimeError, "at least one element"),
    (lambda: FROM(V, t(0, 6).to("meta")), RuntimeError, "offsets must be on the CPU"),
    (lambda: FROM(V, [0, 6]), TypeError, "offsets must be a tensor"),
    (lambda: FROM(V), RuntimeError, "offsets or lengths must be given"),
    (lambda: FROM(V, lengths=t(2, 3)), RuntimeError, "must add up to .* 6; got 5"),
    (lambda: FROM(V, lengths=t(7, -1)), RuntimeError, "must not be negative"),
    (lambda: FROM(V, t(0, 4, 6), t(1, 2, 3)), RuntimeError, "one element less than offsets"),
    (lambda: FROM(V, t(0, 4, 6), t(1, 3)), RuntimeError, "row 1 begins at 4, has length 3"),
    (lambda: FROM(V, t(0, 6), jagged_dim=3), RuntimeError, r"jagged_dim must be in \[1, 2\]"),
    (lambda: FROM(V, t(0, 2, 6), max_seqlen=3), RuntimeError, "max_seqlen must be 4"),
    (lambda: FROM(V, t(0, 2, 6), min_seqlen=3), RuntimeError, "min_seqlen must be 2"),
    (lambda: FROM(X, t(0, 6)), TypeError, "values must be a dense tensor"),
    (lambda: N.nested_tensor([]), ValueError, "at least one tensor"),
    (lambda: N.nested_tensor(V), TypeError, "list of tensors"),
    (lambda: N.nested_tensor(X), TypeError, "nested tensor already"),
    (lambda: N.nested_tensor([V, V[0]]), RuntimeError, "same number of dims; got 2 in row 0"),
    (lambda: N.nested_tensor([V, V.double()]), RuntimeError, "same dtype"),
    (lambda: J([V, clew.ones(2, 4)]), RuntimeError, r"one dim only.*; use layout=clew.strided"),
    (lambda: J([1.0, 2.0]), RuntimeError, "at least one dim"),
    (lambda: N.nested_tensor([V.to_sparse()]), TypeError, "row 0 is of clew.sparse_coo"),
    (lambda: N.nested_tensor([V], layout=clew.sparse_coo), NotImplementedError, "clew.jagged or"),
    (lambda: N.narrow(V, 1, 0, 1, layout=clew.strided), NotImplementedError, "clew.jagged; got"),
    (lambda: N.nested_tensor([V], device="meta"), NotImplementedError, "on the CPU"),
    (lambda: N.as_nested_tensor(clew.ones(2)), RuntimeError, "at least two dims"),
    (lambda: N.narrow(V, 0, 0, 1), RuntimeError, "dim must be 1"),
    (lambda: N.narrow(V, 1, t(0, 1), 1), RuntimeError, "start must have 6 elements"),
    (lambda: N.narrow(V, 1, 2, 2), RuntimeError, "parts of rows of 3 elements"),
    (lambda: N.narrow(X, 1, 0, 1), TypeError, "dense tensor"),
    (lambda: N.masked_select(V, V), RuntimeError, "dtype bool"),
    (lambda: N.masked_select(X, X > 0), RuntimeError, "dense tensor of at least one dim"),
    (lambda: N.to_padded_tensor(V, 0.0), RuntimeError, "needs no padding"),
    (lambda: X.to_padded_tensor(0.0, (2, 4, 2)), RuntimeError, r"at least \[2, 0, 3\]"),
    (lambda: X + clew.ones(2, 3, 3), RuntimeError, "that of the longest row, 4"),
    (lambda: X + clew.ones(2), RuntimeError, "broadcastable"),
    (lambda: X + N.nested_tensor([V[:4], V[:2]]), RuntimeError, r"same lengths.*\[0, 4, 6\]"),
    (lambda: X + X.sum(2), RuntimeError, "same number of dims"),
    (lambda: clew.ones(2, 4, 3).add_(X), RuntimeError, "written into a dense"),
    (lambda: X.sum(0), RuntimeError, r"pass dim=\(0, 1\)"),
    (lambda: X.sum(3), IndexError, r"dim must be in \[-3, 2\]"),
    (lambda: X.sum((1, 1)), RuntimeError, "named twice"),
    (lambda: X.unbind(1), RuntimeError, "dim must be 0"),
    (lambda: X.numpy(), NotImplementedError, r"numpy: .*to_padded_tensor.*unbind"),
    (lambda: X.tolist(), NotImplementedError, "tolist: there is no rule"),
    (lambda: clew.fft.fft(X), NotImplementedError, "no rule for ragged tensors"),
    (lambda: clew.max(X, X, X), TypeError, "no further arguments"),
    (lambda: X.min(X, keepdim=True), TypeError, "no further arguments"),
    (lambda: clew.linalg.matrix_exp(X), RuntimeError, "square matrices"),
    (lambda: clew.add(X, X, out=V), NotImplementedError, "out= is not offered"),
    (lambda: X + V.to_sparse(), NotImplementedError, "no rule"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


def test_writing_to_rows_with_gaps():
    x = N.narrow(V.clone(), 1, 1, clew.full((6,), 2))
    x.mul_(3)
    with pytest.raises(RuntimeError, match="call .contiguous"):
        x.mul_(x.contiguous())
    x.add_(x)  # the same places
    assert [r.tolist() for r in x.unbind()] == [(6 * V[i, 1:3]).tolist() for i in range(6)]


@pytest.mark.parametrize("make", [clew.tensor, clew.Tensor])
def test_placeholders_are_not_taken_for_data(make):
    sparse = clew.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))
    for x in (N.nested_tensor([clew.ones(2), clew.ones(3)]), sparse):
        with pytest.raises(NotImplementedError, match=r"(?i)tensor: there is no rule for"):
            make(x)
        assert clew.as_tensor(x) is x


DAMAGED = [
    (V, t(0, 7, 6), None, 1),
    (V, t(0, 4, 6), None, 0),
    (V, t(0, 4, 6), None, "a"),
    (V, t(0, 4, 6), None, None),
    (V, t(0, 4, 6), [1, 2], 1),
    (V, t(0, 4, 6), t(9, 9), 1),
    (V, t(0, 4, 6), None),
    (V, V, None, 1),
    (V, t(0, 2**62, 6), t(2**62, 1), 1),
    (V,),
]


@pytest.mark.parametrize("parts", DAMAGED)
def test_damaged_files(parts, monkeypatch):
    monkeypatch.setattr(type(X), "_saved_parts", lambda self: ("jagged", parts))
    file = io.BytesIO()
    clew.save(X, file)
    with pytest.raises(pickle.UnpicklingError, match="sparse tensor"):
        clew.load(io.BytesIO(file.getvalue()))


# Arguments of the wrong kind are refused in the words of the dense function, not in Python's about
# what lies behind it.
WRONG_KINDS = [
    (lambda: clew.topk(X, dim=1), "missing required argument 'k'"),
    (lambda: X.mean(1, 2), "keepdim must be a bool"),
    (lambda: X.std(1, 2), "unbiased must be a bool"),
    (lambda: X.sum(2.0), "dim must be an int; got 2.0"),
    (lambda: X.transpose(1.0, 2), "dim must be an int; got 1.0"),
    (lambda: X.sum(bogus=1), "unexpected keyword argument 'bogus'"),
    (lambda: X.matmul(3), "'other' .* must be Tensor"),
    (lambda: X.prelu(3), "'weight' .* must be Tensor"),
    (lambda: X.equal(3), "both must be tensors; got NestedTensor, int"),
    (lambda: X.gather(1), "missing required argument 'index'"),
    (lambda: X.float(3), r"^float\(\)"),
    (lambda: clew.split(clew.ones(3), X), "'split_si"),
    (lambda: clew.unique(clew.ones(3), X), "'sorted' .* must be bool"),
]


@pytest.mark.parametrize("case", range(len(WRONG_KINDS)))
def test_arguments_of_the_wrong_kind(case):
    call, message = WRONG_KINDS[case]
    with pytest.raises(TypeError, match=message):
        call()


def test_tensors_where_one_is_asked_for():
    with pytest.raises(NotImplementedError, match="exp: there is no rule for ragged tensors"):
        clew.exp([X])


def test_rows_are_named_by_integers():
    x = J([clew.ones(2), clew.zeros(3)])
    with pytest.raises(IndexError, match="must be integers; got float32"):
        x[clew.tensor([0.0, 1.0])]
    with pytest.raises(IndexError, match=r"vector in \[-2, 1\]; got \[0, 2\]"):
        x[[0, 2]]
    assert x[[]].size(0) == 0
