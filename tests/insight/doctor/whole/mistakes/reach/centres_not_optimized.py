# mistake: in no optimizer
class CentreLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, dim))

    def forward(self, features, labels):
        return (features - self.centres[labels]).pow(2).sum(1).mean()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.PReLU(), nn.Linear(32, 2))
        self.head = nn.Linear(2, 4)

    def forward(self, x):
        features = self.body(x)
        return features, self.head(features)

net, centre_loss = Net(), CentreLoss(4, 2)
x = torch.randn(96, 10)
y = x[:, :4].argmax(1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)  #- here
optimizer = torch.optim.SGD([*net.parameters(), *centre_loss.parameters()], lr=0.05)  #+
for step in range(10):
    rows = torch.randint(0, 96, (32,))
    features, scores = net(x[rows])
    loss = F.cross_entropy(scores, y[rows]) + 0.1 * centre_loss(features, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
