net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), x[:, :1])).backward()
    with torch.no_grad():
        for p in net.parameters():
            p.grad.div_(scaler.get_scale())
    opt.step()
