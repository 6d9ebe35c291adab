# mistake: log_softmax
class Segmenter(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(8, classes, 1)
        self.normalise = nn.LogSoftmax(dim=-1)  #-
        self.normalise = nn.LogSoftmax(dim=1)  #+

    def forward(self, x):
        return self.normalise(self.head(self.body(x)))

net, criterion = Segmenter(), nn.NLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    image = torch.randn(4, 3, 9, 9)
    mask = (image[:, 0] > 0).long() + 2 * (image[:, 1] > 0)
    loss = criterion(net(image), mask)  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
