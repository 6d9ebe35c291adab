"""Saved pictures as texts: well formed, complete, self-contained, legible."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import fakes
import pytest

from clew._insight.graph import palette
from clew._insight.graph.data import GraphNode, Saved
from clew._insight.graph.pictures import repr_html, save, to_dot, to_html, to_json, to_svg

SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = {
    "transformer": lambda: fakes.transformer(12),
    "tree": lambda: fakes.tree(2000),
    "loop": lambda: fakes.loop(500),
    "diamond": fakes.diamond,
    "leaf": fakes.one_leaf,
    "placeless": lambda: fakes.loop(30, places=False),
    "parameters": fakes.parameters,
    "straight": lambda: fakes.straight(3000),
}


def words(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def page_data(html: str) -> dict:
    return json.loads(re.search(r'id="clew-data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.mark.parametrize("name", SAMPLES)
def test_svg_is_small_and_well_formed(name):
    svg = to_svg(SAMPLES[name]())
    assert len(svg) < 60_000
    root = ET.fromstring(svg)
    outer = len(root.findall(f".//{SVG}text"))
    assert 2 <= outer <= 60 * 5
    assert "nan" not in svg.lower().replace("provenance", "")
    assert not re.search(r"(href|src|url\()", svg)


def test_svg_shows_the_program():
    found = words(to_svg(fakes.transformer(12)))
    for word in ("GPT", "blocks.*", "×12", "attn", "qkv", "scaled_dot_product_attention", "result"):
        assert word in found, word
    assert any("model.py:40" in word for word in found)
    assert "Scaled" not in "".join(found)
    backward = words(to_svg(fakes.transformer(12), direction="backward"))
    assert "LayerNorm" in backward and "AddBackward0" in backward and "add" not in backward


def test_svg_follows_what_is_asked():
    graph = fakes.transformer(12)
    assert "share of FLOPs" in words(to_svg(graph, color="flops"))
    assert not [w for w in words(to_svg(graph, color="kind")) if "share" in w]
    few = len(words(to_svg(graph, limit=10)))
    assert few < len(words(to_svg(graph)))
    with pytest.raises(ValueError, match="direction"):
        to_svg(graph, direction="sideways")
    with pytest.raises(ValueError, match="color"):
        to_svg(graph, color="mauve")


def test_two_pictures_on_one_page_do_not_share_rules():
    first, second = to_svg(fakes.diamond()), to_svg(fakes.diamond())
    names = [re.search(r'class="(clew-graph-\d+)"', svg)[1] for svg in (first, second)]
    assert names[0] != names[1]
    for svg, name in zip((first, second), names):
        style = re.search(r"<style>(.*?)</style>", svg)[1].replace(
            "@media (prefers-color-scheme:dark){", ""
        )
        selectors = [rule.split("{")[0].strip() for rule in style.split("}") if "{" in rule]
        assert selectors and all(s.startswith(f".{name} ") for s in selectors)


def hostile() -> fakes.FakeGraph:
    bad = '</script><script>alert("x")</script> & "\\ \x00\u2028é '
    r = fakes.Recorder()
    leaf = r.leaf(f"{bad}.weight", (2,))
    with r.module("", bad):
        out = r.op(bad, [leaf], (2,), 3, 4)
    r.nodes[-1].location = fakes.Place(f"/a/{bad}.py", 3, 4, bad, bad)
    return r.graph(out)


def test_names_cannot_break_out_of_the_files():
    graph = hostile()
    assert ET.fromstring(to_svg(graph)).tag == f"{SVG}svg"
    html = to_html(graph)
    assert html.lower().count("</script>") == 2
    assert "alert(" in json.dumps(page_data(html))
    assert json.loads(to_json(graph))["nodes"][0]["label"] == graph.nodes[0].label
    assert "<script" not in repr_html(graph)
    check_dot(to_dot(graph))
    check_dot(to_dot(graph, collapsed=False))


def test_page_needs_nothing_else():
    html = to_html(fakes.transformer(12))
    assert "{{" not in html.split('id="clew-data"')[0]
    markup = re.sub(r"http://www\.w3\.org/2000/svg", "", html)
    assert not re.search(r"https?:|<link|@import|url\(|\bsrc=|fetch\(|XMLHttpRequest", markup)


def test_page_grows_with_the_program_and_not_with_the_run():
    short, long = (len(to_html(fakes.chain(n))) for n in (1000, 100_000))
    assert long < short * 1.02
    # What does not fit one by one says so.
    data = page_data(to_html(fakes.chain(1000)))
    assert "1,001 boxes: more than 200" in data["clusters"][str(data["top"])]["note"]


def test_page_holds_details():
    data = page_data(to_html(fakes.transformer(12)))
    children = [c for k in data["clusters"].values() for c in k["merged"]["children"]]
    sdpa = next(c for c in children if c["title"] == "scaled_dot_product_attention")
    d = sdpa["details"]
    assert (sdpa["times"], d["nodes"], d["line"], d["column"]) == (12, 12, 40, 12)
    assert d["source"].startswith("    y = scaled_dot")
    assert d["outputs"] == [["(8, 12, 128, 64) float32", 12]]
    assert [row[:2] for row in d["kept"]] == [
        [f"{role}: (8, 12, 128, 64) float32", 12] for role in ("input", "other", "result")
    ]
    assert d["saved"] == sum(row[2] for row in d["kept"]) == 12 * 3 * 8 * 12 * 128 * 64 * 4
    assert d["names"] == [["ScaledDotProductAttentionBackward0", 12]]
    assert d["modules"] == [[f"blocks.{i}.attn", 1] for i in range(12)]


def check_dot(text: str) -> None:
    """Balanced, and readable to Graphviz where that is installed."""
    bare = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("[") == bare.count("]")
    if shutil.which("dot"):
        done = subprocess.run(["dot", "-Tplain"], input=text, text=True, capture_output=True)
        assert done.returncode == 0 and "rror" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", SAMPLES)
def test_dot_collapsed(name):
    text = to_dot(SAMPLES[name]())
    assert len(text) < 100_000
    check_dot(text)


def test_dot_has_modules_as_clusters():
    text = to_dot(fakes.transformer(12))
    assert 'label="blocks.* ×12 Block"' in text
    assert "style=dashed" in to_dot(fakes.loop(10_0))


def test_dot_of_every_node():
    graph = fakes.transformer(2)
    text = to_dot(graph, collapsed=False)
    check_dot(text)
    edges = {tuple(map(int, pair)) for pair in re.findall(r"^\s*(\d+) -> (\d+);", text, re.M)}
    assert edges == {(e[0], n.index) for n in graph.nodes for e in n.inputs if e is not None}
    assert {int(i) for i in re.findall(r"^\s*(\d+) \[", text, re.M)} == set(range(len(graph.nodes)))


def rebuilt(text: str) -> fakes.FakeGraph:
    """A graph from its JSON text alone."""
    whole = json.loads(text)
    assert (whole["format"], whole["version"]) == ("clew.graph", 1)
    nodes = []
    for entry in whole["nodes"]:
        entry["inputs"] = [None if e is None else tuple(e) for e in entry["inputs"]]
        entry["outputs"] = [(tuple(o["shape"]), o["dtype"]) for o in entry["outputs"]]
        entry["saved"] = [Saved(**s | {"shape": tuple(s["shape"])}) for s in entry["saved"]]
        if entry["location"] is not None:
            entry["location"] = fakes.Place(**entry["location"])
        nodes.append(GraphNode(**entry))
    return fakes.FakeGraph(nodes, [tuple(root) for root in whole["roots"]])


@pytest.mark.parametrize("name", SAMPLES)
def test_json_is_everything(name):
    graph = SAMPLES[name]()
    again = rebuilt(to_json(graph))
    assert again == graph


def test_save_chooses_by_the_name(tmp_path):
    graph = fakes.diamond()
    for ending, begin in (
        (".svg", "<svg"),
        (".HTML", "<!DOCTYPE"),
        (".dot", "digraph"),
        (".json", "{"),
    ):
        save(graph, tmp_path / f"g{ending}")
        assert (tmp_path / f"g{ending}").read_text("utf-8").startswith(begin)
    with pytest.raises(ValueError, match=r"must end in one of '\.svg'.*'g\.png'"):
        save(graph, "g.png")


def test_notebook_picture_is_small():
    text = repr_html(fakes.transformer(12))
    assert text.startswith("<div") and len(text) < 30_000
    ET.fromstring(text)


def luminance(colour: str) -> float:
    total = 0.0
    for part, at in zip((0.2126, 0.7152, 0.0722), (1, 3, 5)):
        value = int(colour[at : at + 2], 16) / 255
        total += part * (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
    return total


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_texts_stand_out(colours):
    """WCAG's 4.5 to 1 for text, 3 to 1 for lines that carry meaning."""
    heats = [f"heat{step}" for step in range(palette.STEPS)]
    boxes = [*heats, "bar", "leaf", "result", "hit"]
    for ground in [*boxes, "page", "room0", "room1"]:
        for ink in ("ink", "soft", "times"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for ground in ("page", "room0", "room1"):
        assert contrast(colours["mark"], colours[ground]) >= 4.5, ("mark", ground)
        for line in ("line", "loop"):
            assert contrast(colours[line], colours[ground]) >= 3, (line, ground)
