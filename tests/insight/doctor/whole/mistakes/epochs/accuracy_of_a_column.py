# mistake: broadcast
class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

x = torch.randn(200, 10)
y = (x[:, 0] + x[:, 1] > 0).float()
train = TensorDataset(x[:150], y[:150])
test = TensorDataset(x[150:], y[150:])
net = Churn()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    net.train()
    for a, b in DataLoader(train, batch_size=25, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(net(a).squeeze(1), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for a, b in DataLoader(test, batch_size=25):
            predicted = (torch.sigmoid(net(a)) > 0.5).float()
            correct += (predicted == b).sum().item()  #- here
            correct += (predicted.squeeze(1) == b).sum().item()  #+
    accuracy = correct / len(test)
