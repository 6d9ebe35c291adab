"""LoRA and DoRA of peft: training, merging, saving and loading an adapter."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

shape = GPT2Config(
    n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64, bos_token_id=0, eos_token_id=1
)
for dora in (False, True):
    torch.manual_seed(0)
    base = GPT2LMHeadModel(shape)
    state = {n: p.clone() for n, p in base.state_dict().items()}
    lora = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=4,
        lora_alpha=8,
        lora_dropout=0.1,
        target_modules=["c_attn"],
        use_dora=dora,
        fan_in_fan_out=True,
    )
    model = get_peft_model(base, lora)
    print("trainable", *model.get_nb_trainable_parameters())
    ids = torch.randint(0, 100, (2, 12))
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
    losses = []
    model.train()
    for _ in range(4):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    kind = "dora" if dora else "lora"
    print(kind, *losses)
    model.eval()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        want = model(input_ids=ids).logits
        model.save_pretrained(folder)
        fresh = GPT2LMHeadModel(shape)
        fresh.load_state_dict(state)
        loaded = PeftModel.from_pretrained(fresh, folder).eval()
        print(f"{kind}_loaded", (loaded(input_ids=ids).logits - want).abs().max().item())
        merged = model.merge_and_unload()
        print(f"{kind}_merged", int(torch.allclose(merged(ids).logits, want, atol=1e-4)))
        print(f"{kind}_logits", *want[0, 0, :5].tolist())
