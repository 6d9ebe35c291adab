"""The examples for dynamic models learn what they say, in a few seconds each."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["GCN", "SAGE", "GAT"])
def test_graph_networks(kind: str):
    module = example("graph_networks")
    graph = module.make()
    alone = module.train(module.Alone, graph)["accuracy"]
    found = module.train(getattr(module, kind), graph)
    assert found["losses"][-1] < 0.2 * found["losses"][0]
    assert found["accuracy"] > max(0.8, alone + 0.25)


def test_ragged_sequences():
    found = example("ragged_sequences").train()
    assert found["losses"][-1] < 0.5 * found["losses"][0]
    assert found["short"] > 0.8 and found["long"] > 0.93


def test_a_ragged_batch_gives_what_single_texts_give():
    import clew

    module = example("ragged_sequences")
    clew.manual_seed(0)
    model, (texts, _) = module.Reader(), module.make(12, 0)
    together = model(clew.nested.as_nested_tensor(texts))
    single = clew.stack([model.one(t) for t in texts])
    clew.testing.assert_close(together, single, rtol=1e-4, atol=1e-5)


def test_cart_pole():
    lengths = example("cart_pole").train(batched=False)["lengths"]
    assert lengths[0] < 60 and lengths[-1] == 200


def test_cart_pole_in_batches():
    pytest.importorskip("greenlet")
    lengths = example("cart_pole").train(updates=20)["lengths"]
    assert max(lengths[-5:]) > 2 * lengths[0]


def test_thinking_time():
    module = example("thinking_time")
    found = module.train(batched=False)
    assert found["losses"][-1] < 0.3 * found["losses"][0] and found["accuracy"] > 0.9
    assert all(1 <= n <= module.LONGEST for n in found["thought"].values())


def test_thinking_time_in_batches():
    pytest.importorskip("greenlet")
    module = example("thinking_time")
    ways = [module.train(steps=3, batched=way)["losses"] for way in (True, False)]
    assert ways[0] == pytest.approx(ways[1], rel=1e-3)


@pytest.mark.parametrize("kind", ["Experts", "EarlyExit"])
def test_experts(kind: str):
    module = example("experts")
    found = module.train(getattr(module, kind))
    assert found["losses"][-1] < 0.6 * found["losses"][0] and found["accuracy"] > 0.85


def test_a_step_within_backward():
    module = example("fused_step")
    (plain, most), (fused, less) = (module.train(way) for way in (False, True))
    assert fused == plain and plain[-1] < 0.2 * plain[0]
    gradients = sum(p.numel() * p.element_size() for p in module.network().parameters())
    assert most - less > 0.6 * gradients  # one layer of four is alive


def test_adam_in_a_subspace():
    pytest.importorskip("sklearn")
    module = example("galore")
    full, small = module.train(module.optim.Adam), module.train(rank=8)
    assert small["losses"][-1] < 0.2 and small["accuracy"] > full["accuracy"] - 0.06
    assert small["state"] < 0.15 * full["state"]


def test_adam_in_the_whole_space_is_adam():
    import clew

    module = example("galore")
    clew.manual_seed(1)
    start = clew.randn(6, 9)
    ways = []
    for kind, options in ((module.GaLore, {"rank": 5}), (clew.optim.Adam, {})):
        p = start.clone().requires_grad_()
        optimizer = kind([p], lr=0.01, **options)
        # A gradient of rank 2 lies in any subspace of its 5 leading directions.
        for seed in range(4):
            a, b = start[:, :2], clew.randn(2, 9, generator=clew.Generator().manual_seed(seed))
            optimizer.zero_grad()
            (p * (a @ b)).sum().backward()
            optimizer.step()
        ways.append((p.detach() - start).norm().item())
    assert 0.3 < ways[0] / ways[1] < 3  # the same lengths of steps, by other axes
