# mistake: only the last of several losses
def train_epoch(model, loader, criterion, optimizer):
    model.train()
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        running += loss.item() * len(x)
        loss.backward()  #+
        optimizer.step()  #+
    loss.backward()  #- here
    optimizer.step()  #-
    return running / len(loader.dataset)

x = torch.randn(120, 7)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    print(epoch, train_epoch(model, loader, criterion, optimizer))
