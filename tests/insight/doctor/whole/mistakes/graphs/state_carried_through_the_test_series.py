# mistake: an evaluation keeps the graph of every batch
class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(2, 16)
        self.read = nn.Linear(16, 2)

    def forward(self, x, memory=None):
        h, memory = self.cell(x, memory)  #- here
        h, memory = self.cell(x, memory)  #+
        return self.read(h), memory

t = torch.arange(900.0)
series = torch.stack([torch.sin(t / 7), torch.cos(t / 5)], 1)[:, None]
series = series + 0.05 * torch.randn(900, 1, 2)
net = Forecast()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

def judge(model, part):
    model.eval()
    errors, memory = [], None
    for first in range(0, len(part) - 11, 10):
        guess, memory = model(part[first : first + 10], memory)
        memory = tuple(m.detach() for m in memory)  #+
        errors.append(float(F.smooth_l1_loss(guess, part[first + 1 : first + 11]).detach()))
    return np.mean(errors)

for epoch in range(3):
    net.train()
    memory = None
    for first in range(0, 600, 20):
        guess, memory = net(series[first : first + 20], memory)
        memory = tuple(m.detach() for m in memory)
        opt.zero_grad()
        F.smooth_l1_loss(guess, series[first + 1 : first + 21]).backward()
        opt.step()
    judge(net, series[650:])
