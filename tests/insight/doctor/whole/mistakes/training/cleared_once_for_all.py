# mistake: never cleared
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean(-1))

def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    optimizer.zero_grad()
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for signal, y in loader:
            optimizer.zero_grad()  #+
            loss = loss_fn(model(signal), y)
            loss.backward()  # here
            optimizer.step()
            total += loss.item()
    return total

signals = torch.randn(80, 3, 20)
y = (signals.mean((1, 2)) > 0).long()
fit(Encoder(), DataLoader(TensorDataset(signals, y), batch_size=16, shuffle=True), 2)
