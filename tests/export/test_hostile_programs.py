"""Damaged and hostile files of programs: a clear error, and nothing runs."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import zipfile

import export_models as models
import pytest

import clew
from clew import nn
from clew.export import ExportError, export, load, save

# What a program that was changed at random may raise when it runs; anything else is a defect.
WRONG = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


def data_of(model, example, **more):
    file = io.BytesIO()
    save(export(model, example, **more), file)
    return file.getvalue()


def rewritten(data, change):
    """The file with its program changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "program.json":
                whole = json.loads(content)
                change(whole)
                content = json.dumps(whole).encode()
            new.writestr(info.filename, content)
    return out.getvalue()


def test_two_thousand_mutated_files():
    case, model, example, _ = models.make("early return")
    data = data_of(model, example, dynamic_shapes=case.shapes)
    rng = random.Random(5)
    errors = 0
    for k in range(1200):
        if k % 3 == 0:
            bad = data[: rng.randrange(len(data))]
        else:
            changed = bytearray(data)
            for _ in range(rng.choice((1, 1, 2, 8))):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            bad = bytes(changed)
        try:
            load(io.BytesIO(bad)).module()
        except ExportError:
            errors += 1
    # What lies within the JSON, so that no checksum finds it.
    junk = [None, -1, 0, 10**30, "x", "__import__('os')", [], {}, {"v": 0}, {"v": 10**9}, True, 0.5]

    def scramble(whole):
        spots = []

        def visit(x):
            if isinstance(x, dict):
                spots.extend((x, key) for key in x)
            elif isinstance(x, list):
                spots.extend((x, i) for i in range(len(x)))
            for v in x.values() if isinstance(x, dict) else x if isinstance(x, list) else ():
                visit(v)

        visit(whole)
        for _ in range(rng.choice((1, 1, 2))):
            holder, key = rng.choice(spots)
            holder[key] = rng.choice(junk)

    inner = 0
    for _ in range(800):
        try:
            module = load(io.BytesIO(rewritten(data, scramble))).module()
        except ExportError:
            inner += 1
            continue
        try:
            module(clew.randn(3, 3))
        except WRONG:
            pass
    assert errors > 1000 and inner > 300


@pytest.mark.parametrize(
    "op",
    ["os.system", "Tensor.numpy", "Tensor.__reduce_ex__", "py.eval", "save", "load", "Tensor.set_",
     "ops.__class__", "nn.functional.__import__", "Tensor.data_ptr", "Tensor.apply_", "exec"],
)  # fmt: skip
def test_only_operations_can_be_called(op):
    data = data_of(nn.ReLU(), (clew.ones(2),))

    def change(whole):
        whole["body"]["nodes"][0]["op"] = op

    with pytest.raises(ExportError, match="which clew does not have"):
        load(io.BytesIO(rewritten(data, change)))


def test_operations_say_what_is_wrong_with_their_arguments(tmp_path):
    data = data_of(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)).eval(), (clew.randn(2, 3),))

    def change(whole):
        (node,) = [n for n in whole["body"]["nodes"] if n["op"].endswith("layer_norm")]
        node["args"]["t"][3] = 0

    path = tmp_path / "m.clew"
    path.write_bytes(rewritten(data, change))
    # In a process of its own, in which nothing has been imported for messages.
    code = "import clew, sys; clew.export.load(sys.argv[1]).module()(clew.ones(2, 3))"
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "TypeError" in ran.stderr and "'bias'" in ran.stderr


def test_names_never_become_code():
    data = data_of(nn.Linear(2, 2), (clew.ones(1, 2),))

    def change(whole):
        whole["kept"][0][2] = "a'); __import__('os').system('false'); ("

    module = load(io.BytesIO(rewritten(data, change))).module()
    assert module(clew.ones(1, 2)).shape == (1, 2)

    def argument(whole):
        whole["body"]["nodes"][0]["kwargs"] = {"a=1) or print(": 3}

    with pytest.raises(ExportError, match="impossible argument"):
        load(io.BytesIO(rewritten(data, argument)))


def test_other_zips_and_versions():
    file = io.BytesIO()
    clew.save({"a": clew.ones(3)}, file)
    for bad in (b"", b"PK"):
        with pytest.raises(ExportError, match="damaged, or no exported program"):
            load(io.BytesIO(bad))
    with pytest.raises(ExportError, match=r"made by save\(\).*clew\.load"):
        load(io.BytesIO(file.getvalue()))
    data = data_of(nn.ReLU(), (clew.ones(2),))
    with pytest.raises(RuntimeError, match=r"exported program; read it with clew\.export\.load"):
        clew.load(io.BytesIO(data))

    def change(whole):
        whole["version"] = 99

    with pytest.raises(ExportError, match="version 99"):
        load(io.BytesIO(rewritten(data, change)))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("program.json", b"0" * 10**6)
    with pytest.raises(ExportError, match="compressed"):
        load(io.BytesIO(packed.getvalue()))


def test_damaged_onnx_files():
    pytest.importorskip("onnx")
    file = io.BytesIO()
    _, model, example, _ = models.make("mlp")
    clew.onnx.export(model, example, file)
    data = file.getvalue()
    rng = random.Random(5)
    for k in range(1200):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 2, 8))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        bad = bytes(changed) if k % 3 else data[: rng.randrange(len(data))]
        try:
            module = clew.onnx.load(io.BytesIO(bad))
        except ExportError:
            continue
        try:
            module(*example)
        except WRONG:
            pass


def test_onnx_files_whose_fields_lie():
    onnx = pytest.importorskip("onnx")
    rng = random.Random(6)
    sizes = (0, -1, 1, 7, 2**31, 2**62, -(2**62))
    errors = 0
    for name in ("mlp", "resnet", "gru"):
        file = io.BytesIO()
        _, model, example, _ = models.make(name)
        clew.onnx.export(model, example, file)
        for _ in range(300):
            whole = onnx.load_from_string(file.getvalue())
            graph = whole.graph
            node, constant = rng.choice(graph.node), rng.choice(graph.initializer)
            kind = rng.randrange(7)
            if kind == 0 and constant.dims:
                constant.dims[rng.randrange(len(constant.dims))] = rng.choice(sizes)
            elif kind == 1:
                constant.data_type = rng.randrange(40)
            elif kind == 2:
                constant.raw_data = constant.raw_data[: rng.randrange(len(constant.raw_data) + 1)]
            elif kind == 3 and node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(
                    ["", "nowhere", *node.output, *(n.output[0] for n in graph.node)]
                )
            elif kind == 4 and node.attribute:
                attribute = rng.choice(node.attribute)
                attribute.i = rng.choice(sizes)
                attribute.ints[:] = [rng.choice(sizes) for _ in attribute.ints]
            elif kind == 5:
                del node.input[rng.randrange(len(node.input) + 1) :]
            else:
                node.op_type = rng.choice(["Add", "Loop", "If", "Reshape", "Gather", "Nothing"])
            try:
                clew.onnx.load(io.BytesIO(whole.SerializeToString()))(*example)
            except (ExportError, *WRONG):
                errors += 1
    assert errors > 300


def test_onnx_operators_that_clew_lacks_are_named():
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    def file_of(op, domain="", opset=20):
        info = helper.make_tensor_value_info("x", 1, [2])
        out = helper.make_tensor_value_info("y", 1, [2])
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], domain=domain)], "g",
                                  [info], [out])  # fmt: skip
        ids = [helper.make_opsetid("", opset), helper.make_opsetid("com.acme", 1)]
        model = helper.make_model(graph, opset_imports=ids)
        return io.BytesIO(model.SerializeToString())

    for file, match in (
        (file_of("StringNormalizer"), "operator StringNormalizer"),
        (file_of("Relu", "com.acme"), "domain 'com.acme'"),
        (file_of("Relu", opset=3), "version 3"),
    ):
        with pytest.raises(ExportError, match=match):
            clew.onnx.load(file)
    assert onnx


def test_onnx_calls_that_do_not_fit_are_named():
    pytest.importorskip("onnx")
    from onnx import helper

    def file_of(op, inputs, opset=20, outputs=1, **attributes):
        info = helper.make_tensor_value_info("x", 1, [2])
        out = helper.make_tensor_value_info("y0", 1, [2])
        names = [f"y{k}" for k in range(outputs)]
        graph = helper.make_graph([helper.make_node(op, inputs, names, **attributes)], "g",
                                  [info], [out])  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return io.BytesIO(model.SerializeToString())

    for file, match in (
        (file_of("Relu", ["x", "x"]), "Relu has 2 inputs; version 20 takes 1 to 1"),
        (file_of("Relu", ["x"], outputs=2), "Relu has 2 outputs"),
        (file_of("Cast", ["x"]), "Cast lacks the attribute 'to'"),
        (file_of("Cast", ["x"], to="float"), "attribute 'to' of Cast has another type"),
        (file_of("GridSample", ["x", "x"], 12), "no operator GridSample in version 12"),
    ):
        with pytest.raises(ExportError, match=match):
            clew.onnx.load(file)
    module = clew.onnx.load(file_of("MatMul", ["x", "x"]))
    assert module(clew.ones(2)) == 2
    module = clew.onnx.load(file_of("Transpose", ["x"], perm=[3]))
    with pytest.raises(ExportError, match="Transpose, which makes 'y0' of 'x', fails"):
        module(clew.ones(2))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x)

    @clew.jit.export
    def more(self, x, k: int):
        return self.fc(x) * k


def test_sizes_of_no_input():
    batch = clew.export.Dim("batch")
    data = data_of(nn.Linear(3, 2), (clew.ones(2, 3),), dynamic_shapes=({0: batch},))
    for dims in ([{}, {"0": "batch"}], [{"2": "batch"}], [{"-1": "batch"}], [{"x": "batch"}]):
        with pytest.raises(ExportError, match="damaged"):
            load(io.BytesIO(rewritten(data, lambda w, d=dims: w.update(dims=d))))


def test_damaged_methods():
    script = clew.jit.script(Twice())
    script(clew.ones(2, 3)), script.more(clew.ones(2, 3), 2)
    data = script.save_to_buffer()
    assert clew.jit.load(io.BytesIO(data)).more(clew.ones(4, 3), 5).shape == (4, 3)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    inner = members["methods/more"]

    def unknown(whole):
        whole["tensors"][0] = ["no.such.tensor"]

    def unshared(whole):
        whole["tensors"][0] = ["fc.weight"]

    for changed in (
        {"methods/more": b"nothing"},
        {"methods/more": rewritten(inner, unknown)},
        {"methods/_more": inner},
        {"methods/a b": inner},
        {"program.json": json.dumps(json.loads(members["program.json"]) | {"name": 3}).encode()},
        {"program.json": rewritten_json(members["program.json"], unshared)},
    ):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, content in (members | changed).items():
                archive.writestr(name, content)
        if b'"name": 3' in changed.get("program.json", b""):
            assert clew.jit.load(io.BytesIO(out.getvalue())).original_name == "3"
            continue
        with pytest.raises(ExportError, match="damaged"):
            clew.jit.load(io.BytesIO(out.getvalue()))


def rewritten_json(data, change):
    whole = json.loads(data)
    change(whole)
    return json.dumps(whole).encode()


def test_a_call_without_its_argument_is_malformed():
    case, model, example, _ = models.make("early return")
    data = data_of(model, example, dynamic_shapes=case.shapes)
    program = load(io.BytesIO(data))
    (item,) = [n for n in program._program.body.nodes if n.op == "item"][:1]
    item.args = ()
    with pytest.raises(ExportError, match="malformed"):
        program.module()
