# mistake: cleared before a step has used them
class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 32), nn.ReLU())
        self.age = nn.Linear(32, 1)
        self.kind = nn.Linear(32, 4)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h), self.kind(h)

model = MultiTask()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
for step in range(12):
    x = torch.randn(48, 9)
    age_true, kind_true = x[:, :1] * 2, x[:, 1:5].argmax(1)
    age, kind = model(x)
    opt.zero_grad()
    mse(age, age_true).backward(retain_graph=True)
    opt.zero_grad()  #- here
    ce(kind, kind_true).backward()
    opt.step()
