# mistake: an evaluation keeps the graph of every batch
class Fit:
    def __init__(self, net, train, valid):
        self.net, self.train, self.valid = net, train, valid
        self.opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
        self.history = []

    def test(self):
        self.net.eval()
        summed = torch.zeros(())
        for x, y in self.valid:
            loss = F.cross_entropy(self.net(x), y, reduction="sum")
            summed = summed + loss  #- here
            summed = summed + loss.detach()  #+
        return summed / len(self.valid.dataset)

    def epoch(self):
        self.net.train()
        for x, y in self.train:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.opt.step()
        self.history.append(self.test())

def data(n):
    x = torch.randn(n, 8)
    return TensorDataset(x, x[:, :3].argmax(1))

net = nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 3))
fit = Fit(net, DataLoader(data(200), 25, shuffle=True), DataLoader(data(120), 10))
for epoch in range(3):
    fit.epoch()
