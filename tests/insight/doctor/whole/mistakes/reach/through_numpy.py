# mistake: cut off
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
        self.decoder = nn.Linear(12, 6)

    def standardize(self, h):
        array = h.detach().numpy()  #-
        array = (array - array.mean(0)) / (array.std(0) + 1e-5)  #-
        return torch.from_numpy(array)  #-
        return (h - h.mean(0)) / (h.std(0) + 1e-5)  #+

    def forward(self, x):
        return self.decoder(self.standardize(self.encoder(x)))

x = torch.randn(80, 6)
model = Model()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    order = torch.randperm(80)
    for i in range(0, 80, 40):
        rows = order[i : i + 40]
        reconstruction = model(x[rows])
        loss = criterion(reconstruction, x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
