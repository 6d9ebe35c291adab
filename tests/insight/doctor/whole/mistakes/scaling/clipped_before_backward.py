# mistake: clipped where it has no effect
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(8, 3)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad(set_to_none=False)
    nn.utils.clip_grad_value_(net.parameters(), 0.5)  #- here
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.5)  #+
    opt.step()
