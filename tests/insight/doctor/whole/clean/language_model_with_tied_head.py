class GPT(nn.Module):
    def __init__(self, vocab=24, dim=16, context=12):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.ln1, self.ln2, self.lnf = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.tok.weight = self.head.weight
        self.register_buffer("mask", torch.tril(torch.ones(context, context)))

    def forward(self, idx, targets=None):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        q, k, v = self.qkv(self.ln1(x)).split(x.shape[-1], dim=2)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        att = att.masked_fill(self.mask[:T, :T] == 0, float("-inf")).softmax(-1)
        x = x + self.proj(att @ v)
        logits = self.head(self.lnf(x + self.mlp(self.ln2(x))))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

data = torch.randint(0, 24, (400,))
model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
)
for it in range(8):
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * min(1.0, (it + 1) / 4)
    ix = torch.randint(len(data) - 13, (8,)).tolist()
    x = torch.stack([data[i : i + 12] for i in ix])
    y = torch.stack([data[i + 1 : i + 13] for i in ix])
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
idx = torch.zeros((1, 1), dtype=torch.long)
model.eval()
with torch.no_grad():
    for _ in range(5):
        probs = F.softmax(model(idx)[0][:, -1] / 0.8, dim=-1)
        idx = torch.cat([idx, torch.multinomial(probs, 1)], 1)
