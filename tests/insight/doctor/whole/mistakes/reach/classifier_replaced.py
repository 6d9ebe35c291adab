# mistake: were replaced
class Backbone(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8 * 9, classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))

def adapt(model, classes):
    model.fc = nn.Linear(model.fc.in_features, classes)
    return model

model = Backbone()
model = adapt(model, 4)  #+
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # here
model = adapt(model, 4)  #-
images = torch.randn(64, 3, 8, 8)
labels = torch.randint(0, 4, (64,))
model.train()
for epoch in range(2):
    for inputs, targets in DataLoader(TensorDataset(images, labels), 16, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
