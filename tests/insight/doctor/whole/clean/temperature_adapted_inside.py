class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, temperature):
        return self.fc(x) / temperature

x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    temperature = model.temperature
    for inner in range(6):
        loss = F.cross_entropy(model(x[:32], temperature), y[:32])
        (g,) = torch.autograd.grad(loss, temperature, create_graph=True)
        temperature = temperature - 0.1 * g
    outer = F.cross_entropy(model(x[32:], temperature), y[32:])
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
