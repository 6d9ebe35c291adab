# mistake: inputs are not normalised
rnn, head = nn.LSTM(1, 8, batch_first=True), nn.Linear(8, 1)
opt = clew.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
series = 1000 + 100 * x[:, :, None]  #-
series = x[:, :, None]  #+
for step in range(6):
    out, _ = rnn(series)  # here
    opt.zero_grad()
    F.mse_loss(head(out[:, -1]), target).backward()
    opt.step()
