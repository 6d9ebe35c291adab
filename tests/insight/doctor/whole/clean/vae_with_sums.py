class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(36, 24), nn.Linear(24, 4), nn.Linear(24, 4)
        self.fc3, self.fc4 = nn.Linear(4, 24), nn.Linear(24, 36)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images = torch.rand(96, 36)
for epoch in range(2):
    for (x,) in DataLoader(TensorDataset(images), batch_size=32, shuffle=True):
        recon, mu, logvar = model(x)
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        optimizer.zero_grad()
        (bce + kld).backward()
        optimizer.step()
with torch.no_grad():
    z = torch.randn(8, 4)
    sample = torch.sigmoid(model.fc4(F.relu(model.fc3(z))))
