def made(width):
    return nn.Sequential(nn.Dropout(0.2), nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))
teacher, student = made(32).eval().requires_grad_(False), made(8)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    loss = F.mse_loss(student(x), teacher(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
