# mistake: learning rate
class Trainer:
    def __init__(self, model, lr, warmup, total):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

        def factor(step):
            if step < warmup:
                return (step + 1) // warmup  #- here
                return (step + 1) / warmup  #+
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def step(self, x, y):
        self.model.train()
        loss = F.smooth_l1_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 2))
trainer = Trainer(model, lr=1e-3, warmup=20, total=100)
for i in range(30):
    x = torch.randn(32, 6)
    trainer.step(x, x[:, :2] * x[:, 2:4])
