"""What a page shows of measured steps: gradients on edges, activations; its slider and keys."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from browser import BINARY

import clew
from clew import nn
from clew.nn import functional as F

needs_browser = pytest.mark.skipif(BINARY is None, reason="there is no Chromium")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        x = self.first(x).relu()
        for block in self.blocks:
            x = block(x).tanh()
        return self.last(x)


def recorded(tmp_path, count=4, keep=3, change=None):
    """Graphs of the last steps of a short training, and the gradients' norms of each."""
    clew.manual_seed(0)
    net = Net()
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    norms = []
    with clew.debug.record(str(tmp_path / "c.clew"), graphs=keep) as kept:
        for i in range(count):
            x = clew.randn(6, 4)
            opt.zero_grad()
            out = net(x)
            loss = change(i, out) if change else F.mse_loss(out, x[:, :1])
            loss.backward()
            norms.append({n: p.grad.norm().item() for n, p in net.named_parameters()})
            opt.step()
    return list(kept.graphs), norms[-keep:]


def page_data(graph, **how):
    page = graph.to_html(**how)
    return json.loads(re.search(r'id="clew-data">(.*?)</script>', page, re.DOTALL)[1])


# Measuring --------------------------------------------------------------------------------------


def test_measure_notes_the_gradient_on_every_edge():
    x = clew.tensor([3.0, 4.0], requires_grad=True)
    w = clew.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    b = clew.zeros(2, requires_grad=True)
    y = (x.expand(3, 2) @ w + b) * 2
    loss = y.sum()
    g = clew.graph(loss, params={"x": x, "w": w, "b": b})
    assert g.measure() is g
    found = {}
    for (node, i), size in g.gradients.items():
        made = g[g[node].inputs[i][0]]
        found[g[node].op, made.label or made.op] = size
    assert found["sum", "mul"] == pytest.approx(6**0.5)
    # To b it comes at the size of the sum, and is added up over the rows.
    assert found["add", "b"] == pytest.approx(np.hypot(6, 6))
    assert found["matmul", "w"] == pytest.approx(np.hypot(18, 24) * 2**0.5)
    assert found["expand", "x"] == pytest.approx(np.hypot(6, 12))
    assert x.grad is None and w.grad is None
    loss.backward()  # the graph is still whole


def test_measure_says_why_it_cannot():
    x = clew.ones(2, requires_grad=True)
    loss = (x * x).sum()
    g = clew.graph(loss)
    loss.backward()
    with pytest.raises(RuntimeError, match="backward has let go"):
        g.measure()
    g = clew.graph((x * x).sum())
    with pytest.raises(RuntimeError, match="are gone"):
        g.measure()


def test_record_keeps_graphs_with_gradients_and_activations(tmp_path):
    graphs, norms = recorded(tmp_path)
    assert [g.title.split(",")[0] for g in graphs] == ["step 1", "step 2", "step 3"]
    for g, expected in zip(graphs, norms):
        into = {}
        for (node, i), size in g.gradients.items():
            label = g[g[node].inputs[i][0]].label
            if label is not None:
                into[label] = size
        assert into == {name: pytest.approx(n, rel=1e-4) for name, n in expected.items()}
        assert set(g.activations) == {
            ("", "Net"),
            ("first", "Linear"),
            *((f"blocks.{i}", "Linear") for i in range(3)),
            ("last", "Linear"),
        }
    with pytest.raises(ValueError, match="record: graphs"):
        clew.debug.record(graphs=-1)


def test_activations_are_counted_over_all_calls():
    from clew._insight.graph.measured import Activations

    seen, relu = Activations(), nn.ReLU()
    relu.register_forward_hook(seen.hook)
    relu(clew.tensor([-1.0, 3.0]))
    relu(clew.tensor([-2.0, float("inf"), 5.0]))
    (found,) = seen.take().values()
    assert found.calls == 2 and found.bad == 1 and found.zeros == 0.5
    assert found.mean == 2.0 and found.std == pytest.approx(np.std([0, 3, 0, 5]))
    assert (found.low, found.high) == (0.0, 5.0) and seen.take() == {}


def test_the_page_has_each_step_once_and_equal_graphs_share_a_picture(tmp_path):
    graphs, _ = recorded(tmp_path)
    data = page_data(graphs[1], steps=graphs)
    assert data["at"] == 1 and data["bases"] == [None]
    assert [f["base"] for f in data["frames"]] == [0, 0, 0]
    for frame in data["frames"]:
        for index, contents in frame["edges"].items():
            for which, sizes in contents.items():
                content = data["clusters"][index][which]
                assert len(sizes) == len(content["edges"]) + len(content["loops"])
                assert all(isinstance(size, float) for size in sizes)
    assert len(json.dumps(data["frames"])) < 6000


def test_the_sum_over_folded_blocks_is_the_norm_of_their_gradients(tmp_path):
    graphs, norms = recorded(tmp_path)
    data = page_data(graphs[-1])
    titles = {
        child["title"]: child.get("cluster")
        for cluster in data["clusters"].values()
        for child in cluster["merged"]["children"]
    }
    blocks = data["clusters"][str(titles["blocks.*"])]["merged"]
    names = [child["title"] for child in blocks["children"]]
    sizes = data["frames"][0]["edges"][str(titles["blocks.*"])]["merged"]
    (weight,) = [
        size for edge, size in zip(blocks["edges"], sizes) if edge[0] == names.index("weight")
    ]
    expected = np.linalg.norm([norms[-1][f"blocks.{i}.weight"] for i in range(3)])
    assert weight == pytest.approx(expected, rel=0.01)


def test_steps_with_other_graphs_have_pictures_of_their_own(tmp_path):
    graphs, _ = recorded(
        tmp_path, change=lambda i, out: out.square().mean() if i % 2 else out.abs().sum()
    )
    data = page_data(graphs[-1], steps=graphs)
    assert [f["base"] for f in data["frames"]] == [0, 1, 0]
    assert data["bases"][0] is None  # that which the page begins with
    assert data["bases"][1]["clusters"] and data["bases"][1]["nodes"] == len(graphs[1])


def test_only_a_page_has_steps(tmp_path):
    graphs, _ = recorded(tmp_path)
    graphs[0].save(tmp_path / "a.html", steps=graphs)
    assert "clew-data" in (tmp_path / "a.html").read_text("utf-8")
    with pytest.raises(ValueError, match="steps are shown by a page alone"):
        graphs[0].save(tmp_path / "a.svg", steps=graphs)


# In a browser -----------------------------------------------------------------------------------


@pytest.fixture
def show(browser, tmp_path):
    def show(graphs, dark=False):
        path = tmp_path / "g.html"
        graphs[-1].save(path, steps=graphs)
        browser.open(path, dark)
        return browser

    yield show
    assert browser.problems() == []


def text(browser, name):
    return browser.run(f"document.getElementById({name!r}).innerText")


def edge(browser, a, b):
    """The size that an edge between two boxes shows, its line's width, and a point on it."""
    return browser.run(
        f"""(() => {{
        const key = title => clewViewer.boxes().find(box => box.title === title).key;
        const line = [...document.querySelectorAll("[data-in]")].find(
            e => e.dataset.a === key({a!r}) && e.dataset.b === key({b!r}));
        const path = line.querySelector("path"), half = path.getTotalLength() / 2;
        const p = path.getPointAtLength(half).matrixTransform(path.getScreenCTM());
        return {{size: line.dataset.size, width: parseFloat(getComputedStyle(path).strokeWidth),
            classes: path.getAttribute("class"), x: p.x, y: p.y}};
    }})()"""
    )


@needs_browser
def test_the_slider_goes_through_the_steps(show, tmp_path):
    graphs, _ = recorded(tmp_path)
    browser = show(graphs)
    assert text(browser, "step-name") == graphs[-1].title
    scene = "document.getElementById('scene').innerHTML"
    last, picture, drawn = (
        edge(browser, "Net", "mse_loss"),
        browser.screenshot(),
        browser.run(scene),
    )
    browser.run("document.getElementById('step').focus()")
    browser.run(
        "(() => {const s = document.getElementById('step'); s.value = 0;"
        "s.dispatchEvent(new Event('input'))})()"
    )
    assert text(browser, "step-name") == graphs[0].title
    first = edge(browser, "Net", "mse_loss")
    assert first["size"] != last["size"] and browser.screenshot() != picture
    expected = [
        size for (node, i), size in graphs[0].gradients.items() if graphs[0][node].op == "mse_loss"
    ]
    assert float(first["size"]) == pytest.approx(expected[0], rel=0.01)
    browser.run("document.getElementById('step-on').click()")
    assert text(browser, "step-name") == graphs[1].title
    browser.run("document.getElementById('canvas').focus()")
    browser.key("]", "]")
    assert text(browser, "step-name") == graphs[2].title
    assert browser.run(scene) == drawn


@needs_browser
def test_thick_lines_are_large_gradients(show, tmp_path):
    def loss(i, out):
        return (out * (100.0 if i == 3 else 1.0)).sum()

    graphs, _ = recorded(tmp_path, change=loss)
    browser = show(graphs)
    large = edge(browser, "mul", "sum"), edge(browser, "Net", "mul")
    assert large[1]["width"] > large[0]["width"] > 1

    def drawn(at):  # how many pixels around the line are not the ground
        around = [(at["x"] + dx, at["y"]) for dx in range(-7, 8)]
        return sum(colour != [255, 255, 255] for colour in browser.pixels(around))

    assert drawn(large[1]) > drawn(large[0]) >= 1
    browser.run(
        "(() => {const s = document.getElementById('lines'); s.value = 'even';"
        "s.dispatchEvent(new Event('change'))})()"
    )
    assert edge(browser, "Net", "mul")["width"] == edge(browser, "mul", "sum")["width"] == 1.3


@needs_browser
def test_zero_is_dashed_and_nan_is_red(show, tmp_path):
    def loss(i, out):
        return (out * 0.0).sum() + (out.mean() * float("nan") if i == 3 else 0)

    graphs, _ = recorded(tmp_path, change=loss)
    browser = show(graphs)
    bad = edge(browser, "Net", "mean")
    assert bad["size"] == "nan" and "bad" in bad["classes"]
    colour = browser.pixels([(bad["x"], bad["y"])])[0]
    assert colour == [196, 22, 42]
    browser.run("clewViewer.time.go(0)")
    assert edge(browser, "Net", "mul")["size"] == "0"
    assert "zero" in edge(browser, "Net", "mul")["classes"]


@needs_browser
def test_activations_stand_in_boxes_and_in_the_panel(show, tmp_path):
    graphs, _ = recorded(tmp_path)
    browser = show(graphs)
    browser.run(
        "(() => {const s = document.getElementById('colour'); s.value = 'rms';"
        "s.dispatchEvent(new Event('change'))})()"
    )
    browser.run("clewViewer.search('first')")
    first = graphs[-1].activations["first", "Linear"]
    panel = text(browser, "panel")
    assert "Activations at step 3" in panel and "mean ± deviation" in panel
    assert f"{float(f'{first.mean:.3g}'):g} ± {float(f'{first.std:.3g}'):g}" in panel
    labels = browser.run(
        "[...document.querySelectorAll('.box')].map(b => b.getAttribute('aria-label'))"
    )
    (label,) = [label for label in labels if label.startswith("first, ")]
    assert float(label.rpartition("rms ")[2]) == pytest.approx(first.rms, rel=0.01)
    browser.run("clewViewer.search('blocks.2')")
    second = graphs[-1].activations["blocks.2", "Linear"]
    assert f"{float(f'{second.low:.3g}'):g} … " in text(browser, "panel")


@needs_browser
def test_arrows_go_along_the_edges(show, tmp_path):
    graphs, _ = recorded(tmp_path, keep=1)
    browser = show(graphs)
    browser.run("document.getElementById('close-all').click()")
    browser.run("document.getElementById('canvas').focus()")
    title = "clewViewer.boxes().find(box => box.key === clewViewer.state.selected).title"

    def press(key):
        browser.key(key)
        assert browser.run("document.activeElement.dataset.key === clewViewer.state.selected")
        return browser.run(title)

    assert press("ArrowDown") == "Net"  # the first box
    assert press("ArrowDown") == "mse_loss"
    assert press("ArrowUp") == "Net"
    browser.key("Enter")
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    found = [press("ArrowDown") for _ in range(5)]
    assert found == ["first", "relu", "blocks.0", "tanh", "blocks.1"]
    back = [press("ArrowUp") for _ in range(len(found))]
    assert back == [*found[-2::-1], "Net"]
    browser.key("Enter")
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    where = browser.run("clewViewer.state.x")
    browser.run(
        "document.getElementById('canvas').dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'ArrowLeft', shiftKey: true, bubbles: true}))"
    )
    assert browser.run("clewViewer.state.x") == where + 60
    browser.key("/", "/")
    assert browser.run("document.activeElement.id") == "search"
    browser.key("Escape")
    assert browser.run("document.activeElement.id") == "canvas"
    browser.key("Escape")
    assert browser.run("clewViewer.state.selected") is None


@needs_browser
def test_brackets_that_need_another_key_go_through_the_steps(show, tmp_path):
    graphs, _ = recorded(tmp_path)
    browser = show(graphs)
    before = browser.run("clewViewer.time.at()")
    # AltGr is Control and Alt together, and says so; a chord of the system's is not ours.
    for extra, moved in (("modifierAltGraph: true, ", 1), ("", 1)):
        browser.run(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '[', ctrlKey: true, "
            f"altKey: true, {extra}bubbles: true}}))"
        )
        assert browser.run("clewViewer.time.at()") == before - moved


@needs_browser
def test_a_step_with_another_graph_is_drawn_anew(show, tmp_path):
    graphs, _ = recorded(
        tmp_path, change=lambda i, out: out.square().mean() if i % 2 else out.abs().sum()
    )
    browser = show(graphs)
    titles = "clewViewer.boxes().map(box => box.title)"
    assert "mean" in browser.run(titles) and "abs" not in browser.run(titles)
    browser.run("clewViewer.time.go(1)")
    assert "abs" in browser.run(titles) and "mean" not in browser.run(titles)
    browser.run("clewViewer.time.go(2)")
    assert "mean" in browser.run(titles)


@needs_browser
def test_dark_pictures(show, tmp_path):
    graphs, _ = recorded(tmp_path)
    browser = show(graphs, dark=True)
    at = browser.run(
        "(() => {const r = document.getElementById('canvas').getBoundingClientRect();"
        "return [r.x + 5, r.bottom - 5]})()"
    )
    assert browser.pixels([at]) == [[18, 22, 27]]
    browser.run("document.getElementById('theme').click()")
    assert browser.pixels([at]) == [[255, 255, 255]]


@needs_browser
def test_a_page_without_measurements_has_no_slider(show, tmp_path):
    x = clew.ones(2, requires_grad=True)
    browser = show([clew.graph((x * x).sum())])
    hidden = "getComputedStyle(document.getElementById({!r})).display"
    assert browser.run(hidden.format("time")) == browser.run(hidden.format("lines-label")) == "none"
    assert "activations" not in browser.run("document.getElementById('colour').innerText")
