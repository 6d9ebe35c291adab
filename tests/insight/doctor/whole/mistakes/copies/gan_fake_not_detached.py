# mistake: detached
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())

    def forward(self, z):
        return self.net(z)

class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

G, D = Generator(), Discriminator()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
data = torch.tanh(torch.randn(256, 16))
for step in range(16):
    real = data[torch.randint(0, 256, (32,))]
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    opt_g.zero_grad()
    opt_d.zero_grad()
    fake = G(torch.randn(32, 8))
    d_loss = bce(D(real), ones) + bce(D(fake), zeros)  #- here
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)  #+
    d_loss.backward()
    opt_d.step()
    fake = G(torch.randn(32, 8))
    g_loss = bce(D(fake), ones)
    g_loss.backward()
    opt_g.step()
