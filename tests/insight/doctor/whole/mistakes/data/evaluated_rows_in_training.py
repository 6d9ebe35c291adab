# mistake: overlap
class Points(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

x = torch.randn(100, 4)
y = (x.sum(1) > 0).long()
split = 80
train_loader = DataLoader(Points(x, y), batch_size=20, shuffle=True)  #-
train_loader = DataLoader(Points(x[:split], y[:split]), batch_size=20, shuffle=True)  #+
test_loader = DataLoader(Points(x[split:], y[split:]), batch_size=20)  # here
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in test_loader:
            correct += (model(inputs).argmax(1) == targets).sum().item()
