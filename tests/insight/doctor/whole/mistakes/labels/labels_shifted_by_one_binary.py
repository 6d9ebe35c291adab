# mistake: labels outside
net = nn.Linear(5, 1)
x = torch.randn(80, 5)
y = torch.where(x[:, 0] > 0, 1.0, -1.0)  #-
y = torch.where(x[:, 0] > 0, 1.0, 0.0)  #+
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    rows = torch.randint(0, 80, (20,))
    loss = F.binary_cross_entropy_with_logits(net(x[rows]).squeeze(1), y[rows])  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
