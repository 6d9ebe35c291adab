# mistake: in no optimizer
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        body = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))
        self.encode = lambda x: F.normalize(body(x), dim=1)  #- here
        self.body = body  #+
        self.scale = nn.Parameter(torch.ones(1))
        self.encode = lambda x: F.normalize(self.body(x), dim=1)  #+

    def forward(self, a, b):
        return self.scale * (self.encode(a) * self.encode(b)).sum(1)

net = Siamese()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(10):
    a = torch.randn(32, 8)
    same = torch.rand(32) < 0.5
    b = torch.where(same[:, None], a + 0.1 * torch.randn(32, 8), torch.randn(32, 8))
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(net(a, b), same.float()).backward()
    optimizer.step()
