teacher = nn.Linear(6, 12).requires_grad_(False)
student = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 6)
    loss = F.mse_loss(student(x), teacher(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
