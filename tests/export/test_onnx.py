"""ONNX files, run by onnxruntime on inputs that the export has not seen."""

from __future__ import annotations

import io

import export_models as models
import numpy as np
import pytest

import clew
from clew import nn
from clew.export import Dim, ExportError
from clew.nn import functional as F

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

B = Dim("b", min=1)


def run(data, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, [x.detach().numpy() for x in inputs])))


def exported(model, example, **more):
    file = io.BytesIO()
    clew.onnx.export(model, example, file, **more)
    return file.getvalue()


def agree(expected, got, tolerance=1e-5):
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        a = a.detach().numpy() if isinstance(a, clew.Tensor) else np.asarray(a)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", models.CASES)
def test_models(name):
    case, model, example, unseen = models.make(name)
    data = exported(model, example, dynamic_shapes=case.shapes)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    module = clew.onnx.load(io.BytesIO(data))
    for inputs in unseen:
        with clew.no_grad():
            expected = model(*[x.clone() for x in inputs])
        agree(expected, run(data, inputs))
        got = module(*inputs)
        agree(expected, [x.detach().numpy() for x in (got if isinstance(got, tuple) else (got,))])


def both(function, example, *others, shapes=None, **more):
    data = exported(models.Net(function), example, dynamic_shapes=shapes, **more)
    for inputs in (example, *others):
        agree(function(*[x.clone() for x in inputs]), run(data, inputs))


def test_writes_into_views_reach_everything_that_shares_them():
    def f(x):
        y = x.clone()
        a, b = y[:, 0], y.t()
        flat = y.view(-1)
        a += 1
        b[1] *= 2
        flat[3] = 7
        y[y > 1] = 1
        y[[0, 1], 2] = 9
        return y, a * 1, b.contiguous(), flat.sum(), y[..., None][:, 1:].squeeze(-1)

    both(f, (clew.randn(3, 4),), (clew.randn(2, 4),), (clew.randn(6, 4),),
         shapes=({0: Dim("b")},))  # fmt: skip


def test_writes_in_branches_and_loops():
    def f(x):
        y = clew.zeros_like(x)
        row = y[0]
        if x.sum() > 0:
            row += x[0]
            if x[0, 0] > 1:
                y[:, 1] = 5
        else:
            y.t()[0].fill_(-1)
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]
        return y, row * 2

    x = clew.ones(3, 3)
    others = [(clew.ones(4, 3) * 2,), (-clew.ones(6, 3),), (x[:1],)]
    both(f, (x,), *others, shapes=({0: Dim("b")},))


def test_indexing():
    i = clew.tensor([0, 2, 1])

    def f(x, k):
        n = x.shape[0]
        return (
            x[k], x[:, k], x[k, k], x[k, :, k], x[:, k, k], x[None, k, None], x[..., -1],
            x[1:n:2, -2:], x[x[:, 0, 0] > 0], x[:, x[0, :, 0] > 0], x[0, k], x[i], x[:, [1, 0]],
            x.flip(0), x.roll(1, 0), x[n - 1], x[k[0]],
        )  # fmt: skip

    others = [(clew.randn(n, 3, 3), clew.tensor(k)) for n, k in ((5, [1, 1]), (3, [2]))]
    both(f, (clew.randn(3, 3, 3), i), *others, shapes=({0: Dim("b")}, {0: Dim("k")}))


A, E = Dim("a", min=1), Dim("e", min=1)


def three(a, e):
    return clew.randn(a, e), clew.randn(4, a, e), clew.randn(a)


def of_varying_sizes(function):
    both(function, three(3, 4), three(5, 4), three(2, 9), three(7, 3),
         shapes=({0: A, 1: E}, {1: A, 2: E}, {0: A}))  # fmt: skip


def test_diagonals_of_varying_sizes():
    def f(x, y, v):
        return (
            *(x.diagonal(k) for k in (0, 1, -1, 2, -2)), x.diag(1), v.diag(), v.diag(2),
            v.diag(-1), clew.diag_embed(x, -1), clew.diag_embed(x, 1), v.diagflat(1),
            y.diagonal(0, 0, 2), y.diagonal(1, 2, 0), y.diagonal(-1, 1, 2),
            clew.tril_indices(x.shape[0], x.shape[1], 1), clew.triu_indices(x.shape[0], 4),
        )  # fmt: skip

    of_varying_sizes(f)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_repeats_and_windows_of_varying_sizes():
    def f(x, y, v):
        counts = v.abs().mul(3).long()
        return (
            clew.repeat_interleave(x, counts, 0), counts.repeat_interleave(counts),
            clew.repeat_interleave(counts), y.unfold(1, 2, 2), y.unfold(2, 3, 1), y.unfold(0, 1, 1),
            F.local_response_norm(y[None], 3),
        )  # fmt: skip

    of_varying_sizes(f)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_pools_and_distances_of_varying_sizes():
    def f(x, y, v):
        return (
            F.adaptive_avg_pool2d(y[None], (2, 3)), F.adaptive_avg_pool2d(y, (5, 4)),
            F.adaptive_avg_pool1d(y, 7), *F.adaptive_max_pool2d(y[None], 1, return_indices=True),
            *F.adaptive_max_pool1d(y, 1, return_indices=True), clew.cdist(x, x + 1, p=1.0),
            clew.cdist(x, x * 2, p=float("inf")), clew.cdist(y, y * 2),
        )  # fmt: skip

    of_varying_sizes(f)


def test_products_with_vectors():
    # onnxruntime 1.32 computes a transpose and a matrix times a vector wrongly as one operator.
    def f(x, y, v):
        return x.t() @ v, v @ x, y.transpose(1, 2) @ v, v @ y, x.t().mv(v), v @ v, clew.inner(
            v, x.t()
        ), clew.addmv(x[0], x.t(), v), F.linear(x.t(), v)  # fmt: skip

    of_varying_sizes(f)


def images(h, w):
    return (clew.randn(2, 4, h, w, generator=clew.Generator().manual_seed(100 * h + w)),)


IMAGES = images(8, 10), images(7, 5), images(12, 9), images(16, 21), images(5, 22)
PLANES = ({2: Dim("h", min=4), 3: Dim("w", min=4)},)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area"])
def test_resizing_to_the_nearest_elements(mode):
    def f(x):
        found = [
            F.interpolate(x, size=(9, 6), mode=mode),
            F.interpolate(x, size=(21, 3), mode=mode),
        ]
        if mode != "area":
            # A float32 quotient lies beside the whole number that a product gives, and conversely.
            found += [F.interpolate(x, scale_factor=s, mode=mode) for s in (1.7, 2, 0.6, (3, 1.1))]
            again = F.interpolate(x, scale_factor=1.3, mode=mode, recompute_scale_factor=True)
            found.append(again)
        return tuple(found)

    both(f, *IMAGES, shapes=PLANES)
    module = clew.onnx.load(
        io.BytesIO(exported(models.Net(f), IMAGES[0], dynamic_shapes=PLANES))
    )  # fmt: skip
    for inputs in IMAGES:
        agree(f(*inputs), [x.numpy() for x in module(*inputs)])


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("how", ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"])
def test_nearest_resizing_in_our_loader_is_onnxruntimes(how, rounding):
    helper = onnx.helper
    more = {"mode": "nearest", "coordinate_transformation_mode": how, "nearest_mode": rounding}
    for sizes, scales in (
        ([2, 4, 9, 11], None),
        (None, [1.0, 1.0, 1.7, 0.6]),
        ([2, 4, 1, 21], None),
    ):
        nodes = [
            helper.make_node("Constant", [], ["sizes"], value_ints=sizes or [0]),
            helper.make_node("Constant", [], ["scales"], value_floats=scales or [0.0]),
            helper.make_node("Resize", ["x", "", "", "sizes"] if sizes else ["x", "", "scales"],
                             ["y"], **more),
        ]  # fmt: skip
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 4, None, None])],
            [helper.make_tensor_value_info("y", 1, [None] * 4)],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        data = model.SerializeToString()
        module = clew.onnx.load(io.BytesIO(data))
        for inputs in IMAGES:
            agree(module(*inputs), run(data, inputs))


def one_node(op, inputs, opset=20, outputs=1, constants=(), **attributes):
    """Our loader and onnxruntime on a file of one operator."""
    helper = onnx.helper
    names = [f"x{k}" for k in range(len(inputs))]
    more = [f"c{k}" for k in range(len(constants))]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names + more, results, **attributes)
    kinds = {clew.float32: 1, clew.int64: 7, clew.int32: 6}
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, kinds[x.dtype], list(x.shape))
         for n, x in zip(names, inputs)],
        [onnx.ValueInfoProto(name=n) for n in results],
        [onnx.numpy_helper.from_array(np.asarray(c), n) for c, n in zip(constants, more)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data = onnx.shape_inference.infer_shapes(model).SerializeToString()
    got = clew.onnx.load(io.BytesIO(data))(*inputs)
    expected = run(data, inputs)
    got = got if isinstance(got, tuple) else (got,)
    assert [str(e.dtype) for e in expected] == [str(g.numpy().dtype) for g in got]
    agree([clew.tensor(e) for e in expected], [g.numpy() for g in got], 1e-4)


def image():
    return (clew.randn(2, 3, 7, 6),)


@pytest.mark.parametrize("how", ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_weighted_resizing_in_our_loader_is_onnxruntimes(mode, how):
    more = {"mode": mode, "coordinate_transformation_mode": how}
    for sizes in ([2, 3, 9, 13], [2, 3, 1, 4], [2, 3, 5, 6]):
        one_node("Resize", image(), constants=(np.zeros(0, "f"), np.zeros(0, "f"), sizes), **more)
    for scales in ([1, 1, 1.7, 0.6], [1, 1, 2, 3]):
        given = np.zeros(0, "f"), np.array(scales, "f")
        one_node("Resize", image(), constants=given, **more)
        if mode == "cubic":
            one_node(
                "Resize", image(), constants=given, cubic_coeff_a=-0.5, exclude_outside=1, **more
            )


def test_operators_of_other_files():
    x = image()
    one_node("Selu", x, alpha=2.0, gamma=3.0)
    one_node("Selu", x)
    one_node("Pow", (clew.arange(1, 7), clew.full((6,), 2.5)))
    one_node("MaxPool", x, outputs=2, kernel_shape=[3, 3], pads=[2, 2, 2, 2])
    for more in ({}, {"count_include_pad": 1}, {"strides": [2, 1], "auto_pad": "SAME_UPPER"}):
        pads = {} if "auto_pad" in more else {"pads": [2, 0, 1, 2]}
        one_node("AveragePool", x, kernel_shape=[3, 4], **pads, **more)
    one_node("LpPool", x, kernel_shape=[2, 3], p=3, pads=[1, 0, 0, 1])
    one_node("LRN", x, size=3, alpha=0.5, beta=0.6, bias=2.0)
    one_node("LRN", x, size=5)
    one_node("LpNormalization", x, p=1, axis=2)
    one_node("Hardmax", x, axis=1)
    one_node("MeanVarianceNormalization", x)
    one_node("Upsample", x, opset=9, constants=(np.array([1, 1, 2, 1.5], "f"),))
    one_node("AffineGrid", (clew.randn(2, 2, 3),), constants=(np.array([2, 1, 4, 5]),))
    one_node("LayerNormalization", (x[0], clew.randn(6), clew.randn(6)), outputs=3)
    scores, target = clew.randn(4, 5), clew.randint(0, 5, (4,))
    one_node("SoftmaxCrossEntropyLoss", (scores, target), outputs=2)


@pytest.mark.parametrize("centers", [0, 1])
def test_suppressing_boxes(centers):
    corner = clew.rand(2, 12, 2) * 4
    boxes = clew.cat([corner, corner + clew.rand(2, 12, 2) * 3], -1)
    for limit, bound, least in ((12, 0.3, 0.0), (3, 0.5, 0.4), (0, 0.5, 0.0)):
        given = np.array([limit]), np.array([bound], "f"), np.array([least], "f")
        one_node("NonMaxSuppression", (boxes, clew.rand(2, 3, 12)), constants=given,
                 center_point_box=centers)  # fmt: skip


def test_outputs_and_ways_that_are_not_read_are_named():
    for op, match, more in (
        ("Resize", "antialias", {"antialias": 1, "mode": "linear"}),
        ("MaxPool", "counted by columns", {"kernel_shape": [2, 2], "storage_order": 1}),
    ):
        constants = (np.zeros(0, "f"), np.array([1, 1, 2, 2], "f")) if op == "Resize" else ()
        with pytest.raises(ExportError, match=match):
            one_node(op, image(), constants=constants, **more)


def test_pools_to_sizes_that_are_no_parts():
    def f(x):
        return (
            *F.adaptive_max_pool2d(x, (2, 3), return_indices=True), F.adaptive_max_pool1d(x[0], 2),
            F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_avg_pool2d(x, (x.shape[3], 2)),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.fold(F.unfold(x, 2), x.shape[-2:], 2), nn.CELU(0.5)(x),
        )  # fmt: skip

    both(f, *IMAGES, shapes=PLANES)


@pytest.mark.parametrize("opset", [18, 19, 20])
def test_sampling_in_every_opset(opset):
    def f(x):
        grid = x[:, :2].movedim(1, -1).tanh()
        modes = ("bilinear", "nearest", "bicubic")
        return tuple(F.grid_sample(x, grid, mode=m, align_corners=True) for m in modes)

    both(f, *IMAGES, shapes=PLANES, opset_version=opset)


def test_losses_of_distances():
    def f(x, y):
        every = (F.smooth_l1_loss, F.huber_loss, F.mse_loss, F.l1_loss)
        found = [g(x, y, reduction=r) for g in every for r in ("mean", "sum", "none")]
        found += [F.smooth_l1_loss(x, y, beta=b) for b in (0.3, 0.0)]
        return (*found, F.huber_loss(x, y, delta=0.2))

    pair = lambda n: (clew.randn(n, 4) * 2, clew.randn(n, 4))
    both(f, pair(3), pair(1), pair(7), shapes=({0: B}, {0: B}))


def test_distances_of_many_rows():
    def f(x):
        return clew.cdist(x, x[:2] + 1)

    # Many rows are computed in another way, which must not become a condition of the program.
    both(f, (clew.randn(4, 3),), (clew.randn(40, 3),), (clew.randn(2, 3),), shapes=({0: B},))
    program = clew.export.export(models.Net(f), (clew.randn(4, 3),), dynamic_shapes=({0: B},))
    assert program.module()(clew.randn(40, 3)).shape == (40, 2)


def test_gathering_loops_of_no_round_in_our_loader():
    def f(x):
        outs = []
        for row in x[1:]:
            outs.append(row[None] * 2)
        return clew.stack(outs, 1)

    made = clew.onnx.export(models.Net(f), (clew.randn(4, 3),), dynamic_shapes=({0: B},))
    module = clew.onnx.load(io.BytesIO(made.model_proto.SerializeToString()))
    assert module(clew.randn(5, 3)).shape == (1, 4, 3)
    assert module(clew.randn(1, 3)).shape[1:] == (0, 3)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
@pytest.mark.parametrize("aligned", [False, True])
def test_affine_grids_of_varying_sizes(aligned):
    def f(x, y, v):
        theta = y[:, :2, :3].contiguous() if x.shape[0] > 1 else y.new_ones(4, 2, 3)
        sizes = ((4, 1, *x.shape), (4, 1, 1, x.shape[1]), (4, 1, 5, 2))
        return tuple(F.affine_grid(theta, s, align_corners=aligned) for s in sizes)

    of_varying_sizes(f)


def test_scatter_without_what_was_there():
    index = clew.tensor([[0, 1, 0], [2, 0, 0]])

    def f(x):
        start = clew.ones(4, 3)
        how = ("amax", "amin", "sum", "prod")
        return tuple(start.scatter_reduce(0, index, x, h, include_self=False) for h in how)

    both(f, (clew.randn(2, 3),), (clew.randn(2, 3),))


def test_parts_whose_sizes_are_elements():
    def f(x, k):
        n = k.item()
        a, b = x.split([n, x.shape[1] - n], 1)
        flag = n > 2
        for i in range(n):
            flag = i > 1
            if flag:
                break
        return a, b, flag

    x = clew.randn(2, 6)
    both(f, (x, clew.tensor(3)), (x, clew.tensor(1)), (x, clew.tensor(5)))


def test_arguments_that_must_be_constants_name_the_line():
    def f(x):
        return x.sum(dim=0 if x.shape[0] > 3 else 1).sum()

    with pytest.raises(ExportError, match=r"sum\(\)[\s\S]*test_onnx.py"):
        exported(models.Net(f), (clew.ones(4, 3),), dynamic_shapes=({0: B},))


def test_sizes_of_inputs_are_those_of_the_file():
    model = nn.Linear(3, 2)
    data = exported(model, clew.ones(4, 3), dynamic_shapes=({0: Dim("batch")},))
    module = clew.onnx.load(io.BytesIO(data))
    assert module(clew.ones(9, 3)).shape == (9, 2)
    with pytest.raises(ExportError, match=r"dim 1 of the input .* is 3 .*got 4.*dynamic_shapes"):
        module(clew.ones(9, 4))
    with pytest.raises(ExportError, match="2 dims in the file"):
        module(clew.ones(3))
    data = exported(models.Net(lambda x, y: x + y), (clew.ones(4, 3), clew.ones(4, 1)),
                    dynamic_shapes=({0: B}, {0: B}))  # fmt: skip
    with pytest.raises(ExportError, match="b is 4 in dim 0 of .* and 1 in dim 0 of"):
        clew.onnx.load(io.BytesIO(data))(clew.ones(4, 3), clew.ones(1, 1))


def test_names_opset_and_axes():
    model = nn.Linear(3, 2)
    data = exported(
        model, clew.ones(4, 3), input_names=["features"], output_names=["scores"],
        dynamic_axes={"features": {0: "batch"}}, opset_version=18,
    )  # fmt: skip
    loaded = onnx.load_from_string(data)
    assert [i.name for i in loaded.graph.input] == ["features"]
    assert [o.name for o in loaded.graph.output] == ["scores"]
    assert loaded.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert loaded.opset_import[0].version == 18
    assert {t.name for t in loaded.graph.initializer} == {"weight", "bias"}
    agree(model(clew.ones(7, 3)), run(data, [clew.ones(7, 3)]))
    for opset in (7, 1000, "20"):
        with pytest.raises(ExportError, match="opset_version must be from"):
            exported(model, clew.ones(4, 3), opset_version=opset)


class Cell(nn.Module):
    def forward(self, x, state, mask=None):
        h, c = state
        y = (x + h) * c
        return y if mask is None else y * mask


def test_dynamic_axes_of_named_and_of_nested_arguments():
    def args(n):
        return clew.randn(n, 3), (clew.randn(n, 3), clew.randn(n, 3)), clew.ones(n, 3)

    names = ["x", "h", "c", "mask"]
    axes = {n: {0: "batch"} for n in (*names, "y")}
    x, state, mask = args(2)
    for given in (
        {"input_names": names},
        {"input_names": ["p", "q", "r", "s"], "dynamic_axes": {n: [0] for n in "pqrs"}},
        {"dynamic_axes": {n: {0: "b"} for n in ("x", "state_0", "state_1", "mask")}},
    ):
        wanted = {"dynamic_axes": axes, "output_names": ["y"], "kwargs": {"mask": mask}, **given}
        data = exported(Cell(), (x, state), **wanted)
        x5, state5, mask5 = args(5)
        agree(Cell()(x5, state5, mask5), run(data, [x5, *state5, mask5]))


def test_dynamic_axes_of_no_input_or_output_are_named():
    with pytest.warns(UserWarning, match=r"dynamic_axes.*'batches'.*\['x'\].*\['y'\]"):
        exported(
            nn.Linear(3, 2), clew.ones(4, 3), input_names=["x"], output_names=["y"],
            dynamic_axes={"batches": {0: "b"}, "x": {0: "b"}, "y": {0: "b"}},
        )  # fmt: skip


def test_what_onnx_lacks_names_operation_and_line():
    with pytest.raises(ExportError, match=r"digamma[\s\S]*test_onnx.py"):
        exported(models.Net(lambda x: clew.digamma(x)), clew.ones(2))
    with pytest.raises(ExportError, match=r"call model.eval"):
        exported(nn.BatchNorm1d(3), clew.randn(4, 3))
    with pytest.raises(ExportError, match=r"external_data must be False"):
        exported(nn.Linear(1, 1), clew.ones(1, 1), external_data=True)


def test_conditions_that_a_file_cannot_check_warn():
    def f(x):
        assert x.shape[0] > 1
        return x * 2

    with pytest.warns(UserWarning, match="cannot check"):
        exported(models.Net(f), clew.ones(4, 3), dynamic_shapes=({0: Dim("b", min=2)},))


def test_program_and_path(tmp_path):
    model = nn.Linear(3, 2)
    program = clew.export.export(model, (clew.ones(4, 3),))
    made = clew.onnx.export(program, f=tmp_path / "m.onnx")
    assert len(made.model_proto.graph.node) >= 1
    loaded = clew.onnx.load(tmp_path / "m.onnx")
    x = clew.randn(4, 3)
    agree(model(x), [loaded(x).detach().numpy()])
    (got,) = made(x)
    agree(model(x), [got.numpy()])
    loaded(x).sum().backward()
    model(x).sum().backward()
    np.testing.assert_allclose(
        dict(loaded.named_parameters())["weight"].grad, model.weight.grad, rtol=1e-6
    )


def test_transposed_convolutions_with_much_output_padding():
    for n, padding, stride, more in (
        (1, 0, 1, 2),
        (1, 2, 2, 2),
        (2, 1, (1, 2), (2, 1)),
        (3, 0, 1, 1),
    ):
        function = getattr(F, f"conv_transpose{n}d")
        w, bias = clew.randn(2, 3, *[3] * n), clew.randn(3)
        options = {"stride": stride, "padding": padding, "output_padding": more, "dilation": 3}
        x = clew.randn(1, 2, *[4] * n)
        both(lambda x, f=function, w=w, c=bias, o=options: (f(x, w, c, **o), f(x[0], w, None, **o)),
             (x,), (clew.randn(3, 2, *[4] * n),), shapes=({0: B},))  # fmt: skip


def test_divisors():
    x = clew.tensor([12, -18, 0, 7, 0, 1 << 40])
    y = clew.tensor([8, 12, 5, 0, 0, 1 << 33])

    def f(x, y):
        small = x[:4].int()[:, None]
        return clew.gcd(x, y), clew.lcm(x[:5], y[:5]), clew.gcd(small, y[:4].int())

    both(f, (x, y), (y, x))
    both(clew.gcd, (x[:0], y[:0]))
    np.testing.assert_array_equal(clew.gcd(x, y), [4, 6, 5, 7, 0, 1 << 33])


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_covariances():
    def f(x, weights, often):
        both = clew.cov(x, aweights=weights, fweights=often)
        return both, clew.cov(x, correction=0, aweights=weights)

    weights = clew.tensor([0.5, 1.0, 2.0, 0.1])
    often = clew.tensor([1, 2, 1, 3])
    others = [(clew.randn(3, 4), weights.flip(0), often + 1)]
    both(f, (clew.randn(3, 4), weights, often), *others)


def test_a_variable_of_a_loop_has_the_sizes_of_its_rounds():
    def f(x):
        for t in range(x.shape[0]):
            part = x[t : t + 1].repeat(x.shape[0], 1)
            if part.norm() > 1:
                part = part * 2
        return part

    data = exported(models.Net(f), clew.randn(4, 3), dynamic_shapes=({0: B},))
    (loop,) = [n for n in onnx.load_from_string(data).graph.node if n.op_type == "Loop"]
    (body,) = [a.g for a in loop.attribute if a.name == "body"]
    dims = [d for o in body.output for d in o.type.tensor_type.shape.dim]
    assert not any(d.HasField("dim_value") and d.dim_value == 0 for d in dims)
