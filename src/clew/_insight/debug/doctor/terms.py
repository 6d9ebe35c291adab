"""Terms of a loss: divergences of the wrong sign, several labels where one is expected, padding,
labels that are the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import name_of
from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call
from clew._insight.debug.place import Place, placed


def _signs(node: Any, sign: float, turned: Any = None) -> list[tuple[float, Any, Any]]:
    """The nodes that an expression adds up, each with its sign and the outermost node that turned
    it; numbers and constants are left out. A product of two values ends it."""
    pending = [(sign, node, turned)]
    found: list[tuple[float, Any, Any]] = []
    while pending and len(found) < 64:
        now, at, by = pending.pop()
        kind = name_of(at)
        below = [fn for fn, _ in at.next_functions]
        alone = len([fn for fn in below if fn is not None]) == 1
        if kind in ("Add", "Sub", "Rsub") and len(below) == 2:
            factors = {"Add": (1.0, 1.0), "Sub": (1.0, -1.0), "Rsub": (-1.0, 1.0)}[kind]
        elif kind == "Neg":
            factors = (-1.0, -1.0)
        elif kind in ("Mul", "Div") and alone and (factor := _number(at)) is not None:
            factors = (factor, factor)
        else:
            found.append((now, at, by))
            continue
        for fn, factor in zip(below, factors):
            if fn is not None:
                pending.append((now * factor, fn, by or (at if factor < 0 else None)))
    return found


def _number(node: Any) -> float | None:
    """The sign of the number that a value is multiplied with or divided by."""
    saved = [t for t in node.saved_tensors if t is not None and t.numel() == 1]
    if len(saved) != 1:
        return None
    return float(np.sign(float(values(saved[0]).reshape(-1)[0])))


class DivergenceSign(Reading):
    mistake = "a KL divergence has the wrong sign"

    def read(self, graph: Recorded) -> None:
        roots = graph.roots
        node = roots[0].grad_fn if len(roots) == 1 else None
        if node is None:
            return
        for sign, term, turned in _signs(node, 1.0):
            inner, now, by = term, sign, turned
            for _ in range(3):  # a sum over the latent, then a mean over the batch
                if name_of(inner) not in ("Sum", "Mean"):
                    break
                parts = _signs(inner.next_functions[0][0], now, by)
                if self._is_divergence(parts):
                    self._tell(placed(inner._place), by and placed(by._place))
                    return
                if len(parts) != 1:
                    break
                now, inner, by = parts[0]

    def _tell(self, summed: Place | None, turned: Place | None) -> None:
        # A divergence that is right by itself may be subtracted later.
        later = turned is not None and summed is not None and turned.line != summed.line
        self.find(
            turned if later else summed,
            "the term 1 + log(var) - mean^2 - var of a divergence is never above 0, and is added "
            "to the loss as it is: the loss falls without end while the latent leaves the prior",
            "add the divergence: -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum()",
        )

    @staticmethod
    def _is_divergence(parts: list[tuple[float, Any, Any]]) -> bool:
        """Whether a logarithm is added, and its exponential and a square subtracted."""
        plain = [n for s, n, _ in parts if s > 0]
        less = [n for s, n, _ in parts if s < 0]
        exps = [n for n in less if name_of(n) == "Exp"]
        squares = [
            n
            for n in less
            if name_of(n) in ("Pow", "Square")
            or (name_of(n) == "Mul" and len({fn for fn, _ in n.next_functions}) == 1)
        ]
        if (len(plain), len(exps), len(squares), len(parts)) != (1, 1, 1, 3):
            return False
        return bool(exps[0].next_functions[0][0] is plain[0])


class SeveralLabels(Reading):
    mistake = "several labels of a sample go into cross_entropy"

    MANY = 4

    def read(self, graph: Recorded) -> None:
        for i in graph.all("mul"):
            edges = [graph.maker(i, 0), graph.maker(i, 1)]
            made = [e for e in edges if e is not None]
            if len(made) != 1 or graph.ops[made[0][0]] != "log_softmax":
                continue
            # cross_entropy() does both in one call; sums over several positives by hand do not.
            if graph.raw_place(i) != graph.raw_place(made[0][0]):
                continue
            node = graph.node(i)
            saved = [t for t in node.saved_tensors if t is not None] if node is not None else []
            if len(saved) != 1 or tuple(saved[0].shape) != graph.shape(i) or saved[0].dim() < 2:
                continue
            y = values(saved[0])
            if not ((y == 0) | (y == 1)).all():
                continue
            counts = y.sum(1)
            if (counts > 1).sum() < self.MANY:
                continue
            self.find(
                graph.place(i),
                f"the targets of shape {tuple(y.shape)} are zeros and ones, up to "
                f"{int(counts.max())} ones for a sample: cross_entropy takes them for one "
                "distribution, in which the classes exclude each other",
                "use binary_cross_entropy_with_logits, which asks for each class by itself",
            )


class PaddingCounted(Rule):
    mistake = "padding is counted in the loss"
    operations = ("_cross_entropy", "_nll_loss")

    ROUNDS = 3
    SHARE = 0.05  # of the labels

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[Any]] = {}  # by line: rounds, the last evidence, the padding
        self.paddings: tuple[int, dict[int, set[int]]] = (-1, {})

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        out = call.outputs[0]
        if x.grad_fn is None or y.is_floating_point() or y.numel() < 32 or out.numel() != 1:
            return
        classes = x.shape[1] if x.dim() > 1 else 0
        for index in self._padding(classes):
            v = values(y)
            hits = v == index
            share = float(hits.mean())
            # What is left out counts in no mean: there a mean over all is another one.
            if share < self.SHARE or share > 0.95 or self._is_left_out(out, index):
                continue
            flat = hits.reshape(-1)
            runs = int((np.diff(flat.astype(np.int8)) == 1).sum()) + int(flat[0])
            if flat.sum() < 1.5 * runs:
                continue  # it does not stand in rows, as padding does
            seen = self.seen.setdefault(call.key, [set(), call.place, "", index])
            seen[0].add(self.run.round)
            seen[2] = (
                f"{int(flat.sum())} of {flat.size} labels are {index}, the padding_idx of the "
                f"embedding of {classes} tokens, and the loss counts them like all others"
            )
            if len(seen[0]) >= self.ROUNDS:
                self.find(
                    seen[1],
                    seen[2],
                    f"leave them out: cross_entropy(..., ignore_index={index})",
                )

    def _padding(self, classes: int) -> set[int]:
        """The padding of the embeddings that have as many tokens as there are classes."""
        count, found = self.paddings
        models = self.run.models
        if count != len(models):
            from clew import nn

            found = {}
            for module in (m for model in models for m in model.modules()):
                if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                    found.setdefault(module.num_embeddings, set()).add(module.padding_idx)
            self.paddings = (len(models), found)
        return found.get(classes, set())

    @staticmethod
    def _is_left_out(loss: Tensor, index: int) -> bool:
        from clew import _C

        attributes = _C._export_graph((loss,))["attributes"]
        return any(a and a.get("ignore_index") == index for a in attributes)


class LabelsAreInputs(Reading):
    mistake = "a language model's labels are its inputs"

    def read(self, graph: Recorded) -> None:
        losses = list(graph.all("_cross_entropy", "_nll_loss"))
        tokens = [i for i in graph.all("_embedding") if len(graph.shape(i)) >= 3]
        if len(losses) != 1 or len(tokens) != 1 or not self._is_causal(graph):
            return
        loss = losses[0]
        given, wanted = graph.node(tokens[0]), graph.node(loss)
        if given is None or wanted is None:
            return
        indices = [t for t in given.saved_tensors if t is not None and t.dtype.name == "int64"]
        labels = [t for t in wanted.saved_tensors if t is not None and t.dtype.name == "int64"]
        if len(indices) != 1 or len(labels) != 1 or indices[0].shape[-1] < 4:
            return
        one, two = values(indices[0]), values(labels[0])
        if one.size < 32 or one.size != two.size or len(np.unique(one)) < 4:
            return
        if not np.array_equal(one.reshape(-1), two.reshape(-1)):
            return
        self.find(
            graph.place(loss),
            f"all {one.size} labels are the tokens that the model got at the same places, and it "
            "sees no later ones: it learns to copy, not to predict",
            "shift them: model(tokens[:, :-1]) against tokens[:, 1:]",
        )

    @staticmethod
    def _hides(node: Any) -> bool:
        """Whether attention was given a mask that lets no place see later ones."""
        for t in node.saved_tensors if node is not None else ():
            if t is None or t.dim() < 2 or t.shape[-1] != t.shape[-2]:
                continue
            mask = values(t).reshape(-1, *t.shape[-2:])[0]
            hidden = ~mask if mask.dtype.kind == "b" else mask == -np.inf
            if hidden[np.triu_indices(len(mask), 1)].all():
                return True
        return False

    def _is_causal(self, graph: Recorded) -> bool:
        """Whether no place sees later ones: masked attention, or recurrence one way whose last
        state alone is not what goes on."""
        seen = False
        for i in graph.all("_attention", "softmax", "_recurrent"):
            if graph.ops[i] == "_recurrent":
                last = any(
                    (edge := graph.maker(j, a)) is not None and edge[1] > 0
                    for j, a in graph.consumers(i)
                )
                if graph.attributes(i).get("reverse") or last:
                    return False
            elif graph.ops[i] == "_attention":
                if not graph.attributes(i).get("causal") and not self._hides(graph.node(i)):
                    return False
            else:
                node = graph.node(i)
                saved = [t for t in node.saved_tensors if t is not None] if node else []
                weights = values(saved[0]) if saved else np.zeros((1, 1))
                if weights.ndim < 3 or weights.shape[-1] != weights.shape[-2]:
                    return False
                if np.triu(weights.reshape(-1, *weights.shape[-2:])[0], 1).any():
                    return False
            seen = True
        return seen


class LaterTokensSeen(Reading):
    mistake = "a language model sees the tokens that it is to predict"

    FEW = 32  # labels

    def read(self, graph: Recorded) -> None:
        losses = list(graph.all("_cross_entropy", "_nll_loss"))
        tokens = [i for i in graph.all("_embedding") if len(graph.shape(i)) == 3]
        attention = list(graph.all("_attention", "softmax"))
        if len(losses) != 1 or len(tokens) != 1 or not attention:
            return
        if any(graph.all("_recurrent")) or not self._follow(graph, tokens[0], losses[0]):
            return
        length = graph.shape(tokens[0])[1]
        seen = [self._sees_later(graph, i, length, tokens[0]) for i in attention]
        if not all(seen):
            return
        self.find(
            graph.place(attention[0]),
            f"each label is the token after, and all {length} places of a text look at all others: "
            "each is shown the token that it is to predict, which no text will have that is yet "
            "to be written",
            "hide what comes later: is_causal=True, or a mask by "
            "nn.Transformer.generate_square_subsequent_mask(length)",
        )

    def _follow(self, graph: Recorded, tokens: int, loss: int) -> bool:
        """Whether each label that counts is the token after the one at its place."""
        pair = []
        for node in (graph.node(tokens), graph.node(loss)):
            saved = [t for t in node.saved_tensors if t is not None] if node is not None else []
            whole = [t for t in saved if t.dtype.name == "int64"]
            if len(whole) != 1:
                return False
            pair.append(values(whole[0]))
        ids, labels = pair
        if ids.ndim != 2 or ids.size != labels.size or ids.shape[1] < 3:
            return False
        after, wanted = ids[:, 1:], labels.reshape(ids.shape)[:, :-1]
        counts = wanted >= 0
        if counts.sum() < self.FEW or len(np.unique(wanted[counts])) < 4:
            return False
        return bool((after == wanted)[counts].all())

    @staticmethod
    def _sees_later(graph: Recorded, i: int, length: int, tokens: int) -> bool:
        """Whether attention of the tokens to themselves has each place look at all others."""
        node = graph.node(i)
        saved = list(node.saved_tensors) if node is not None else []
        if graph.ops[i] == "_attention":
            # Saved are queries, keys, values, the mask if there is one, and two results.
            if graph.attributes(i).get("causal") or len(saved) != 5:
                return False
            key: Any = graph.maker(i, 1)
        else:
            weights = values(saved[0]) if saved and saved[0] is not None else np.zeros((0, 0))
            if weights.ndim < 3 or weights.shape[-2:] != (length, length) or not weights.all():
                return False
            edge = graph.maker(i)
            while edge is not None and graph.ops[edge[0]] in ("div", "mul", "add", "_to_dtype"):
                edge = graph.maker(edge[0])
            if edge is None or graph.ops[edge[0]] not in ("matmul", "bmm"):
                return False
            key = graph.maker(edge[0], 1)
        pending, known = [key], set()
        while pending:
            edge = pending.pop()
            if edge is None or edge[0] in known:
                continue
            known.add(edge[0])
            pending += graph.inputs[edge[0]]
        return tokens in known


class VarianceForDeviation(Reading):
    """Of what is drawn as mean + noise * exp(x), and kept near the prior by a divergence in which
    exp(x) is the variance."""

    mistake = "noise is scaled by the variance"

    def read(self, graph: Recorded) -> None:
        exps: dict[Any, list[int]] = {}
        for i in graph.all("exp"):
            exps.setdefault(graph.maker(i), []).append(i)
        for log, nodes in exps.items():
            if log is None:
                continue
            for i in nodes:
                mean = self._mean(graph, i)
                if mean is not None and self._is_divergence(graph, log, nodes, mean):
                    self.find(
                        graph.place(i),
                        f"noise of shape {graph.shape(i)} is multiplied by exp() of what the "
                        "divergence takes for the logarithm of the variance: that is the variance, "
                        "and the deviation is its root",
                        "give the deviation: torch.exp(0.5 * logvar)",
                    )
                    return

    @staticmethod
    def _mean(graph: Recorded, i: int) -> Any:
        """What the product of noise and this is added to."""
        for j, argument in graph.consumers(i):
            if graph.ops[j] != "mul" or graph.maker(j, 1 - argument) is not None:
                continue
            node = graph.node(j)
            saved = [t for t in node.saved_tensors if t is not None] if node is not None else []
            noise = [values(t) for t in saved if tuple(t.shape) == graph.shape(i)]
            if not any(v.size > 1 and v.min() < 0 < v.max() for v in noise):
                continue
            for k, place in graph.consumers(j):
                if graph.ops[k] == "add":
                    return graph.maker(k, 1 - place)
        return None

    @staticmethod
    def _is_divergence(graph: Recorded, log: Any, exps: list[int], mean: Any) -> bool:
        """Whether exp(log) is subtracted, log itself added, and the mean squared."""
        taken = any(graph.ops[j] in ("sub", "add") for i in exps for j, _ in graph.consumers(i))
        added = any(
            graph.ops[j] in ("sub", "add") and graph.maker(j, a) == log
            for j, a in graph.consumers(log[0])
        )
        squared = any(
            graph.maker(j, a) == mean
            and (graph.ops[j] in ("pow", "square") or graph.inputs[j] == [mean, mean])
            for j, a in graph.consumers(mean[0])
        )
        return taken and added and squared
