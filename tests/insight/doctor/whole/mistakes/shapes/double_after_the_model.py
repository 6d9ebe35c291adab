# mistake: float64
class Sales(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.fc = nn.Linear(16, 6)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.fc(h[:, -1])

table = np.random.randn(90, 14, 3)
future = table[:, -6:, 0].cumsum(1)
x = torch.from_numpy(table).float()
y = torch.from_numpy(future)
net = Sales()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for i in range(0, 90, 30):
        out = net(x[i : i + 30]).double()  #- here
        out = net(x[i : i + 30])  #+
        wanted = y[i : i + 30].float()  #+
        wanted = y[i : i + 30]  #-
        loss = F.mse_loss(out, wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
