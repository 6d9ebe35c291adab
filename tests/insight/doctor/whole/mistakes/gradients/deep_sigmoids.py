# mistake: vanish
class Deep(nn.Module):
    def __init__(self, depth, width=24):
        super().__init__()
        self.first = nn.Linear(10, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.sigmoid(self.first(x))
        for layer in self.hidden:
            x = torch.sigmoid(layer(x))  #-
            x = x + F.relu(layer(x)) / len(self.hidden)  #+
        return self.last(x)

torch.manual_seed(4)
x = torch.randn(100, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Deep(depth=14)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(100).split(25):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
