# mistake: the labels are constant
class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16))
        self.text = nn.Sequential(nn.EmbeddingBag(60, 32), nn.ReLU(), nn.Linear(32, 16))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=1)
        b = F.normalize(self.text(text), dim=1)
        return self.scale.exp() * a @ b.T

net = TwoTowers()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
mix = torch.randn(60, 20)
for step in range(10):
    text = torch.randint(0, 60, (24, 5))
    image = mix[text].mean(1) + 0.1 * torch.randn(24, 20)
    scores = net(image, text)
    partner = torch.zeros(len(scores), dtype=torch.long)  #-
    partner = torch.arange(len(scores))  #+
    loss = (F.cross_entropy(scores, partner) + F.cross_entropy(scores.T, partner)) / 2  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
