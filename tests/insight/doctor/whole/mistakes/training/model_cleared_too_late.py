# mistake: between backward and step
class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def step(self, x, y):
        self.model.zero_grad()  #+
        prediction = self.model(x)
        loss = self.criterion(prediction, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.model.zero_grad()  #- here
        self.optimizer.step()
        return loss.item()

    def fit(self, x, y, epochs):
        history = []
        for epoch in range(epochs):
            for i in range(0, len(x), 20):
                history.append(self.step(x[i : i + 20], y[i : i + 20]))
        return history

x = torch.randn(100, 8)
y = x[:, :2] * 2 - x[:, 2:4]
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)))
trainer.fit(x, y, 2)
