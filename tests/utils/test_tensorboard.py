"""SummaryWriter: what is written is read back with the tensorboard package."""

from __future__ import annotations

import io
import os
import sys
import wave

import numpy as np
import pytest

import clew
from clew import nn

pytest.importorskip("tensorboard")
import itertools

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from clew.utils.tensorboard import SummaryWriter

WEIGHTS = ("weight", "bias")


def read(path):
    found = EventAccumulator(
        str(path), size_guidance=dict.fromkeys(("tensors", "images", "histograms", "audio"), 0)
    )
    return found.Reload()


def messages(path):
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    out = []
    for name in sorted(os.listdir(path)):
        if "tfevents" in name:
            for event in LegacyEventFileLoader(os.path.join(path, name)).Load():
                out += [(v, event.step) for v in event.summary.value]
    return out


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as w:
        assert w.get_logdir() == str(tmp_path)
        w.add_scalar("loss", clew.tensor(0.5, requires_grad=True), 3, walltime=7.0)
        w.add_scalar("loss", 2, clew.tensor(4))
        w.add_scalar("exact", 0.1, 1, double_precision=True)
        w.add_scalars("both", {"a": 1.0, "b": np.float32(2)}, 5)
    events = read(tmp_path)
    got = [(s.step, s.value) for s in events.Scalars("loss")]
    assert got == [(3, 0.5), (4, 2.0)] and events.Scalars("loss")[0].wall_time == 7.0
    value = next(v for v, _ in messages(tmp_path) if v.tag == "exact")
    assert value.tensor.double_val[0] == 0.1
    assert value.metadata.plugin_data.plugin_name == "scalars"
    assert read(tmp_path / "both_b").Scalars("both")[0].value == 2.0
    with pytest.raises(ValueError, match="one number"):
        w.add_scalar("bad", clew.ones(2))


def test_histograms(tmp_path):
    clew.manual_seed(0)
    x = clew.randn(1000)
    with SummaryWriter(tmp_path) as w:
        w.add_histogram("x", x, 1)
        w.add_histogram("bins", x, 1, bins=[-10.0, 0.0, 10.0])
        w.add_histogram("few", x, 1, max_bins=20)
        w.add_histogram("one", [3, 3, 3])
        w.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1.0, 2.0, 3.0], [1, 2, 1], 2)
        for bad in (clew.zeros(0), clew.tensor([float("nan")])):
            with pytest.raises(ValueError, match="add_histogram"):
                w.add_histogram("bad", bad)
    events = read(tmp_path)
    h = events.Histograms("x")[0].histogram_value
    v = x.double().numpy()
    assert (h.min, h.max, h.num) == (v.min(), v.max(), 1000)
    assert h.sum == pytest.approx(v.sum()) and h.sum_squares == pytest.approx((v**2).sum())
    assert sum(h.bucket) == 1000 and h.bucket[0] == 0 and len(h.bucket) == len(h.bucket_limit)
    edges = np.array(h.bucket_limit)
    assert [((v >= a) & (v < b)).sum() for a, b in itertools.pairwise(edges)] == h.bucket[1:]
    h = events.Histograms("bins")[0].histogram_value
    assert h.bucket == [0, (v < 0).sum(), (v >= 0).sum()] and h.bucket_limit == [-10, 0, 10]
    assert sum(events.Histograms("few")[0].histogram_value.bucket) == 1000
    h = events.Histograms("one")[0].histogram_value
    assert sum(h.bucket) == 3 and h.bucket_limit[0] <= 3 < h.bucket_limit[-1]
    assert events.Histograms("raw")[0].histogram_value.bucket == [1, 2, 1]


def pixels(png):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(png)))


def test_images(tmp_path):
    clew.manual_seed(0)
    x = clew.rand(3, 4, 6)
    want = (x.numpy() * 255).astype(np.uint8).transpose(1, 2, 0)
    with SummaryWriter(tmp_path) as w:
        w.add_image("chw", x)
        w.add_image("hwc", x.permute(1, 2, 0), dataformats="HWC")
        w.add_image("hw", clew.tensor(want[:, :, 0]), dataformats="HW")
        w.add_images("grid", clew.stack([x, x * 0, x]))
        w.add_image_with_boxes("boxes", x * 0, clew.tensor([[1.0, 0.0, 3.0, 2.0]]))
        for bad, form in ((x, "HW"), (x, "CHC"), (clew.ones(5, 2, 2), "CHW"), (x[0], "CH")):
            with pytest.raises(ValueError, match="add_image"):
                w.add_image("bad", bad, dataformats=form)
    events = read(tmp_path)
    for tag in ("chw", "hwc"):
        found = events.Images(tag)[0]
        assert (found.height, found.width) == (4, 6)
        np.testing.assert_array_equal(pixels(found.encoded_image_string), want)
    found = pixels(events.Images("hw")[0].encoded_image_string)
    np.testing.assert_array_equal(found, want[:, :, 0])
    found = pixels(events.Images("grid")[0].encoded_image_string)
    assert found.shape == (4, 18, 3) and not found[:, 6:12].any()
    np.testing.assert_array_equal(found[:, 12:], want)
    found = pixels(events.Images("boxes")[0].encoded_image_string)
    red = [[int(found[y, x, 0] == 255) for x in range(6)] for y in range(4)]
    assert red == [[0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 0, 0], [0, 1, 1, 1, 0, 0], [0] * 6]


def test_figures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(2, 1), dpi=50)
    figure.add_subplot().plot([1, 2, 3])
    with SummaryWriter(tmp_path) as w:
        w.add_figure("plot", figure, 1)
        assert not pyplot.fignum_exists(figure.number)
    found = read(tmp_path).Images("plot")[0]
    assert (found.height, found.width) == (50, 100)
    assert pixels(found.encoded_image_string).std() > 1


def test_text_sound_tensor(tmp_path):
    wavefront = clew.tensor([0.0, 0.5, -1.0, 1.0])
    with SummaryWriter(tmp_path) as w:
        w.add_text("note", "**hä**", 2)
        w.add_audio("beep", wavefront, sample_rate=8000)
        w.add_tensor("t", clew.arange(6).reshape(2, 3))
        w.add_tensor("t", clew.ones(2, dtype=clew.bfloat16), 1)
    events = read(tmp_path)
    (note,) = events.Tensors("note/text_summary")
    assert note.tensor_proto.string_val[0].decode() == "**hä**" and note.step == 2
    sound = events.Audio("beep")[0]
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as f:
        assert (f.getframerate(), f.getnframes(), f.getsampwidth()) == (8000, 4, 2)
        assert np.frombuffer(f.readframes(4), "<i2").tolist() == [0, 16383, -32767, 32767]
    first, second = events.Tensors("t")
    assert np.frombuffer(first.tensor_proto.tensor_content, np.int64).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.frombuffer(second.tensor_proto.tensor_content, np.float32).tolist() == [1.0, 1.0]


def test_pr_curve(tmp_path):
    labels = clew.tensor([1, 0, 1, 1])
    scores = clew.tensor([0.9, 0.8, 0.3, 0.05])
    with SummaryWriter(tmp_path) as w:
        w.add_pr_curve("pr", labels, scores, 0, num_thresholds=11)
        w.add_pr_curve_raw("raw", *np.ones((6, 3)), num_thresholds=3)
        with pytest.raises(ValueError, match="as many"):
            w.add_pr_curve("bad", labels, scores[:2])
    proto = next(v for v, _ in messages(tmp_path) if v.tag == "pr").tensor
    table = np.array(proto.float_val).reshape([d.size for d in proto.tensor_shape.dim])
    assert table.shape == (6, 11)
    for k in range(11):
        above = (scores.numpy() * 10).astype(int) >= k
        truth = labels.numpy() == 1
        tp, fp = (above & truth).sum(), (above & ~truth).sum()
        tn, fn = (~above & ~truth).sum(), (~above & truth).sum()
        want = [tp, fp, tn, fn, tp / max(tp + fp, 1e-7), tp / 3]
        np.testing.assert_allclose(table[:, k], want, rtol=1e-6)


def test_hparams(tmp_path):
    from tensorboard.plugins.hparams import metadata

    with SummaryWriter(tmp_path) as w:
        settings = {"lr": 0.1, "bn": True, "name": "x", "n": clew.tensor(3)}
        w.add_hparams(settings, {"acc": 0.9}, {"name": ["x", "y"]}, run_name="first")
        with pytest.raises(ValueError, match="add_hparams"):
            w.add_hparams({"bad": [1]}, {})
        with pytest.raises(TypeError, match="dicts"):
            w.add_hparams([], {})
    events = read(tmp_path / "first")
    assert events.Scalars("acc")[0].value == pytest.approx(0.9)
    content = {
        v.tag: v.metadata.plugin_data.content
        for v, _ in messages(tmp_path / "first")
        if v.metadata.plugin_data.plugin_name == "hparams"
    }
    started = metadata.parse_session_start_info_plugin_data(
        content[metadata.SESSION_START_INFO_TAG]
    )
    assert started.hparams["lr"].number_value == 0.1 and started.hparams["bn"].bool_value is True
    assert started.hparams["name"].string_value == "x" and started.hparams["n"].number_value == 3
    experiment = metadata.parse_experiment_plugin_data(content[metadata.EXPERIMENT_TAG])
    domains = {i.name: list(i.domain_discrete) for i in experiment.hparam_infos}
    assert domains["name"] == ["x", "y"] and [m.name.tag for m in experiment.metric_infos] == [
        "acc"
    ]


def test_embeddings_and_layouts(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_embedding(
            clew.eye(3), ["a", "b", "c"], clew.rand(3, 1, 2, 2), global_step=4, tag="e/x"
        )
        w.add_embedding(clew.eye(2), [["a", 1], ["b", 2]], metadata_header=["name", "n"], tag="f")
        with pytest.raises(ValueError, match="metadata"):
            w.add_embedding(clew.eye(3), ["a"])
        w.add_custom_scalars_multilinechart(["a", "b"], title="t")
        w.add_custom_scalars_marginchart(["v", "lo", "hi"])
    folder = tmp_path / "00004" / "e_x"
    rows = (folder / "tensors.tsv").read_text().split("\n")
    assert rows[1] == "0.0\t1.0\t0.0"
    assert (folder / "metadata.tsv").read_text() == "a\nb\nc\n"
    assert pixels((folder / "sprite.png").read_bytes()).shape == (4, 4)
    assert (tmp_path / "00000" / "f" / "metadata.tsv").read_text() == "name\tn\na\t1\nb\t2\n"
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "e/x:00004"' in config and 'tensor_name: "f:00000"' in config
    from tensorboard.plugins.custom_scalar import layout_pb2

    found = [v for v, _ in messages(tmp_path) if v.tag == "custom_scalars__config__"]
    chart = layout_pb2.Layout.FromString(found[0].tensor.string_val[0]).category[0].chart[0]
    assert chart.title == "t" and list(chart.multiline.tag) == ["a", "b"]


def test_graphs(tmp_path, capsys):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5))
            self.table = nn.Embedding(5, 4)

        def forward(self, x, i, *, scale=2):
            h = self.body(x) * scale
            return {"sum": h + self.table(i), "all": (h, [h.sum()])}

    model, args = Block(), (clew.ones(2, 3), clew.tensor([0, 4]))
    model.body[2].eval()
    with SummaryWriter(tmp_path) as w:
        w.add_graph(model, args, verbose=True)
        with pytest.raises(ValueError, match="input_to_model"):
            w.add_graph(model)
    assert "Linear[0]" in capsys.readouterr().out
    assert model.training and model.body[0].training and not model.body[2].training
    assert all(p.grad is None for p in model.parameters()) and not args[0].requires_grad
    graph = read(tmp_path).Graph()
    nodes = {n.name: n for n in graph.node}
    assert len(nodes) == len(graph.node) and read(tmp_path).Tags()["run_metadata"] == ["step1"]
    linear = next(n for n in nodes.values() if n.op == "linear")
    assert linear.name.startswith("Block/Sequential[body]/Linear[0]/linear_")
    assert list(linear.input)[1:] == [f"Block/Sequential[body]/Linear[0]/{p}" for p in WEIGHTS]
    assert nodes[linear.input[0]].op == "IO Node"
    assert [d.size for d in linear.attr["_output_shapes"].list.shape[0].dim] == [2, 4]
    assert nodes["Block/Embedding[table]/weight"].op == "leaf"
    # Every input is a node; the three results are outputs; dropout does nothing meanwhile.
    assert {i for n in nodes.values() for i in n.input} <= set(nodes)
    outputs = [n for n in nodes.values() if n.name.startswith("output/")]
    assert [nodes[n.input[0]].op for n in outputs] == ["add", "mul", "sum"]
    assert not any("dropout" in n.op for n in nodes.values())


def test_what_is_not_there_says_so(tmp_path, monkeypatch):
    with SummaryWriter(tmp_path, purge_step=3) as w:
        for call in (
            lambda: w.add_video("v", clew.ones(1, 2, 3, 4, 4)),
            lambda: w.add_mesh("m", clew.ones(1, 3, 3)),
            lambda: w.add_onnx_graph("x"),
        ):
            with pytest.raises(NotImplementedError):
                call()
    w.add_scalar("after close", 1.0)
    w.close()
    assert len([n for n in os.listdir(tmp_path) if "tfevents" in n]) >= 1
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        SummaryWriter(tmp_path)
