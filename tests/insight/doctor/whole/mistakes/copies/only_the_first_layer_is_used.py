# mistake: used
class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a = nn.Linear(d, 2 * d)
        self.b = nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))

class Tower(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Residual(d) for _ in range(depth)])
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        for i in range(len(self.blocks)):
            x = self.blocks[0](x)  #- here
            x = self.blocks[i](x)  #+
        return self.head(x).squeeze(-1)

net = Tower(12, 4)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
x = torch.randn(160, 12)
y = x.abs().sum(1).sqrt()
for epoch in range(2):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = F.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
