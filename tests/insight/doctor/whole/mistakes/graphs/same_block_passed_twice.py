# mistake: share their weights
def make_layers(layer, n):
    return nn.ModuleList([layer for _ in range(n)])  #-
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])  #+
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_layers(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3)  # here
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))
net = Enc()
x = torch.randn(32, 5, 8)
y = (x.mean((1, 2)) > 0).long()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(8):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
