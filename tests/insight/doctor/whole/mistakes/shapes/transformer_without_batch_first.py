# mistake: batch for time
class Clf(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32)  #-
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)  #+
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Linear(16, 2)
    def forward(self, x):
        h = self.encoder(self.embed(x))  # here
        return self.fc(h.mean(dim=1))

net = Clf()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(0, 40, (16, 10))
    loss = F.cross_entropy(net(x), x[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
