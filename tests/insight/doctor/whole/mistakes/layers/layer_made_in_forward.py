# mistake: made anew in every round
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 8, 5, padding=2)
        self.act = nn.ReLU()
        self.fc = nn.LazyLinear(3)  #+

    def forward(self, x):
        h = self.act(self.conv(x)).flatten(1)
        fc = nn.Linear(h.shape[1], 3)  #- here
        return fc(h)  #-
        return self.fc(h)  #+

model = Encoder()
model(torch.zeros(1, 2, 20))  #+
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(8):
    x = torch.randn(32, 2, 20)
    y = x[:, 0, :3].argmax(1)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
