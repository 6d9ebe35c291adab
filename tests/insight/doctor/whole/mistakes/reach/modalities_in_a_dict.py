# mistake: plain dict
class Fusion(nn.Module):
    def __init__(self, sizes, dim=16):
        super().__init__()
        self.encoders = {}  #-
        self.encoders = nn.ModuleDict()  #+
        for name, size in sizes.items():
            self.encoders[name] = nn.Sequential(nn.Linear(size, dim), nn.ReLU())
        self.classifier = nn.Linear(dim * len(sizes), 3)

    def forward(self, batch):
        parts = [self.encoders[name](batch[name]) for name in self.encoders]
        return self.classifier(torch.cat(parts, dim=1))

sizes = {"text": 12, "image": 20, "audio": 6}
data = {name: torch.randn(90, size) for name, size in sizes.items()}
labels = data["text"][:, :3].argmax(1)
model = Fusion(sizes)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(90).split(30):
        batch = {name: value[rows] for name, value in data.items()}
        loss = F.cross_entropy(model(batch), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
