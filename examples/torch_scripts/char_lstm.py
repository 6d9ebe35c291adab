"""A character model that learns a sentence by heart, with an LSTM."""

import torch
from torch import nn

TEXT = "the thread leads back out of the labyrinth. "

torch.manual_seed(0)
letters = sorted(set(TEXT))
index = {c: i for i, c in enumerate(letters)}
codes = torch.tensor([index[c] for c in TEXT * 3])


class Model(nn.Module):
    def __init__(self, n, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(n, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embedding(x), state)
        return self.out(y), state


model = Model(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = codes[:-1].unsqueeze(0), codes[1:].unsqueeze(0)
for step in range(120):
    logits, _ = model(x)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    text, state = TEXT[:4], None
    logits, state = model(torch.tensor([[index[c] for c in text]]))
    for _ in range(30):
        text += letters[logits[0, -1].argmax().item()]
        logits, state = model(torch.tensor([[index[text[-1]]]]), state)
print(f"loss {loss.item():.3f}: {text!r}")
assert text == TEXT[: len(text)]
