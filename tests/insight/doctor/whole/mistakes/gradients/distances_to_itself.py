# mistake: slope is infinite
class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 4))

    def forward(self, x):
        return self.net(x)

def pairwise(z):
    difference = z.unsqueeze(0) - z.unsqueeze(1)
    squared = difference.pow(2).sum(-1)
    squared = squared + 1e-12  #+
    return torch.sqrt(squared)  # here

x = torch.randn(60, 9)
labels = torch.randint(0, 4, (60,))
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    rows = torch.randperm(60)[:20]
    distances = pairwise(model(x[rows]))
    same = labels[rows][:, None] == labels[rows][None]
    positive = (distances * same).sum() / same.sum()
    negative = (F.relu(1.0 - distances) * ~same).sum() / (~same).sum()
    optimizer.zero_grad()
    (positive + negative).backward()
    optimizer.step()
