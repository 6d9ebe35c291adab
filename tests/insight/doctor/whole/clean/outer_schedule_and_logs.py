class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool = nn.Conv2d(3, 6, 5), nn.MaxPool2d(2, 2)
        self.fc1, self.fc2 = nn.Linear(6 * 4 * 4, 24), nn.Linear(24, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))

images = (torch.randint(0, 256, (96, 3, 12, 12)).float() / 255 - 0.5) / 0.5
labels = torch.randint(0, 10, (96,))
loader = DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True)
net, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
log = {"loss": [], "lr": []}
for epoch in range(1):
    running_loss = 0.0
    for i, data in enumerate(loader, 0):
        inputs, targets = data
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 8 == 7:
            log["loss"].append(running_loss / 8)
            log["lr"].append(optimizer.param_groups[0]["lr"])
            running_loss = 0.0
correct = total = 0
with torch.no_grad():
    for inputs, targets in loader:
        _, predicted = torch.max(net(inputs).data, 1)
        total += targets.size(0)
        correct += (predicted == targets).sum().item()
percent = 100 * correct // total
