# mistake: only the last of several losses
def augment(x, kind):
    return x + 0.1 * torch.randn_like(x) if kind == "noise" else x * (0.8 + 0.4 * torch.rand(1))

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)

encoder = Encoder()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
for step in range(10):
    x = torch.randn(32, 10)
    y = x[:, :4].argmax(1)
    total = 0
    for kind in ("noise", "scale", "noise"):
        loss = F.cross_entropy(encoder(augment(x, kind)), y)
        total = total + loss
    optimizer.zero_grad()
    loss.backward()  #- here
    total.backward()  #+
    optimizer.step()
