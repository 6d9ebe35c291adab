# mistake: without dividing
class Trainer:
    accumulate = 4
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu")
    def fit(self, n):
        for i in range(n):
            x = torch.randn(8, 8)
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.mse_loss(self.model(x).float(), x[:, :1])
            loss = loss / self.accumulate  #+
            self.scaler.scale(loss).backward()  # here
            if i % self.accumulate == self.accumulate - 1:
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.zero_grad()
Trainer().fit(16)
