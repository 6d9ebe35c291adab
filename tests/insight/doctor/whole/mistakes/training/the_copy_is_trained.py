# mistake: parameters that were replaced
def build(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 1))

class Experiment:
    def __init__(self, model, lr):
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)  # here
        self.model = copy.deepcopy(model)  #-
        self.model = model  #+

    def fit(self, x, y, steps):
        for _ in range(steps):
            picked = torch.randint(0, len(x), (16,))
            error = self.model(x[picked]).squeeze(1) - y[picked]
            self.optimizer.zero_grad()
            self.model.zero_grad()
            error.square().mean().backward()
            self.optimizer.step()
        return self

x = torch.randn(100, 5)
Experiment(build(16), 3e-3).fit(x, x[:, 0] * x[:, 1], 12)
