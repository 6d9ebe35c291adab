# mistake: cut off
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 3), nn.Linear(3, 8)
    def encode(self, x):
        return torch.tanh(self.enc(x)).data  #- here
        return torch.tanh(self.enc(x))  #+
    def forward(self, x):
        return self.dec(self.encode(x))
m = AE()
x = torch.randn(64, 8)
opt = torch.optim.Adam(m.parameters(), lr=1e-3)
for _ in range(10):
    loss = F.mse_loss(m(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
