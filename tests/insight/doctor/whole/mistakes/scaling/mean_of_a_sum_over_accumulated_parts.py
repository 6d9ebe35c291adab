# mistake: without dividing
class Trainer:
    def __init__(self, model, accumulate):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.calls = 0

    def __call__(self, batch):
        out = self.model(**batch["inputs"])
        loss = F.huber_loss(out, batch["target"])
        loss.backward()  #- here
        (loss / self.accumulate).backward()  #+
        self.calls += 1
        if self.calls % self.accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Bilinear(4, 5, 2)

    def forward(self, left, right):
        return self.f(left, right)

trainer = Trainer(Bilinear(), accumulate=4)
for step in range(24):
    left, right = torch.randn(8, 4), torch.randn(8, 5)
    trainer({"inputs": {"left": left, "right": right}, "target": left[:, :2] * right[:, :2]})
