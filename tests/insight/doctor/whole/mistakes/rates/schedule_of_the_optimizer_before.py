# mistake: an optimizer that does not step
def stage(model, lr, frozen):
    for p in model[0].parameters():
        p.requires_grad_(not frozen)
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

x = torch.randn(128, 6)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = stage(model, 0.05, frozen=True)
falls = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)
for epoch in range(7):
    if epoch == 2:
        opt = stage(model, 0.02, frozen=False)
        falls = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)  #+
    for rows in torch.randperm(128).split(32):
        opt.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        opt.step()
    falls.step()  # here
