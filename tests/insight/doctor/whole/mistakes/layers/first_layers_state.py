# mistake: state of a lower layer
class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        _, (h, _) = self.lstm(self.emb(x))
        return self.fc(h[0])  #- here
        return self.fc(h[-1])  #+

net = Sentiment()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randint(0, 30, (16, 9))
    loss = F.cross_entropy(net(x), x[:, -1] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
