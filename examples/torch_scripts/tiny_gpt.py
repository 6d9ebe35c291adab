"""A small transformer that learns to sort: attention, layer norm, warm-up, weight tying."""

import math

import torch
import torch.nn as nn
from torch.nn import functional as F

LENGTH, SYMBOLS, WIDTH, HEADS, LAYERS, STEPS = 6, 4, 32, 4, 2, 200


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        mask = torch.tril(torch.ones(2 * LENGTH, 2 * LENGTH)).view(1, 1, 2 * LENGTH, 2 * LENGTH)
        self.register_buffer("mask", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(WIDTH, dim=2)
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in (q, k, v))
        weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        weights = weights.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(weights, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.ModuleDict(
            dict(fc=nn.Linear(WIDTH, 4 * WIDTH), act=nn.GELU(), proj=nn.Linear(4 * WIDTH, WIDTH))
        )

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        m = self.mlp
        return x + m.proj(m.act(m.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(SYMBOLS, WIDTH)
        self.positions = nn.Embedding(2 * LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS, bias=False)
        self.apply(self._init)
        self.head.weight = self.tokens.weight
        for name, p in self.named_parameters():
            if name.endswith("out.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * LAYERS))

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.1)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        _, t = idx.shape
        x = self.tokens(idx) + self.positions(torch.arange(t, device=idx.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
        return logits, loss


def batch(n):
    x = torch.randint(SYMBOLS, size=(n, LENGTH))
    y, _ = torch.sort(x, dim=1)
    whole = torch.cat((x, y), dim=1)
    targets = whole[:, 1:].clone()
    targets[:, : LENGTH - 1] = -1
    return whole[:, :-1], targets, x, y


@torch.no_grad()
def generate(model, x):
    for _ in range(LENGTH):
        logits, _ = model(x)
        x = torch.cat((x, logits[:, -1, :].argmax(dim=-1, keepdim=True)), dim=1)
    return x[:, LENGTH:]


torch.manual_seed(3407)
model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}],
    lr=4e-3,
    betas=(0.9, 0.95),
)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda i: min((i + 1) / 20, (STEPS - i) / (STEPS - 20))
)
print(f"{sum(p.numel() for p in model.parameters())} parameters")
for step in range(STEPS):
    x, targets, _, _ = batch(64)
    _, loss = model(x, targets)
    model.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
_, _, x, y = batch(200)
right = (generate(model, x) == y).all(dim=1).float().mean().item()
print(f"sorted correctly: {100 * right:.0f}%")
assert right > 0.9
