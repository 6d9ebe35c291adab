"""Memory of programs that run, and the files that a profile writes."""

from __future__ import annotations

import gc
import gzip
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from profiled_net import here

import clew
from clew import _C, nn
from clew.profiler import profile, record_function


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)

    def forward(self, x):
        return clew.tanh(self.fc(x))


class Net(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture
def trained():
    """A profile of one step whose peak lies in the forward pass's end."""
    model, x = Net(), clew.randn(256, 64)
    with profile(profile_memory=True, record_shapes=True, with_modules=True) as prof:
        with record_function("step"):
            model(x).square().mean().backward()
    return prof


def test_allocations_belong_to_the_operation_and_its_line():
    with profile(profile_memory=True) as prof:
        x = clew.ones(256); made = here()  # fmt: skip # noqa: E702
        y = x * 2; doubled = here()  # fmt: skip # noqa: E702
        del y
    usage = {event.name: event.self_cpu_memory_usage for event in prof.events()}
    assert usage == {"ones": 1024, "mul": 1024}
    rows = {row.location.line: row for row in prof.by_line()}
    assert rows[made].allocated == 1024 and rows[doubled].allocated >= 1024
    actions = [(row.action, row.nbytes, row.location.line) for row in prof.memory_timeline()]
    kept = [a for a in actions if a[1] == 1024]
    assert kept == [
        ("allocate", 1024, made),
        ("allocate", 1024, doubled),
        ("free", 1024, doubled),
    ]
    assert x.numel() == 256


def test_the_peak_is_the_allocators():
    model, x = Net(), clew.randn(256, 64)
    gc.collect()
    clew.reset_peak_memory_stats()
    before = _C._memory_stats()["live_bytes"]
    with profile(profile_memory=True) as prof:
        model(x).square().mean().backward()
    assert prof.peak().bytes == _C._memory_stats()["peak_bytes"]
    assert prof.memory_timeline()[-1].live_bytes == _C._memory_stats()["live_bytes"]
    assert prof.peak().before <= before
    assert sum(row.nbytes for row in prof.peak().rows) == prof.peak().bytes
    assert sum(row.share for row in prof.peak().rows) == pytest.approx(1)


def test_the_peak_is_counted_while_a_profile_runs():
    clew.reset_peak_memory_stats()
    before = _C._memory_stats()["peak_bytes"]
    with profile(profile_memory=True):
        x = clew.empty(1 << 20)
        del x
        assert _C._memory_stats()["peak_bytes"] == before + (4 << 20)
    x = clew.empty(2 << 20)
    del x
    assert _C._memory_stats()["peak_bytes"] == before + (8 << 20)
    clew.reset_peak_memory_stats()
    assert _C._memory_stats()["peak_bytes"] == _C._memory_stats()["live_bytes"]


def test_freed_blocks_are_still_cached_while_a_profile_runs():
    with profile(profile_memory=True):
        clew.empty_cache()
        x = clew.empty(1 << 18)
        del x
        assert _C._memory_stats()["cached_bytes"] >= 1 << 20


def test_the_peak_names_the_blocks(trained):
    rows = [row for row in trained.peak().rows if row.module == "blocks.*"]
    # The last of four has run backward: its result was let go before the peak.
    assert rows[0].blocks == 3 and rows[0].phase == "forward"
    assert rows[0].nbytes == 3 * 256 * 64 * 4
    assert rows[0].location.source == "return clew.tanh(self.fc(x))"
    assert "blocks.*, line" in str(trained.peak())


def test_at_the_peak_by_line_and_module(trained):
    held = trained.peak().bytes - trained.peak().before
    assert sum(row.at_peak for row in trained.by_line()) == held
    rows = {row.label: row for row in trained.by_module()}
    blocks = [rows[f"blocks.{i}"].at_peak for i in range(4)]
    assert rows["blocks"].at_peak == sum(blocks) == rows["(Net)"].at_peak
    assert min(blocks) >= 256 * 64 * 4


def test_memory_columns(trained):
    table = trained.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=3)
    assert "CPU Mem" in table and "Self CPU Mem" in table
    tanh = next(row for row in trained.key_averages() if row.key == "tanh")
    assert tanh.cpu_memory_usage == 4 * 256 * 64 * 4


def test_what_was_there_before():
    x = clew.ones(1 << 16)
    with profile(profile_memory=True) as prof:
        y = clew.ones(16)
        del x
    assert prof.peak().rows[0].phase == "before"
    assert prof.peak().rows[0].nbytes >= 4 << 16
    freed = prof.memory_timeline()[-1]
    assert (freed.action, freed.phase, freed.location) == ("free", "before", None)
    assert y.numel() == 16


def test_resized_memory():
    x = clew.ones(4)
    with profile(profile_memory=True) as prof:
        x.resize_(1000)
    changes = [(row.action, row.nbytes) for row in prof.memory_timeline()]
    assert changes == [("allocate", 4000), ("free", 16)]


# Chrome traces


def entries(path, phase):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        whole = json.load(file)
    return [entry for entry in whole["traceEvents"] if entry["ph"] == phase], whole


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(trained, tmp_path, name):
    path = tmp_path / name
    trained.add_metadata("who", "me")
    trained.add_metadata_json("numbers", "[1, 2]")
    trained.export_chrome_trace(str(path))
    complete, whole = entries(path, "X")
    assert whole["displayTimeUnit"] == "ms" and whole["record_shapes"] == 1
    assert (whole["who"], whole["numbers"]) == ("me", [1, 2])
    assert whole["trace_id"] == trained.get_trace_id()
    assert [e["name"] for e in complete] == [e.name for e in trained.events()]
    for entry in complete:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= entry.keys()
        assert entry["ts"] >= 0 and entry["dur"] >= 0
    # Microseconds: the same as the events say.
    step = next(e for e in complete if e["name"] == "step")
    event = next(e for e in trained.events() if e.name == "step")
    assert step["dur"] == pytest.approx(event.cpu_time_total, abs=1e-3)
    assert step["cat"] == "user_annotation"
    # Properly nested: none ends after one that it began in.
    stack = []
    for entry in sorted(complete, key=lambda e: (e["ts"], -e["dur"])):
        end = round(entry["ts"] + entry["dur"], 3)
        while stack and stack[-1] <= entry["ts"]:
            stack.pop()
        assert not stack or end <= stack[-1]
        stack.append(end)
    linear = next(e for e in complete if e["name"] == "linear")
    assert linear["args"]["Input Dims"] == [[256, 64], [64, 64], [64]]
    assert linear["args"]["Module Hierarchy"] == "blocks.0.fc"
    # An arrow from each operation to its gradient rule.
    starts, finishes = entries(path, "s")[0], entries(path, "f")[0]
    assert len(starts) == len(finishes) > 8
    for start, finish in zip(starts, finishes):
        assert start["id"] == finish["id"] and start["ts"] < finish["ts"]
        assert finish["ts"] in {e["ts"] for e in complete if e["name"].endswith("Backward0")}
    counters, instants = entries(path, "C")[0], entries(path, "i")[0]
    assert len(counters) == len(instants) == len(trained.memory_timeline())
    live = [row.live_bytes for row in trained.memory_timeline()]
    assert [entry["args"]["bytes"] for entry in counters] == live
    names = {e["args"]["name"] for e in entries(path, "M")[0]}
    assert "MainThread" in names


def test_chrome_trace_of_an_event_list(trained, tmp_path):
    trained.events().export_chrome_trace(str(tmp_path / "list.json"))
    assert len(entries(tmp_path / "list.json", "X")[0]) == len(trained.events())
    with pytest.raises(TypeError, match="averages"):
        trained.key_averages().export_chrome_trace(str(tmp_path / "x.json"))


def test_trace_id(tmp_path):
    with profile(custom_trace_id_callback=lambda: "mine") as prof:
        pass
    assert prof.get_trace_id() == "mine"
    prof.set_custom_trace_id_callback(lambda: "other")
    prof.start()
    prof.stop()
    assert prof.get_trace_id() == "other"


# Memory timelines


@pytest.mark.parametrize("name", ["memory.json", "memory.json.gz"])
def test_timeline_numbers(trained, tmp_path, name):
    path = str(tmp_path / name)
    trained.export_memory_timeline(path)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        found = json.load(file)
    assert len(found["times_us"]) == len(found["bytes"])
    assert {len(row) for row in found["bytes"]} == {len(found["categories"])}
    assert max(map(sum, found["bytes"])) == trained.peak().bytes
    live = [row.live_bytes for row in trained.memory_timeline()]
    assert [sum(row) for row in found["bytes"]][1:] == live


def test_timeline_svg(trained, tmp_path):
    path = tmp_path / "memory.svg"
    trained.export_memory_timeline(str(path))
    root = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    areas = root.findall(f"{space}polygon")
    titles = [area.find(f"{space}title").text for area in areas]
    assert "blocks.*, forward" in titles
    text = " ".join(t.text for t in root.iter(f"{space}text"))
    assert "peak" in text and "KB" in text
    # The outlines stay inside the picture.
    width, height = (float(n) for n in root.get("viewBox").split()[2:])
    for area in areas:
        for x, y in (map(float, point.split(",")) for point in area.get("points").split()):
            assert 0 <= x <= width and 0 <= y <= height


def test_timeline_page_needs_nothing_else(trained, tmp_path):
    path = tmp_path / "memory.html"
    trained.export_memory_timeline(str(path), device="cpu")
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>") and "<svg" in text and "<script>" in text
    assert not re.search(r"(src|href)\s*=", text)
    data = json.loads(re.search(r"const data = (.*);", text).group(1))
    assert max(map(sum, data["bytes"])) == trained.peak().bytes
    assert len(data["colours"]) == len(data["groups"])


def test_timeline_is_divided_by_owner(tmp_path):
    model = clew.nn.Sequential(clew.nn.Linear(64, 128), clew.nn.GELU(), clew.nn.Linear(128, 64))
    optimizer = clew.optim.AdamW(model.parameters())
    size = sum(p.numel() * 4 for p in model.parameters())
    with profile(profile_memory=True) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            model(clew.randn(512, 64)).square().mean().backward()
            optimizer.step()
    path = tmp_path / "memory.json"
    prof.export_memory_timeline(str(path))
    found = json.loads(path.read_text())
    last = dict(zip(found["categories"], found["bytes"][-1]))
    # Other tests may have left models alive: the table of what is held counts those, too.
    kinds = clew.debug.memory().by_kind()
    for kind, least in (("parameters", size), ("gradients", size), ("optimizer", 2 * size)):
        assert least <= last[kind] == pytest.approx(kinds[kind], rel=0.01, abs=2000)
    first = dict(zip(found["categories"], found["bytes"][0]))
    assert first["parameters"] == last["parameters"]
    assert last["gradients"] - first["gradients"] >= size
    assert last["optimizer"] - first["optimizer"] >= 2 * size
    # At the peak the larger layer's activations, too.
    peak = dict(zip(found["categories"], max(found["bytes"], key=sum)))
    assert peak["*, forward"] >= 2 * 512 * 128 * 4 and last.get("*, forward", 0) < 10_000
    page = tmp_path / "memory.html"
    prof.export_memory_timeline(str(page))
    assert re.search(r'<p id="parts">.*parameters \d+%', page.read_text())


def test_timeline_refuses_other_files(trained, tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.json or \.json\.gz"):
        trained.export_memory_timeline(str(tmp_path / "memory.png"))
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        trained.export_memory_timeline(str(tmp_path / "memory.html"), device="cuda:0")


def test_an_empty_timeline(tmp_path):
    with profile(profile_memory=True) as prof:
        pass
    for name in ("a.html", "a.svg", "a.json"):
        prof.export_memory_timeline(str(tmp_path / name))
    assert prof.memory_timeline() == []
    assert prof.peak().bytes == prof.peak().before
