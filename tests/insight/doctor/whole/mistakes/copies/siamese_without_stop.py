# mistake: collapse
class SimSiam(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, width))
        self.predictor = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, a, b):
        z1, z2 = self.encoder(a), self.encoder(b)
        return self.predictor(z1), self.predictor(z2), z1, z2

def distance(p, z):
    return -F.cosine_similarity(p, z, dim=-1).mean()  #- here
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()  #+

def augment(x):
    return x + 0.3 * torch.randn_like(x)

data = torch.randn(512, 12)
net = SimSiam(12, 16)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(200):
    x = data[torch.randint(0, 512, (64,))]
    p1, p2, z1, z2 = net(augment(x), augment(x))
    loss = 0.5 * (distance(p1, z2) + distance(p2, z1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 24:
        with torch.no_grad():
            spread = F.normalize(net.encoder(data), dim=1).std(0).mean()
