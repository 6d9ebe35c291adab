class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(3, 10, num_layers=2), nn.Linear(20, 2)
    def forward(self, x):
        state = None
        for t in range(x.shape[0]):
            _, state = self.rnn(x[t : t + 1], state)
        return self.out(state.transpose(0, 1).reshape(x.shape[1], -1))
net = Reader()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(10):
    x = torch.randn(6, 16, 3)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[0, :, 0] > 0).long()).backward()
    opt.step()
