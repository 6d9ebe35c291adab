# mistake: share their weights
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return x + F.gelu(self.fc(self.norm(x)))

class Net(nn.Module):
    def __init__(self, dim=16, depth=4):
        super().__init__()
        self.embed = nn.Linear(6, dim)
        block = Block(dim)
        self.blocks = nn.Sequential(*[block for _ in range(depth)])  #- here
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])  #+
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))

x = torch.randn(96, 6)
y = (x.norm(dim=1) > 2.3).long()
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(96).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
