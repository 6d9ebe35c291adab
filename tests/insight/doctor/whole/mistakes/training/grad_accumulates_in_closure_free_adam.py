# mistake: never cleared
class Learner:
    def __init__(self):
        self.net = nn.Linear(5, 2)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
    def fit(self, x, y):
        for _ in range(12):
            out = self.net(x)
            self.opt.zero_grad()  #+
            loss = F.cross_entropy(out, y)
            loss.backward()  # here
            self.opt.step()
            with torch.no_grad():
                acc = (out.argmax(1) == y).float().mean()
x = torch.randn(50, 5)
Learner().fit(x, (x[:, 0] > 0).long())
