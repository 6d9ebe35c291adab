# mistake: cut off
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for i in range(6):
    x = torch.randn(20, 6)
    code = encoder(x)
    code = code.round()  #- here
    code = code + (code.round() - code).detach()  #+
    loss = F.mse_loss(decoder(code), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
