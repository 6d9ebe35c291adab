# mistake: made anew
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.f(x)
m = M()
o = torch.optim.Adam(m.parameters(), lr=1e-2)
x = torch.randn(64, 3)
y = x.prod(1, keepdim=True)
for epoch in range(4):
    m = M().train()  #- here
    for i in range(0, 64, 16):
        o.zero_grad()
        l = F.mse_loss(m(x[i : i + 16]), y[i : i + 16])
        l.backward()
        o.step()
