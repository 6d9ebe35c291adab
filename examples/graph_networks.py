"""Three graph networks find the groups of a social network from few known members.

The network is made (a stochastic block model): friends mostly belong to the same group, and what a
person says about itself is noise for the most part. So whoever looks at one person alone guesses
badly, and messages along the edges help. GCN: Kipf and Welling (2017); GraphSAGE: Hamilton et al.
(2017); GAT: Velickovic et al. (2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import clew
import clew.nn.functional as F
from clew import nn, optim


class Graph(NamedTuple):
    """Edges as CSR matrices (person by person), features, groups, who is known in training."""

    gcn: clew.Tensor  # D^-1/2 (A + I) D^-1/2
    mean: clew.Tensor  # D^-1 A
    self_and_friends: clew.Tensor  # A + I, only its places are used
    features: clew.Tensor
    group: clew.Tensor
    known: clew.Tensor


def make(people: int = 800, groups: int = 4, features: int = 16, seed: int = 0) -> Graph:
    """Draws a network; a person has about 9 friends in the own group, 3 in others."""
    g = clew.Generator().manual_seed(seed)
    group = clew.arange(people) % groups
    same = group.unsqueeze(0) == group.unsqueeze(1)
    chance = clew.where(same, 9.0 * groups / people, 3.0 * groups / people / (groups - 1))
    upper = (clew.rand(people, people, generator=g) < chance).float().triu(1)
    adjacent = upper + upper.t()
    loops = adjacent + clew.eye(people)
    root = loops.sum(1).rsqrt()
    told = F.one_hot(group, features).float() + clew.randn(people, features, generator=g)
    return Graph(
        gcn=(root.unsqueeze(1) * loops * root).to_sparse_csr(),
        mean=(adjacent / adjacent.sum(1, keepdim=True).clamp(min=1)).to_sparse_csr(),
        self_and_friends=loops.to_sparse_csr(),
        features=told,
        group=group,
        known=clew.rand(people, generator=g) < 0.1,
    )


class Alone(nn.Module):
    """No messages: what a person says, for comparison."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)

    def forward(self, graph: Graph, x: clew.Tensor) -> clew.Tensor:
        return self.own(x)


class GCN(Alone):
    """The weighted mean of one's own and one's friends' features."""

    def forward(self, graph: Graph, x: clew.Tensor) -> clew.Tensor:
        return graph.gcn @ self.own(x)


class SAGE(nn.Module):
    """One's own features and the mean of one's friends', each with its own weights."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own, self.friends = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, graph: Graph, x: clew.Tensor) -> clew.Tensor:
        return self.own(x) + self.friends(graph.mean @ x)


class GAT(nn.Module):
    """Each edge's weight is a softmax over the scores of one's edges; the scores are learnt."""

    def __init__(self, inputs: int, outputs: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(inputs, outputs // heads) for _ in range(heads))
        self.ends = nn.ModuleList(nn.Linear(outputs // heads, 2) for _ in range(heads))

    def forward(self, graph: Graph, x: clew.Tensor) -> clew.Tensor:
        edges, outputs = graph.self_and_friends, []
        crow, col = edges.crow_indices(), edges.col_indices()
        row = clew.arange(len(x)).repeat_interleave(crow.diff())
        for head, ends in zip(self.heads, self.ends):
            h = head(x)
            to, source = ends(h).unbind(1)
            scores = F.leaky_relu(to[row] + source[col], 0.2)
            weights = clew.sparse_csr_tensor(crow, col, scores, edges.shape)
            outputs.append(clew.sparse.softmax(weights, 1) @ h)
        return clew.cat(outputs, 1)


class Network(nn.Module):
    """Two layers of one kind."""

    def __init__(self, layer: Any, features: int, hidden: int, groups: int) -> None:
        super().__init__()
        self.first, self.second = layer(features, hidden), layer(hidden, groups)

    def forward(self, graph: Graph) -> clew.Tensor:
        """Scores of the groups for each person."""
        x = F.dropout(F.relu(self.first(graph, graph.features)), 0.5, self.training)
        return self.second(graph, x)


def train(layer: Any, graph: Graph, steps: int = 60, seed: int = 0) -> dict[str, Any]:
    """Trains on the known people; returns model, losses and the accuracy for the others."""
    clew.manual_seed(seed)
    model = Network(layer, graph.features.shape[1], 32, int(graph.group.max()) + 1)
    optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    losses, known = [], graph.known
    for _ in range(steps):
        loss = F.cross_entropy(model(graph)[known], graph.group[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with clew.no_grad():
        right = (model(graph).argmax(1) == graph.group)[~known]
    return {"model": model, "losses": losses, "accuracy": right.float().mean().item()}


if __name__ == "__main__":
    network = make()
    print(f"{len(network.group)} people, {network.mean._nnz() // 2} friendships")
    for kind in (Alone, GCN, SAGE, GAT):
        found = train(kind, network)
        print(
            f"{kind.__name__:5}  loss {found['losses'][0]:.2f} to {found['losses'][-1]:.2f}, "
            f"accuracy for the others {100 * found['accuracy']:.0f}% (chance 25%)"
        )
