"""Models for the export tests, each with an example and a way to make unseen inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import clew
from clew import nn
from clew.export import Dim

F = nn.functional


@dataclass
class Case:
    model: Callable[[], Any]
    inputs: Callable[..., tuple[Any, ...]]
    example: tuple[int, ...]
    unseen: list[tuple[int, ...]]
    shapes: Any = None
    opset: bool = True  # whether ONNX has what it needs


class Net(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def mlp():
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.one = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(b)
        self.two = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(b)
        self.short = nn.Conv2d(a, b, 1, stride, bias=False) if stride > 1 or a != b else None

    def forward(self, x):
        h = F.relu(self.norm1(self.one(x)), inplace=True)
        h = self.norm2(self.two(h))
        h += x if self.short is None else self.short(x)
        return F.relu(h)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        h = self.blocks(self.pool(self.stem(x)))
        h = F.adaptive_avg_pool2d(h, 1)
        return self.head(clew.flatten(h, 1))


class MobileBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.deep = nn.Conv2d(c, c, 3, 1, 1, groups=c)
        self.norm = nn.BatchNorm2d(c)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, 2, 1), nn.ReLU6(), nn.Conv2d(2, c, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip
        self.point = nn.Conv2d(c, c, 1)

    def forward(self, x):
        h = F.hardswish(self.norm(self.deep(x)))
        return x + self.point(h * self.gate(h))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(12, 1, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.norm(self.down2(F.max_pool2d(a, 2))))
        c = F.silu(self.middle(F.avg_pool2d(b, 2)))
        c = F.interpolate(c, scale_factor=2, mode="nearest")
        d = self.up(b)
        c = F.interpolate(c, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(clew.cat([c, d], 1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(5, 7, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(14, 2)

    def forward(self, x):
        out, state = self.rnn(x)
        last = state[0] if isinstance(state, tuple) else state
        return self.head(out), last


class LstmByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 6)
        self.w = nn.Linear(10, 24)

    def forward(self, x):
        h = x.new_zeros(x.size(0), 6)
        c = clew.zeros_like(h)
        outs = []
        for t in range(x.size(1)):
            gates = self.w(clew.cat([x[:, t], h], -1))
            i, f, g, o = gates.chunk(4, -1)
            c = clew.sigmoid(f) * c + clew.sigmoid(i) * clew.tanh(g)
            h = clew.sigmoid(o) * clew.tanh(c)
            outs.append(h)
        return clew.stack(outs, 1), c


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, cache=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).split(d, dim=2)
        q, k, v = (y.view(b, -1, self.heads, d // self.heads).transpose(1, 2) for y in (q, k, v))
        if cache is not None:
            k, v = clew.cat([cache[0], k], 2), clew.cat([cache[1], v], 2)
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, d)), (k, v)


class Gpt(nn.Module):
    def __init__(self, vocab=11, d=8, length=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, d), nn.Embedding(length, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = Attention(d, 2)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        _, t = ids.size()
        h = self.tokens(ids) + self.places(clew.arange(t, device=ids.device))
        h = h + self.attention(self.norm1(h))[0]
        h = h + self.mlp(self.norm2(h))
        return self.head(h)


class GptSampler(nn.Module):
    """Greedy decoding that stops early, without a cache."""

    def __init__(self):
        super().__init__()
        self.gpt = Gpt()

    def forward(self, ids):
        for _ in range(12):
            following = self.gpt(ids)[:, -1].argmax(-1, keepdim=True)
            ids = clew.cat([ids, following], 1)
            if (following == 3).all():
                break
        return ids


class CachedDecoder(nn.Module):
    """One step of a decoder, with its keys and values."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), Attention(8, 2)

    def forward(self, x, k, v):
        y, (k, v) = self.attention(self.norm(x), (k, v))
        return x + y, k, v


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(clew.randn(1, 1, 8))
        self.place = nn.Parameter(clew.randn(1, 5, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = clew.cat([self.token.expand(h.shape[0], -1, -1), h], 1) + self.place
        n = self.norm(h)
        h = h + self.attention(n, n, n, need_weights=False)[0]
        return self.head(h[:, 0]).softmax(-1)


class MessagePassing(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x, edges):
        for _ in range(2):
            source, target = edges[0], edges[1]
            m = F.relu(self.message(clew.cat([x[source], x[target]], 1)))
            gathered = clew.zeros_like(x).index_add(0, target, m)
            x = self.update(clew.cat([x, gathered], 1))
        return x


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        chosen = self.route(x).argmax(-1)
        out = clew.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (chosen == e).nonzero().squeeze(-1)
            if rows.numel() > 0:
                out[rows] += expert(x[rows])
        return out


class Adaptive(nn.Module):
    """Adaptive computation time: as many steps as the input wants."""

    def __init__(self):
        super().__init__()
        self.step, self.halt = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        total, steps = clew.zeros(x.shape[0], 1), 0
        while total.min() < 1.0 and steps < 10:
            x = clew.tanh(self.step(x))
            total = total + clew.sigmoid(self.halt(x))
            steps += 1
        return x, total, steps


class TreeLstm(nn.Module):
    """Over an array-coded tree: children come before their parents, -1 is no child."""

    def __init__(self):
        super().__init__()
        self.leaf, self.join = nn.Linear(3, 5), nn.Linear(10, 5)

    def forward(self, x, left, right):
        h = clew.zeros(x.shape[0], 5)
        for i in range(x.shape[0]):
            if left[i] >= 0:
                pair = clew.cat([h[left[i]], h[right[i]]])
                h[i] = clew.tanh(self.join(pair))
            else:
                h[i] = clew.tanh(self.leaf(x[i]))
        return h[-1]


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean = nn.Linear(4, 8), nn.Linear(8, 2)
        self.log_std = nn.Parameter(clew.zeros(2))

    def forward(self, observation):
        mean = self.mean(clew.tanh(self.body(observation)))
        std = self.log_std.clamp(-5, 2).exp()
        log_prob = -0.5 * ((mean / std) ** 2).sum(-1) - std.log().sum() - math.log(2 * math.pi)
        return mean.clamp(-1, 1), log_prob


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Linear(2, 4) for _ in range(3))

    def forward(self, x):
        total = x.new_zeros(x.shape[0])
        for net in self.nets:
            a, b = x[:, :2], x[:, 2:]
            scale, shift = net(a).chunk(2, 1)
            scale = clew.tanh(scale)
            x = clew.cat([b * scale.exp() + shift, a], 1)
            total += scale.sum(1)
        return x, -0.5 * (x**2).sum(1) + total


class EarlyReturn(nn.Module):
    def __init__(self):
        super().__init__()
        self.small, self.large = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        score = x.mean()
        if score > 1:
            return self.large(x)
        elif score > 0:
            x = x * 2
        for layer in (self.small, self.large):
            x = layer(x)
            if x.sum() < 0:
                return -x
        return self.small(x) if x.max() > 0.5 else x


def tree(n, kind):
    """Arrays of a tree with n nodes."""
    left, right = [-1] * n, [-1] * n
    for i in range(2, n, 2):
        left[i], right[i] = i - 1, i - 2
    if kind:
        left = [-1] * n
    return clew.randn(n, 3), clew.tensor(left), clew.tensor(right)


def kv(b, t, n):
    return clew.randn(b, n, 8), clew.randn(b, 2, t, 4), clew.randn(b, 2, t, 4)


def graph(n, e):
    return clew.randn(n, 4), clew.randint(0, n, (2, e))


B, T, H, W, N, E = (Dim(n) for n in "batch time height width nodes edges".split())
CASES = {
    "mlp": Case(mlp, lambda b: (clew.randn(b, 6),), (4,), [(1,), (7,), (33,)], ({0: B},)),
    "resnet": Case(
        ResNet, lambda b, h, w: (clew.randn(b, 3, h, w),), (2, 16, 16),
        [(1, 16, 20), (3, 24, 16), (2, 33, 17)], ({0: B, 2: H, 3: W},),
    ),
    "mobile": Case(
        lambda: MobileBlock(6), lambda b, h: (clew.randn(b, 6, h, h),), (2, 8),
        [(1, 9), (3, 5), (2, 16)], ({0: B, 2: H, 3: H},),
    ),
    "unet": Case(
        UNet, lambda b, h, w: (clew.randn(b, 2, h, w),), (2, 16, 16),
        [(1, 16, 24), (3, 8, 8), (2, 32, 16)], ({0: B, 2: 8 * Dim("h8"), 3: 8 * Dim("w8")},),
    ),
    "lstm": Case(
        lambda: Recurrent(nn.LSTM), lambda b, t: (clew.randn(b, t, 5),), (2, 4),
        [(1, 3), (3, 6), (2, 1)], ({0: B, 1: T},),
    ),
    "gru": Case(
        lambda: Recurrent(nn.GRU), lambda b, t: (clew.randn(b, t, 5),), (2, 4),
        [(1, 3), (3, 6), (2, 1)], ({0: B, 1: T},),
    ),
    "lstm by hand": Case(
        LstmByHand, lambda b, t: (clew.randn(b, t, 4),), (2, 4), [(1, 3), (3, 6), (2, 1)],
        ({0: B, 1: T},),
    ),
    "encoder": Case(
        Encoder, lambda b, t: (clew.randn(b, t, 8),), (2, 5), [(1, 3), (3, 7), (4, 1)],
        ({0: B, 1: T},),
    ),
    "gpt": Case(
        Gpt, lambda b, t: (clew.randint(0, 11, (b, t)),), (2, 5), [(1, 3), (3, 7), (4, 1)],
        ({0: B, 1: Dim("time", max=32)},),
    ),
    "sampler": Case(
        GptSampler, lambda b, t: (clew.randint(0, 11, (b, t)),), (2, 5), [(1, 3), (3, 7), (1, 1)],
        ({0: B, 1: Dim("time", max=20)},),
    ),
    "decoder with cache": Case(
        CachedDecoder, kv, (2, 5, 1), [(1, 3, 1), (3, 7, 1), (2, 1, 1)],
        ({0: B}, {0: B, 2: T}, {0: B, 2: T}),
    ),
    "vit": Case(
        ViT, lambda b: (clew.randn(b, 3, 8, 8),), (2,), [(1,), (3,), (5,)], ({0: B},)
    ),
    "message passing": Case(
        MessagePassing, graph, (5, 9), [(3, 4), (8, 20), (2, 1)], ({0: N}, {1: E})
    ),
    "experts": Case(
        Experts, lambda b: (clew.randn(b, 4),), (6,), [(1,), (9,), (2,), (0,)], ({0: B},)
    ),
    "adaptive": Case(
        Adaptive, lambda b: (clew.randn(b, 4),), (3,), [(1,), (5,), (2,)], ({0: B},)
    ),
    "tree lstm": Case(
        TreeLstm, tree, (5, 0), [(3, 0), (9, 0), (1, 0), (5, 1)], ({0: N}, {0: N}, {0: N})
    ),
    "policy": Case(Policy, lambda b: (clew.randn(b, 4),), (1,), [(2,), (5,), (3,)], ({0: B},)),
    "flow": Case(Flow, lambda b: (clew.randn(b, 4),), (3,), [(1,), (5,), (2,)], ({0: B},)),
    "early return": Case(
        EarlyReturn, lambda b, s: (clew.randn(b, 3) + s,), (3, 0),
        [(1, 3), (5, -2), (2, 0), (4, 1)],
        ({0: B},),
    ),
}  # fmt: skip


def make(name, seed=0):
    """The model of a case in evaluation mode, its example and its unseen inputs."""
    case = CASES[name]
    clew.manual_seed(seed)
    model = case.model().eval()
    unseen = [case.inputs(*sizes) for sizes in case.unseen for _ in range(2)]
    return case, model, case.inputs(*case.example), unseen
