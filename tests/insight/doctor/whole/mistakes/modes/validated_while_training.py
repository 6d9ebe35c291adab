# mistake: evaluated in training mode
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))

def validate(model, loader):
    model.eval()  #+
    correct = total = 0
    with torch.no_grad():
        for images, labels in loader:
            outputs = model(images)  # here
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)
    return correct / total

images = torch.randn(96, 1, 6, 6)
labels = (images.mean((1, 2, 3)) > 0).long()
train_set, val_set = random_split(TensorDataset(images, labels), [72, 24])
train_loader = DataLoader(train_set, batch_size=24, shuffle=True)
val_loader = DataLoader(val_set, batch_size=24)
model = CNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    validate(model, val_loader)
