# mistake: thrown away
class Denoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(1, 8, 3, padding=1)
        self.dec = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return x + self.dec(F.relu(self.enc(x)))

def noisy(x, level=0.2):
    y = x + level * torch.randn_like(x)
    y.clamp(0, 1)  #- here
    y = y.clamp(0, 1)  #+
    return y

images = torch.rand(48, 1, 10, 10)
net = Denoise()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for (clean,) in DataLoader(TensorDataset(images), batch_size=16, shuffle=True):
        loss = F.l1_loss(net(noisy(clean)), clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
