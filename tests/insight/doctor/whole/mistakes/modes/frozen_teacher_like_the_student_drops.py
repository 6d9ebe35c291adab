# mistake: a frozen model runs in training mode
def made(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 3))
teacher, student = made(32), made(8)
for p in teacher.parameters():
    p.requires_grad = False
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    with torch.no_grad():
        wanted = teacher(x)  # here
    loss = F.mse_loss(student(x), wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
