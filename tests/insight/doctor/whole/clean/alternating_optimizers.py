class Domain(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.label, self.domain = nn.Linear(24, 2), nn.Linear(24, 2)

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None

source, labels = torch.randn(64, 6), torch.randint(0, 2, (64,))
other = torch.randn(64, 6) + 0.5
model = Domain()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    strength = 2 / (1 + math.exp(-step)) - 1
    hs, ht = model.features(source), model.features(other)
    loss = F.cross_entropy(model.label(hs), labels)
    h = Reverse.apply(torch.cat([hs, ht]), strength)
    where = torch.cat([torch.zeros(64), torch.ones(64)]).long()
    loss = loss + F.cross_entropy(model.domain(h), where)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
