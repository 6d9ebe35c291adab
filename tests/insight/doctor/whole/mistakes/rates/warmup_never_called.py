# mistake: schedule never steps
net = nn.Linear(4, 2)
x = torch.randn(64, 4)
y = (x[:, 0] > 0).long()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))  # here
for _ in range(20):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    warm.step()  #+
