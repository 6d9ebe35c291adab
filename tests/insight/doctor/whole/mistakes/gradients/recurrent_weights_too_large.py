# mistake: explode
W = nn.Parameter(torch.randn(16, 16) * 1.2)  #-
W = nn.Parameter(torch.eye(16))  #+
U = nn.Parameter(torch.randn(3, 16) * 0.3)
head = nn.Linear(16, 1)
opt = torch.optim.SGD([W, U, *head.parameters()], lr=1e-6)
for i in range(6):
    x = torch.randn(8, 20, 3)
    h = torch.zeros(8, 16)
    for t in range(20):
        h = h @ W + x[:, t] @ U  # here
    loss = F.mse_loss(head(h), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
