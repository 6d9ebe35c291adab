# mistake: first batch
def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:  # here
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        return total / len(loader)  #-
    return total / len(loader)  #+

x = torch.randn(200, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    loss = train_epoch(model, loader, optimizer)
