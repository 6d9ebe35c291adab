# mistake: targets lie where the output cannot get
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 24), nn.Linear(24, 24), nn.Linear(24, 1)])
    def forward(self, x):
        for layer in self.layers[:-1]:  #+
            x = torch.relu(layer(x))  #+
        return self.layers[-1](x)  #+
        for layer in self.layers:  #-
            x = torch.relu(layer(x))  #- here
        return x  #-
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(64, 6)
    loss = F.mse_loss(net(x), x[:, :1] + 0.5 * x[:, 1:2])
    opt.zero_grad()
    loss.backward()
    opt.step()
