# mistake: grows from step to step
rnn, head, h = nn.GRU(4, 8), nn.Linear(8, 1), None
opt = clew.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
try:
    for step in range(6):
        if h is not None:  #+
            h = h.detach()  #+
        out, h = rnn(x[None], h)  # here
        opt.zero_grad()
        F.mse_loss(head(out[0]), target).backward()
        opt.step()
except RuntimeError:
    pass
