# mistake: log_softmax missing
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = self.fc(x.flatten(1))
        return F.softmax(x, dim=1)  #-
        return F.log_softmax(x, dim=1)  #+

def train(model, loader, optimizer, epoch):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)  # here
        loss.backward()
        optimizer.step()

images = torch.randn(96, 1, 8, 8)
digits = torch.randint(0, 10, (96,))
loader = DataLoader(TensorDataset(images, digits), batch_size=16, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
for epoch in range(1, 3):
    train(model, loader, optimizer, epoch)
