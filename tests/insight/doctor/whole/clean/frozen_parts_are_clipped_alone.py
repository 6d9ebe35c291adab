body, head = nn.Linear(6, 8).requires_grad_(False), nn.Linear(8, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(head(body(x)), x[:, :1]).backward()
    torch.nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
    opt.step()
