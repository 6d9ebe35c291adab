# mistake: softmax before cross_entropy
SIZES = {"colour": 4, "kind": 3, "age": 5}

def head(width, classes, kind):
    layers = [nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, classes)]
    if kind == "kind":  #-
        layers.append(nn.Softmax(dim=-1))  #-
    return nn.Sequential(*layers)

class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.heads = nn.ModuleDict({k: head(32, n, k) for k, n in SIZES.items()})

    def forward(self, x):
        h = self.body(x)
        return {k: f(h) for k, f in self.heads.items()}

def losses_of(out, batch):
    return {k: F.cross_entropy(out[k], batch[k], label_smoothing=0.05) for k in out}  # here

model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
rule = torch.randn(10, 12)
for step in range(10):
    x = torch.randn(32, 10)
    parts = (x @ rule).split(list(SIZES.values()), 1)
    batch = {k: p.argmax(1) for k, p in zip(SIZES, parts)}
    losses = losses_of(model(x), batch)
    optimizer.zero_grad(set_to_none=True)
    sum(losses.values()).backward()
    optimizer.step()
