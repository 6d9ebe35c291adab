# mistake: batch for time
class Sent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 12)
        self.gru = nn.GRU(12, 10, bidirectional=True)  #- here
        self.gru = nn.GRU(12, 10, bidirectional=True, batch_first=True)  #+
        self.fc = nn.Linear(20, 2)
    def forward(self, x):
        out, h = self.gru(self.emb(x))
        return self.fc(torch.mean(out, dim=1))
net = Sent()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randint(0, 60, (16, 11))
    loss = F.cross_entropy(net(x), x[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
