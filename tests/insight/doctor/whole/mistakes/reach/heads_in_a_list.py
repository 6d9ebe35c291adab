# mistake: plain list
class Head(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, size, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ self.v(x)

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = [Head(dim, dim // heads) for _ in range(heads)]  #- here
        self.heads = nn.ModuleList([Head(dim, dim // heads) for _ in range(heads)])  #+
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.proj(torch.cat([head(x) for head in self.heads], dim=-1))

embed = nn.Embedding(12, 16)
block, out = Attention(16, 4), nn.Linear(16, 12)
model = nn.Sequential(embed, block, out)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
tokens = torch.randint(0, 12, (32, 9))
for step in range(8):
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 12), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
