class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
    def forward(self, x):
        return self.base(x) + (x @ self.a.T @ self.b.T) * 2
model = nn.Sequential(LoRA(nn.Linear(8, 32)), nn.ReLU(), LoRA(nn.Linear(32, 3)))
x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for epoch in range(4):
    for rows in torch.randperm(128).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
