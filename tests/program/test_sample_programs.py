"""Programs for one sample, as users write them: plain, in a region of autobatch, and through map,
with the same results and gradients.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import clew
from clew import nn
from clew._program import autobatch

F = nn.functional
D = 6


def tree(rng, depth, arities=(2,)):
    """Nested lists of numbers."""
    if depth == 0 or rng.random() > 0.75:
        return rng.randrange(20)
    return [tree(rng, depth - 1, arities) for _ in range(rng.choice(arities))]


def tree_lstm(rng):
    leaf, join = nn.Embedding(20, D), nn.Linear(2 * D, 5 * D)

    def node(t):
        if isinstance(t, int):
            x = leaf(clew.tensor(t))
            return x.tanh(), x
        (h1, c1), (h2, c2) = map(node, t)
        i, f1, f2, o, u = join(clew.cat([h1, h2])).chunk(5)
        c = i.sigmoid() * u.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c

    return lambda t: node(t)[0], [tree(rng, 4) for _ in range(6)], [leaf, join]


def trees_of_other_arities(rng):
    leaf = nn.Embedding(20, D)
    joins = nn.ModuleList([nn.Linear(D * k, D) for k in (1, 2, 3)])

    def node(t):
        if isinstance(t, int):
            return leaf.weight[t]
        return joins[len(t) - 1](clew.cat([node(k) for k in t])).relu()

    return node, [tree(rng, 4, (1, 2, 3)) for _ in range(6)], [leaf, joins]


def lstm_on_a_graph_without_circles(rng):
    cell = nn.LSTMCell(4, D)

    def run(sample):
        states = []
        for x, parents in zip(*sample):
            h = c = clew.zeros(D)
            if parents:
                h = clew.stack([states[p][0] for p in parents]).amax(0)
                c = clew.stack([states[p][1] for p in parents]).mean(0)
            states.append(cell(x, (h, c)))
        return states[-1][0]

    def sample():
        n = rng.randrange(3, 7)
        return clew.randn(n, 4), [[p for p in range(i) if rng.random() < 0.5] for i in range(n)]

    return run, [sample() for _ in range(5)], [cell]


def module_network(rng):
    find, relate, both = nn.Linear(8, 4), nn.Linear(4, 4), nn.Bilinear(4, 4, 4)

    def layout(depth):
        kind = rng.choice(["find", "relate", "both"]) if depth else "find"
        return (kind, *[layout(depth - 1) for _ in range({"relate": 1, "both": 2}.get(kind, 0))])

    def run(sample):
        image, program = sample

        def value(p):
            if p[0] == "find":
                return find(image).softmax(-1)
            inner = [value(q) for q in p[1:]]
            return relate(*inner).relu() if p[0] == "relate" else both(*inner)

        return value(program)

    return run, [(clew.randn(8), layout(3)) for _ in range(6)], [find, relate, both]


def stack_machine(rng):
    word = nn.Embedding(10, D)
    rules = nn.ModuleList([nn.Linear(2 * D, D) for _ in range(3)])

    def run(program):
        stack = []
        for token in program:
            if token < 0:
                b, a = stack.pop(), stack.pop()
                stack.append(rules[-token - 1](clew.cat([a, b])).tanh())
            else:
                stack.append(word(clew.tensor(token)))
        return stack[-1]

    def program():
        made = [rng.randrange(10)]
        for _ in range(rng.randrange(1, 5)):
            made += [rng.randrange(10), -rng.randrange(1, 4)]
        return made

    return run, [program() for _ in range(6)], [word, rules]


def one_graph_at_a_time(rng):
    embed, message, update = nn.Linear(4, D), nn.Linear(D, D), nn.GRUCell(D, D)

    def run(sample):
        x, source, target = sample
        h = embed(x)
        for _ in range(2):
            h = update(clew.zeros_like(h).index_add(0, target, message(h)[source]), h)
        return h.sum(0)

    def sample():
        n = rng.randrange(4, 8)
        edges = [clew.tensor([rng.randrange(n) for _ in range(2 * n)]) for _ in range(2)]
        return clew.randn(n, 4), *edges

    return run, [sample() for _ in range(5)], [embed, message, update]


def translation_with_attention(rng):
    word, reader = nn.Embedding(9, D), nn.GRUCell(D, D)
    writer, out = nn.GRUCell(2 * D, D), nn.Linear(2 * D, 9)

    def run(sample):
        h, seen = clew.zeros(D), []
        for token in sample[0]:
            h = reader(word(token), h)
            seen.append(h)
        memory, loss, context = clew.stack(seen), 0.0, clew.zeros(D)
        for before, after in zip(sample[1], sample[1][1:]):
            h = writer(clew.cat([word(before), context]), h)
            context = (memory @ h).softmax(0) @ memory
            loss = loss + F.cross_entropy(out(clew.cat([h, context])), after)
        return loss

    def text():
        return clew.tensor([rng.randrange(9) for _ in range(rng.randrange(2, 6))])

    return run, [(text(), text()) for _ in range(5)], [word, reader, writer, out]


def documents_of_sentences(rng):
    word, sentence, document = nn.Embedding(9, D), nn.LSTMCell(D, D), nn.LSTMCell(D, D)

    def folded(cell, inputs):
        state = clew.zeros(D), clew.zeros(D)
        for x in inputs:
            state = cell(x, state)
        return state[0]

    def run(doc):
        texts = [folded(sentence, (word(clew.tensor(t)) for t in text)) for text in doc]
        return folded(document, texts)

    def text():
        return [rng.randrange(9) for _ in range(rng.randrange(1, 4))]

    samples = [[text() for _ in range(rng.randrange(1, 4))] for _ in range(5)]
    return run, samples, [word, sentence, document]


def set_pooling(rng):
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    embed, norm = nn.Linear(3, 8), nn.LayerNorm(8)

    def run(points):
        h = embed(points)[None]
        h = norm(h + attention(h, h, h, need_weights=False)[0])
        return h.amax(1)[0]

    return run, [clew.randn(rng.randrange(2, 6), 3) for _ in range(5)], [attention, embed, norm]


def routed_capsules(rng):
    weight = nn.ParameterList([clew.randn(4, 3, 5, D) * 0.3])

    def run(u):
        votes = clew.einsum("id,ijde->ije", u, weight[0][: u.shape[0]])
        logits = clew.zeros(u.shape[0], 3)
        for _ in range(3):
            s = (logits.softmax(1)[..., None] * votes).sum(0)
            n = s.norm(dim=-1, keepdim=True)
            v = s * n / (1 + n * n)
            logits = logits + (votes * v).sum(-1)
        return v.norm(dim=-1)

    return run, [clew.randn(rng.choice([3, 4]), 5) for _ in range(5)], [weight]


def weights_of_each_sample(rng):
    maker = nn.Linear(4, 3 * 5 + 3)

    def run(sample):
        z, x = sample
        made = maker(z)
        return F.linear(x, made[:15].view(3, 5), made[15:]).tanh()

    return run, [(clew.randn(4), clew.randn(5)) for _ in range(5)], [maker]


def learning_to_learn(rng):
    start = nn.ParameterList([clew.randn(1, 3)])

    def run(sample):
        x, y, x2, y2 = sample
        w = start[0]
        for _ in range(2):
            (g,) = clew.autograd.grad(((x @ w.t() - y) ** 2).mean(), w, create_graph=True)
            w = w - 0.1 * g
        return ((x2 @ w.t() - y2) ** 2).mean()

    return run, [tuple(clew.randn(5, k) for k in (3, 1, 3, 1)) for _ in range(4)], [start]


def energy_and_force(rng):
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def run(x):
        x = x.clone().requires_grad_()
        energy = net(x).sum()
        (force,) = clew.autograd.grad(energy, x, create_graph=True)
        return force.square().sum() + energy

    return run, [clew.randn(rng.choice([2, 3]), 3) for _ in range(5)], [net]


def thinking_as_long_as_needed(rng):
    cell, halt = nn.GRUCell(4, D), nn.Linear(D, 1)

    def run(x):
        h, total, out, steps = clew.zeros(D), 0.0, clew.zeros(D), 0
        while total < 0.99 and steps < 6:
            h = cell(x, h)
            p = halt(h).sigmoid()
            out, total, steps = out + p * h, total + p.item(), steps + 1
        return out

    return run, [clew.randn(4) for _ in range(5)], [cell, halt]


def experts_of_each_token(rng):
    gate, experts = nn.Linear(5, 3), nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])

    def run(tokens):
        out = []
        for x in tokens:
            weights, chosen = gate(x).softmax(-1).topk(2)
            out.append(sum(weights[k] * experts[int(chosen[k])](x) for k in range(2)))
        return clew.stack(out).sum(0)

    return run, [clew.randn(rng.randrange(2, 5), 5) for _ in range(4)], [gate, experts]


def beams(rng):
    word, cell, out = nn.Embedding(7, 5), nn.GRUCell(5, D), nn.Linear(D, 7)

    def run(h0):
        kept = [(clew.tensor(0.0), 0, h0)]
        for _ in range(3):
            found = []
            for score, last, h in kept:
                h = cell(word(clew.tensor(last)), h)
                best = out(h).log_softmax(-1).topk(2)
                for value, token in zip(best.values, best.indices):
                    found.append((score + value, token.item(), h))
            kept = sorted(found, key=lambda b: -b[0].item())[:2]
        return kept[0][0]

    return run, [clew.randn(D) for _ in range(4)], [word, cell, out]


def leaving_early(rng):
    layers = nn.ModuleList([nn.Linear(5, 5) for _ in range(4)])
    heads = nn.ModuleList([nn.Linear(5, 2) for _ in range(4)])

    def run(x):
        for layer, head in zip(layers, heads):
            x = layer(x).relu()
            y = head(x)
            if y.softmax(-1).max() > 0.6:
                break
        return y

    return run, [clew.randn(5) for _ in range(6)], [layers, heads]


def conditional_random_field(rng):
    score = nn.Linear(4, 3)
    change = nn.ParameterList([clew.randn(3, 3)])

    def run(sample):
        emitted, labels = score(sample[0]), sample[1]
        total = emitted[0]
        gold = emitted[0, labels[0]]
        for t in range(1, len(labels)):
            total = (total[:, None] + change[0] + emitted[t][None]).logsumexp(0)
            gold = gold + change[0][labels[t - 1], labels[t]] + emitted[t, labels[t]]
        return total.logsumexp(0) - gold

    samples = [(clew.randn(n, 4), [rng.randrange(3) for _ in range(n)]) for n in (2, 4, 3, 5)]
    return run, samples, [score, change]


def memory_that_is_written(rng):
    cell, keys, values = nn.LSTMCell(7, D), nn.Linear(D, 3), nn.Linear(D, 3)

    def run(inputs):
        memory, state, read = clew.full((4, 3), 0.1), (clew.zeros(D), clew.zeros(D)), clew.zeros(3)
        for x in inputs:
            state = cell(clew.cat([x, read]), state)
            at = F.cosine_similarity(memory, keys(state[0])[None], dim=1).softmax(0)
            read = at @ memory
            memory = memory + at[:, None] * values(state[0])
        return read

    return run, [clew.randn(rng.randrange(1, 5), 4) for _ in range(5)], [cell, keys, values]


def rows_written_in_place(rng):
    layer = nn.Linear(4, 4)

    def run(inputs):
        rows = clew.zeros(6, 4)
        for i, x in enumerate(inputs):
            rows[i] = layer(x)
        rows[1:] += 1
        return rows.cumsum(0)

    return run, [clew.randn(rng.randrange(1, 5), 4) for _ in range(5)], [layer]


def a_teacher_without_gradients(rng):
    student, teacher = nn.Linear(4, 4), nn.Linear(4, 4)

    def run(x):
        with clew.no_grad():
            wanted = teacher(x).softmax(-1)
        return F.kl_div(student(x).log_softmax(-1), wanted, reduction="sum")

    return run, [clew.randn(4) for _ in range(5)], [student]


def generators_of_states(rng):
    cell, out = nn.GRUCell(4, D), nn.Linear(D, 2)

    def states(inputs):
        h = clew.zeros(D)
        for x in inputs:
            h = cell(x, h)
            yield out(h)

    return (
        lambda inputs: sum(states(inputs)),
        [clew.randn(rng.randrange(1, 5), 4) for _ in range(5)],
        [cell, out],
    )


def dropped_and_normalized(rng):
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
    )
    with clew.no_grad():
        net[1].running_mean.normal_()
    net[1].eval()
    return net, [clew.randn(rng.choice([1, 2]), 4) for _ in range(6)], [net]


def small_images(rng):
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.AdaptiveAvgPool2d(1)
    )
    return net, [clew.randn(1, 1, rng.choice([8, 10]), 8) for _ in range(5)], [net]


def recomputed(rng):
    first, inner = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def run(x):
        return clew.utils.checkpoint.checkpoint(inner, first(x), use_reentrant=False).sin()

    return run, [clew.randn(4) for _ in range(4)], [first, inner]


PROGRAMS = [
    tree_lstm,
    trees_of_other_arities,
    lstm_on_a_graph_without_circles,
    module_network,
    stack_machine,
    one_graph_at_a_time,
    translation_with_attention,
    documents_of_sentences,
    set_pooling,
    routed_capsules,
    weights_of_each_sample,
    learning_to_learn,
    energy_and_force,
    thinking_as_long_as_needed,
    experts_of_each_token,
    beams,
    leaving_early,
    conditional_random_field,
    memory_that_is_written,
    rows_written_in_place,
    a_teacher_without_gradients,
    generators_of_states,
    dropped_and_normalized,
    small_images,
    recomputed,
]
WAITING = {tree_lstm, translation_with_attention, stack_machine, documents_of_sentences}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", ["region", "map"])
def test_programs(program, way):
    if way == "map":
        pytest.importorskip("greenlet")
    clew.manual_seed(len(program.__name__))
    run, samples, modules = program(random.Random(3))
    parameters = [p for m in modules for p in m.parameters()]
    autobatch._history.clear()

    def outcome(evaluate):
        for p in parameters:
            p.grad = None
        clew.manual_seed(7)
        results = evaluate()
        sum(r.square().sum() for r in results).backward()
        return results, [p.grad for p in parameters]

    def batched():
        if way == "map":
            return clew.autobatch.map(run, samples)
        with clew.autobatch():
            return [run(s) for s in samples]

    plain, plain_grads = outcome(lambda: [run(s) for s in samples])
    got, got_grads = outcome(batched)
    report = clew.autobatch.report()
    assert [g is None for g in got_grads] == [g is None for g in plain_grads]
    for a, b in zip(got + got_grads, plain + plain_grads, strict=True):
        if b is None:  # a module that no sample chose
            continue
        a, b = a.detach().numpy(), b.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(np.abs(b).max(), 1e-2))
    if program in WAITING:
        assert len(report.groups) < report.calls / 2
