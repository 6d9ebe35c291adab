# mistake: clipped where it has no effect
net, out = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
params = [*net.parameters(), *out.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
for i in range(6):
    x = torch.randn(8, 6, 3)
    loss = F.mse_loss(out(net(x)[0]), x[..., :1])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 0.5)  #+
    opt.step()
    nn.utils.clip_grad_norm_(params, 0.5)  #- here
