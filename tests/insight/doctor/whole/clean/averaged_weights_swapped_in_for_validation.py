class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p

    def swap(self, model):
        for n, p in model.named_parameters():
            kept = p.data
            p.data = self.shadow[n]
            self.shadow[n] = kept

model = nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 2))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
average = Average(model, 0.9)
x = torch.randn(200, 6)
y = (x[:, 0] > x[:, 1]).long()
for epoch in range(4):
    model.train()
    for i in torch.randperm(160).split(32):
        opt.zero_grad()
        F.cross_entropy(model(x[i]), y[i]).backward()
        opt.step()
        average.update(model)
    average.swap(model)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[160:]).argmax(1) == y[160:]).float().mean().item()
    average.swap(model)
