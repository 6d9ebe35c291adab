"""Whole models against PyTorch: from the same weights, 20 steps of training follow the same losses.

PyTorch is not a dependency: without it these tests are skipped. `make parity` runs them in an
environment of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew

torch = pytest.importorskip("torch")


def mlp(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Linear(10, 32),
        nn.ReLU(),
        nn.LayerNorm(32),
        nn.Linear(32, 32),
        nn.GELU(),
        nn.Linear(32, 4),
    )


def lstm(t: Any) -> Any:
    nn = t.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(6, 16, num_layers=2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(32, 4)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    return Model()


def gpt(t: Any) -> Any:
    nn, F = t.nn, t.nn.functional
    V, T, C, H = 17, 12, 32, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
            self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
            self.mlp = nn.Sequential(
                nn.Linear(C, 4 * C), nn.GELU(approximate="tanh"), nn.Linear(4 * C, C)
            )

        def forward(self, x):
            B = x.shape[0]
            q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(a.transpose(1, 2).reshape(B, T, C))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(V, C), nn.Embedding(T, C)
            self.blocks = nn.Sequential(Block(), Block())
            self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)
            self.head.weight = self.token.weight

        def forward(self, ids):
            x = self.token(ids) + self.place(t.arange(T))
            return self.head(self.norm(self.blocks(x))).reshape(-1, V)

    return GPT()


def resnet_block(t: Any) -> Any:
    nn, F = t.nn, t.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
            self.conv1, self.norm1 = (
                nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(16),
            )
            self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
            self.short = nn.Conv2d(8, 16, 1, stride=2, bias=False)
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            x = F.relu(self.stem(x))
            y = F.relu(self.norm1(self.conv1(x)))
            y = F.relu(self.norm2(self.conv2(y)) + self.short(x))
            y = F.adaptive_avg_pool2d(F.max_pool2d(y, 2), 1).flatten(1)
            return self.head(y)

    return Net()


def batch(kind: str, step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    if kind == "gpt":
        ids = rng.integers(0, 17, (4, 13))
        return ids[:, :-1], ids[:, 1:].reshape(-1)
    shape = {"mlp": (16, 10), "lstm": (8, 7, 6), "resnet_block": (8, 3, 12, 12)}[kind]
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, 4, shape[0])


OPTIMIZERS = {
    "sgd": lambda t, p: t.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda t, p: t.optim.Adam(p, lr=1e-3),
    "adamw": lambda t, p: t.optim.AdamW(p, lr=1e-3, amsgrad=True),
    "rmsprop": lambda t, p: t.optim.RMSprop(p, lr=1e-3, centered=True, momentum=0.5),
    "adagrad": lambda t, p: t.optim.Adagrad(p, lr=1e-2, initial_accumulator_value=0.1),
}


def train(t: Any, model: Any, kind: str, optimizer: Any) -> list[float]:
    opt = optimizer(t, model.parameters())
    schedule = t.optim.lr_scheduler.OneCycleLR(opt, 0.01, total_steps=30, cycle_momentum=False)
    losses = []
    for step in range(20):
        x, y = (t.from_numpy(np.ascontiguousarray(a)) for a in batch(kind, step % 5))
        loss = t.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("make", [mlp, lstm, gpt, resnet_block], ids=lambda f: f.__name__)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_losses_follow_pytorch(make: Any, optimizer: str):
    torch.manual_seed(0)
    theirs = make(torch)
    ours = make(clew)
    ours.load_state_dict(
        {k: clew.from_numpy(v.detach().numpy().copy()) for k, v in theirs.state_dict().items()}
    )
    want = train(torch, theirs, make.__name__, OPTIMIZERS[optimizer])
    got = train(clew, ours, make.__name__, OPTIMIZERS[optimizer])
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert want[-1] < want[0]


@pytest.mark.parametrize("make", [mlp, lstm, gpt, resnet_block], ids=lambda f: f.__name__)
def test_same_seed_gives_the_same_initial_weights(make: Any):
    torch.manual_seed(3)
    theirs = make(torch).state_dict()
    clew.manual_seed(3)
    ours = make(clew).state_dict()
    assert list(theirs) == list(ours)
    for k in theirs:
        np.testing.assert_allclose(
            ours[k].numpy(), theirs[k].numpy(), rtol=1e-6, atol=2e-6, err_msg=k
        )
