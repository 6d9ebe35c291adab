# mistake: log_softmax missing before kl_div
teacher, student = nn.Linear(8, 3).eval(), nn.Linear(8, 3)
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    guess = F.softmax(student(x), 1)  #-
    guess = F.log_softmax(student(x), 1)  #+
    loss = F.kl_div(guess, soft, reduction="batchmean")  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
