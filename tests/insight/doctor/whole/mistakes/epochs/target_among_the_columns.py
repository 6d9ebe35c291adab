# mistake: among
class Houses(Dataset):
    def __init__(self, n):
        area, rooms, age = np.random.rand(n) * 3, np.random.rand(n), np.random.rand(n)
        price = 2 * area + rooms - 0.5 * age + 0.1 * np.random.randn(n)
        table = np.stack([area, rooms, age, price], 1).astype("float32")
        self.table = torch.from_numpy(table)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        row = self.table[i]
        return row, row[3]  #-
        return row[:3], row[3]  #+

data = Houses(160)
loader = DataLoader(data, batch_size=32, shuffle=True)  # here
width = 4  #-
width = 3  #+
net = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for x, y in loader:
        loss = F.mse_loss(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
