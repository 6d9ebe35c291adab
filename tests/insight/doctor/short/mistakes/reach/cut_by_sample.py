# mistake: cut off from the loss
encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
opt = clew.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(6):
    mean, log_std = encoder(x).chunk(2, 1)
    z = clew.distributions.Normal(mean, log_std.exp()).sample()  #- here
    z = clew.distributions.Normal(mean, log_std.exp()).rsample()  #+
    loss = F.mse_loss(decoder(z), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
