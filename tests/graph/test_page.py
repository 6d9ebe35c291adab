"""The page in a real browser: opened by clicks, searched, moved, measured, looked at."""

from __future__ import annotations

import re
import time

import fakes
import pytest
from browser import BINARY

from clew._insight.graph.collapse import Picture
from clew._insight.graph.html import to_html
from clew._insight.graph.labels import text_of
from clew._insight.graph.pictures import to_svg
from clew._insight.graph.place import place
from clew._insight.graph.svg import closed_size, content_of

pytestmark = pytest.mark.skipif(BINARY is None, reason="there is no Chromium")


@pytest.fixture
def show(browser, tmp_path):
    """Opens a graph's page; at the end, nothing may have gone wrong or been fetched."""

    def show(graph, dark=False):
        path = tmp_path / "g.html"
        path.write_text(to_html(graph), "utf-8")
        browser.open(path, dark)
        return browser

    yield show
    assert browser.problems() == []


def boxes(browser):
    return {box["key"]: box for box in browser.run("clewViewer.boxes()")}


def named(browser, title):
    found = [box for box in boxes(browser).values() if box["title"] == title]
    assert found, (title, [box["title"] for box in boxes(browser).values()])
    return found[0]


def click(browser, box):
    """A real click on the box' upper edge, which is its title bar where it is open."""
    frame = browser.run(
        "(() => {const r = document.getElementById('canvas').getBoundingClientRect();"
        "return {x: r.x, y: r.y}})()"
    )
    scale = browser.run("clewViewer.state.scale")
    browser.click(frame["x"] + box["x"] + 14 * scale, frame["y"] + box["y"] + 10 * scale)


def press(browser, name):
    browser.run(f"document.getElementById({name!r}).click()")


def choose(browser, name, value):
    browser.run(
        f"(() => {{const s = document.getElementById({name!r}); s.value = {value!r};"
        "s.dispatchEvent(new Event('change'))})()"
    )


def problems_of_layout(browser):
    """Boxes that overlap others, texts that leave their box or overlap, edges through boxes."""
    return browser.run(
        """(() => {
        const found = [];
        const rects = [...document.querySelectorAll('.box')].map(g => {
            const outline = g.querySelector('.outline');
            const texts = [...g.querySelectorAll('text')].map(t => t.getBoundingClientRect());
            return {key: g.dataset.key, r: outline.getBoundingClientRect(), texts};
        });
        const within = (a, b, s) => a.x >= b.x - s && a.y >= b.y - s && a.right <= b.right + s
            && a.bottom <= b.bottom + s;
        const meet = (a, b, s) => a.x < b.right - s && b.x < a.right - s && a.y < b.bottom - s
            && b.y < a.bottom - s;
        for (const [i, a] of rects.entries()) {
            for (const b of rects.slice(i + 1))
                if (meet(a.r, b.r, 1)) found.push(`boxes ${a.key} and ${b.key}`);
            for (const [j, t] of a.texts.entries()) {
                if (!within(t, a.r, 2)) found.push(`text outside of ${a.key}`);
                for (const u of a.texts.slice(j + 1)) {
                    const sameLine = Math.abs(t.y - u.y) < 3;
                    if (meet(t, u, sameLine ? 1 : 4)) found.push(`texts in ${a.key}`);
                }
            }
        }
        for (const g of document.querySelectorAll('[data-a]')) {
            const path = g.querySelector('path'), m = path.getScreenCTM();
            const length = path.getTotalLength(), step = Math.max(3, length / 300);
            for (let at = 3; at < length - 3; at += step) {
                const p = path.getPointAtLength(at).matrixTransform(m);
                for (const {key, r} of rects)
                    if (p.x > r.x + 1 && p.x < r.right - 1
                        && p.y > r.y + 1.5 && p.y < r.bottom - 1.5)
                        found.push(`edge ${g.dataset.a} to ${g.dataset.b} through ${key}`);
            }
        }
        return [...new Set(found)];
    })()"""
    )


BIG = {
    "transformer": lambda: fakes.transformer(12),
    "tree": lambda: fakes.tree(2000),
    "loop": lambda: fakes.loop(500),
    "placeless": lambda: fakes.transformer(12, places=False),
    "straight": lambda: fakes.straight(5000),
}


@pytest.mark.parametrize("name", BIG)
def test_nothing_overlaps_closed_or_open(show, name):
    browser = show(BIG[name]())
    press(browser, "close-all")
    assert problems_of_layout(browser) == []
    press(browser, "open-all")
    assert problems_of_layout(browser) == []
    assert len(boxes(browser)) <= 400
    press(browser, "backward")
    choose(browser, "size", "saved")
    press(browser, "fit")
    browser.run("document.getElementById('zoom-in').click()")
    assert problems_of_layout(browser) == []


def test_a_click_opens_a_module_and_another_closes_it(show):
    browser = show(fakes.transformer(12))
    press(browser, "close-all")
    gpt = named(browser, "GPT")
    click(browser, gpt)
    titles = {box["title"] for box in boxes(browser).values()}
    assert titles == {"GPT", "embed", "position", "add", "blocks.*", "ln_f", "head"} | {
        "cross_entropy",
        "result",
    }
    blocks = named(browser, "blocks.*")
    assert blocks["times"] == 12 and not blocks["open"]
    click(browser, blocks)
    after = named(browser, "blocks.*")
    assert after["open"]
    # What was clicked stays under the pointer.
    assert abs(after["y"] - blocks["y"]) < 1
    assert abs(after["x"] + after["w"] / 2 - blocks["x"] - blocks["w"] / 2) < 1
    click(browser, after)
    assert not named(browser, "blocks.*")["open"]


def test_a_fold_is_shown_one_by_one_and_folded_again(show):
    browser = show(fakes.transformer(12))
    control = "document.querySelector('.control[aria-label*=\"blocks\"]')"
    at = browser.run(
        f"(() => {{const r = {control}.getBoundingClientRect(); return [r.x, r.y]}})()"
    )
    browser.click(at[0] + 5, at[1] + 5)
    titles = [box["title"] for box in boxes(browser).values()]
    assert [t for t in titles if t.startswith("blocks.")] == [
        "blocks.*",
        *(f"blocks.{i}" for i in range(12)),
    ]
    assert problems_of_layout(browser) == []
    browser.run(f"{control}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert "blocks.3" not in {box["title"] for box in boxes(browser).values()}


def test_what_is_too_much_says_so(show):
    browser = show(fakes.loop(500))
    press(browser, "unfold-top")
    status = browser.run("document.getElementById('status').textContent")
    assert re.match(r"3,006 boxes: more than 200 are not shown one by one", status)
    show(fakes.loop(8))
    few = len(boxes(browser))
    press(browser, "unfold-top")
    assert len(boxes(browser)) == 8 * 6 + 6 + 1 > few
    assert problems_of_layout(browser) == []


def test_search_opens_the_way_and_marks_what_it_finds(show):
    browser = show(fakes.transformer(12))
    press(browser, "close-all")
    browser.run("document.getElementById('search').focus()")
    for sign in "gelu":
        browser.key(sign, sign)
    titles = {box["title"] for box in boxes(browser).values()}
    assert {"gelu", "1 GELU", "mlp"} <= titles
    marked = browser.run(
        "[...document.querySelectorAll('.box.hit')].map(g => g.getAttribute('aria-label'))"
    )
    assert sorted(label.split(",")[0] for label in marked) == ["1 GELU", "gelu"]
    assert browser.run("document.getElementById('hits').textContent") == "1 of 2"
    browser.key("Enter")
    assert browser.run("document.getElementById('hits').textContent") == "2 of 2"
    hit = named(browser, "gelu")
    size = browser.run("[canvas.clientWidth, canvas.clientHeight]")
    assert 0 < hit["x"] < size[0] and 0 < hit["y"] < size[1]
    browser.run("clewViewer.search('nowhere')")
    assert browser.run("document.getElementById('hits').textContent") == "nothing found"
    browser.run("clewViewer.search('model.py:40')")
    assert named(browser, "scaled_dot_product_attention")


def test_search_for_one_of_a_folded_group_opens_the_group(show):
    browser = show(fakes.transformer(30))
    for layer in (7, 25):  # the second is beyond the names that a folded box lists
        browser.run(f"clewViewer.search('blocks.{layer}.attn.proj.weight')")
        marked = browser.run(
            "clewViewer.state.hits.map(hit => hit.child.details.labels.map(([name]) => name))"
        )
        assert marked == [[f"blocks.{layer}.attn.proj.weight"]]
        assert len(browser.run("[...document.querySelectorAll('.box.hit')].map(g => 1)")) == 1
    few = len(boxes(browser))
    browser.run("clewViewer.search('')")  # folded together again
    assert len(boxes(browser)) < few


def test_equal_rows_of_what_keeps_most_are_one(show):
    graph = fakes.Recorder()
    x = graph.leaf("x", (4, 4))
    for name in "abc":
        with graph.module(name, f"Kind{name}"):
            x = graph.op("tanh", [x], (4, 4), line=7)
    browser = show(graph.graph(x))
    rows = browser.run(
        "[...document.querySelectorAll('#panel table button.link')].map(b => b.textContent)"
    )
    assert [row for row in rows if row.startswith("tanh")] == ["tanh model.py:7 ×3"] * 2


def test_backward_turns_names_and_arrows(show):
    browser = show(fakes.diamond())
    heads = "[...document.querySelectorAll('.edgehead')].map(p => p.getAttribute('points'))"
    before = browser.run(heads)
    press(browser, "backward")
    titles = {box["title"] for box in boxes(browser).values()}
    assert titles == {"x", "ExpBackward0", "SinBackward0", "CosBackward0", "MulBackward0"} | {
        "gradient of result"
    }
    assert len(browser.run(heads)) == len(before)

    def down(points):  # whether the tip, which is the last point, is the lowest
        ys = [float(pair.split(",")[1]) for pair in points.split()]
        return ys[-1] == max(ys)

    assert all(down(points) for points in before)
    assert not any(down(points) for points in browser.run(heads))


def test_colour_and_size_follow_what_is_chosen(show):
    browser = show(fakes.transformer(12))
    look = (
        "[...document.querySelectorAll('.box')].find(g => g.getAttribute('aria-label')"
        ".startsWith('add')).querySelector('.outline').getAttribute('class')"
    )
    saved = browser.run(look)
    choose(browser, "colour", "flops")
    assert "heat0" in saved  # a sum keeps nothing, but it computes
    assert "heat1" in browser.run(look)
    choose(browser, "colour", "kind")
    assert "heat0" in browser.run(look)
    even = named(browser, "head")["h"], named(browser, "ln_f")["h"]
    assert abs(even[0] - even[1]) < 1
    choose(browser, "size", "saved")
    assert named(browser, "head")["h"] > 1.5 * named(browser, "ln_f")["h"]


def test_panel_tells_about_the_selected_box(show):
    browser = show(fakes.transformer(12))
    browser.run("clewViewer.search('scaled_dot')")
    panel = browser.run("document.getElementById('panel').innerText")
    for fact in (
        "scaled_dot_product_attention ×12",
        "model.py:40, column 13",
        "y = scaled_dot_product_attention(x)  # line 40",
        "(8, 12, 128, 64) float32",
        "ScaledDotProductAttentionBackward0",
        "blocks.11.attn",
        "113 MB",
    ):
        assert fact in panel, (fact, panel)


def test_mouse_and_keys_move_and_zoom(show):
    browser = show(fakes.transformer(12))
    state = "[clewViewer.state.x, clewViewer.state.y, clewViewer.state.scale]"
    x, y, scale = browser.run(state)
    shown = set(boxes(browser))
    browser.drag(100, 400, 80, 30)
    assert browser.run(state) == pytest.approx([x + 80, y + 30, scale])
    browser.wheel(300, 300, -120)
    x1, y1, larger = browser.run(state)
    assert larger > scale * 1.1
    # The point under the wheel stays; the canvas begins below the header.
    top = browser.run("canvas.getBoundingClientRect().y")
    assert (300 - x1) / larger == pytest.approx((300 - x - 80) / scale)
    assert (300 - top - y1) / larger == pytest.approx((300 - top - y - 30) / scale)
    browser.run("document.getElementById('canvas').focus()")
    browser.key("+", "+")
    assert browser.run(state)[2] == pytest.approx(larger * 1.25)
    browser.key("0", "0")
    whole = boxes(browser).values()
    size = browser.run("[canvas.clientWidth, canvas.clientHeight]")
    assert all(0 <= b["x"] and b["x"] + b["w"] <= size[0] for b in whole)
    assert all(0 <= b["y"] and b["y"] + b["h"] <= size[1] for b in whole)
    assert set(boxes(browser)) == shown  # dragging opened nothing


def test_the_keyboard_alone_is_enough(show):
    browser = show(fakes.transformer(12))
    press(browser, "close-all")
    browser.run("document.getElementById('canvas').focus()")
    for _ in range(10):
        browser.key("Tab")
        label = browser.run("document.activeElement.getAttribute('aria-label')")
        if label.startswith("GPT"):
            break
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    browser.key("Enter")
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert named(browser, "blocks.*")


def test_dark_and_light(show):
    ground = "getComputedStyle(document.querySelector('#canvas .page')).fill"
    browser = show(fakes.diamond(), dark=True)
    assert browser.run(ground) == "rgb(18, 22, 27)"
    press(browser, "theme")
    assert browser.run(ground) == "rgb(255, 255, 255)"
    press(browser, "theme")
    assert browser.run(ground) == "rgb(18, 22, 27)"
    show(fakes.diamond(), dark=False)
    assert browser.run(ground) == "rgb(255, 255, 255)"


def test_opens_fast_with_a_hundred_thousand_nodes(show, browser, tmp_path):
    path = tmp_path / "chain.html"
    path.write_text(to_html(fakes.chain(100_000)), "utf-8")
    assert path.stat().st_size < 150_000
    begin = time.perf_counter()
    browser.open(path)
    assert named(browser, "mul")["times"] == 100_000
    assert time.perf_counter() - begin < 5


def numbers(path):
    return [float(text) for text in re.findall(r"-?\d+(?:\.\d+)?", path)]


@pytest.mark.parametrize("name", ["transformer", "tree", "loop", "straight"])
def test_both_languages_lay_out_alike(show, name):
    graph = BIG[name]()
    browser = show(graph)
    picture = Picture(graph)
    queue, checked = [picture.top], 0
    while queue and checked < 12:
        cluster = queue.pop(0)
        content = content_of(cluster)
        texts = [text_of(child, graph.nodes) for child in content.children]
        sizes = [closed_size(text, False, "saved") for text in texts]
        here = place(content, sizes)
        plain = [{k: getattr(s, k) for k in ("w", "h", "enter", "leave", "open")} for s in sizes]
        which = "each" if cluster.starts_each else "merged"
        there = browser.run(
            f"(() => {{const content = clewViewer.data.clusters[{cluster.index}].{which};"
            f"const p = clewViewer.place(content,"
            f"{str(plain).replace('False', 'false')});"
            "return {...p, lines: p.lines.map(l => l.d)}})()"
        )
        assert (here.w, here.h, here.leave) == pytest.approx(
            (there["w"], there["h"], there["leave"])
        )
        assert [list(at) for at in here.xy] == [pytest.approx(at) for at in there["xy"]]
        for line, d in zip(here.lines, there["lines"]):
            assert re.sub(r"[-\d. ]", "", line.d) == re.sub(r"[-\d. ]", "", d)
            assert numbers(line.d) == pytest.approx(numbers(d), abs=0.11)
        queue += [c.cluster for c in content.children if c.cluster is not None]
        checked += 1


@pytest.mark.parametrize("name", ["transformer", "tree", "loop", "placeless"])
def test_texts_of_the_still_picture_lie_in_their_boxes(browser, tmp_path, name):
    path = tmp_path / "g.svg"
    path.write_text(to_svg(BIG[name]()), "utf-8")
    browser.open(path)
    outside = browser.run(
        """(() => {
        const frame = document.documentElement.getBoundingClientRect(), found = [];
        for (const t of document.querySelectorAll('text')) {
            const r = t.getBoundingClientRect();
            const box = [...t.parentElement.children].filter(e => e.matches('rect, path.frame'))
                .map(e => e.getBoundingClientRect());
            const inside = b => r.x >= b.x - 1 && r.right <= b.right + 1 && r.y >= b.y - 2
                && r.bottom <= b.bottom + 2;
            if (!(t.parentElement.tagName === 'svg' ? inside(frame) : box.some(inside)))
                found.push(t.textContent);
        }
        return found;
    })()"""
    )
    assert outside == []
    assert browser.problems() == []
