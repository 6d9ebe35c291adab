# mistake: between backward and step
class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.grad_norms = []

    def log_gradients(self):
        total = sum(p.grad.norm() ** 2 for p in self.model.parameters()) ** 0.5
        self.grad_norms.append(total.item())
        self.model.zero_grad()  #- here

    def train_step(self, x, y):
        self.opt.zero_grad()  #+
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.log_gradients()
        self.opt.step()
        return loss.item()

pool = nn.AdaptiveAvgPool1d(4)
model = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), pool, nn.Flatten(), nn.Linear(32, 3))
trainer = Trainer(model)
for i in range(10):
    y = torch.randint(0, 3, (16,))
    x = torch.randn(16, 1, 30) + y.view(-1, 1, 1)
    trainer.train_step(x, y)
