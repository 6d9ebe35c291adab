# mistake: without dividing
accumulate = 4
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(6, 24), nn.LayerNorm(24), nn.Linear(24, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.norm(self.fc1(x))))

x = torch.randn(160, 6)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer.zero_grad()
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss = loss / accumulate  #+
        loss.backward()  # here
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
