"""Odd control flow: an export is right for inputs that take every branch, or says what is not."""

from __future__ import annotations

import io
import warnings

import numpy as np
import odd_models as odd
import pytest
from test_kept_python import agree, leaves

import clew
from clew.export import ExportError, export, load, save

# What cannot be kept, and the line that the error names.
REFUSED = {
    "Property": "return 1 if self.gain.sum",
    "Recursion": "if x.abs.*write it as a loop",
    "DictOfStates": "the string 'even' in one branch.*key = ",
    "Sorted": "values = sorted",
    "TryNan": "ValueError is raised at .*if x.sum.*the `try` at",
    "Strings": "'mode' is the string 'tanh'.*give it a value of one kind",
}
# A number in an f-string becomes a constant. The comparison finds it, without a line, where one of
# the further examples gives another text, as it does for these; docs/export.md names the limit.
COMPARED = {"FString"}
EXAMPLES = ((4, 0.0), (3, 2.0))


def inputs():
    clew.manual_seed(11)
    return [x for _ in range(3) for (x,) in odd.rows(*odd.SPREAD)]


def made(name, example=EXAMPLES[0]):
    clew.manual_seed(3)
    model = getattr(odd, name)().eval()
    n, shift = example
    return model, (clew.randn(n, 3) + shift,), ({0: odd.B},)


def program_of(model, example, shapes):
    file = io.BytesIO()
    save(export(model, example, dynamic_shapes=shapes), file)
    return load(io.BytesIO(file.getvalue())).module()


KEPT = [c.__name__ for c in odd.ODD if c.__name__ not in {*REFUSED, *COMPARED}]


def test_there_are_many():
    assert len(odd.ODD) >= 35 and len(KEPT) >= 24
    assert {*REFUSED, *COMPARED} <= {c.__name__ for c in odd.ODD}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", KEPT)
def test_kept_for_every_branch(name, example):
    model, args, shapes = made(name, example)
    runs = [program_of(model, args, shapes)]
    try:
        import onnxruntime
    except ImportError:
        pass
    else:
        with warnings.catch_warnings():
            # Of asserts and of whole numbers that Python compares; the results are compared here.
            warnings.filterwarnings("ignore", message="onnx.export: the program relies")
            proto = clew.onnx.export(model, args, dynamic_shapes=shapes).model_proto
        data = proto.SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        (given,) = [i.name for i in session.get_inputs()]
        runs.append(lambda x: session.run(None, {given: x.numpy()}))
        runs.append(clew.onnx.load(io.BytesIO(data)))
    for x in inputs():
        with clew.no_grad():
            expected = leaves(model(x.clone()))
            for run in runs:
                agree(expected, leaves(run(x.clone())))


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_line(name, example):
    model, args, shapes = made(name, example)
    with pytest.raises(ExportError, match=rf"(?s){REFUSED[name]}") as caught:
        export(model, args, dynamic_shapes=shapes)
    assert "odd_models.py:" in str(caught.value)


@pytest.mark.parametrize("example", EXAMPLES)
def test_numbers_in_strings_are_decisions(example):
    model, args, shapes = made("FString", example)
    try:
        program = program_of(model, args, shapes)
    except ExportError as e:
        assert "its text decides here in Python" in str(e) and "odd_models.py:" in str(e)
        return
    stopped = 0
    for x in inputs():
        try:
            got = leaves(program(x.clone()))
        except RuntimeError as e:
            assert "was recorded for a case" in str(e)
            stopped += 1
        else:
            agree(leaves(model(x.clone())), got)
    assert stopped


def test_the_inputs_reach_every_kind_of_result():
    """Nothing here is decided the same way by all inputs."""
    counts = {}
    with clew.no_grad():
        for name in ("WhileTrue", "ReturnInNestedLoops", "LoopElseReturn", "DictOut"):
            model = made(name)[0]
            results = [leaves(model(x.clone())) for x in inputs()]
            counts[name] = len({float(np.asarray(r[-1]).sum()) for r in results})
    assert all(n >= 3 for n in counts.values()), counts
