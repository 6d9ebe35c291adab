"""Tiny models of transformers on random weights: four steps each, and greedy generation."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

torch.manual_seed(0)
SIZES = {"vocab_size": 100, "num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 32}


def steps(name, model, **batch):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    model.eval()
    for _ in range(4):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, *losses)


ids = torch.randint(0, 100, (2, 12))
ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
gpt = GPT2LMHeadModel(
    GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64, **ends)
)
steps("gpt2", gpt, input_ids=ids, labels=ids)
print("greedy", *gpt.generate(ids[:1, :4], max_new_tokens=6, do_sample=False)[0].tolist())
bert = BertForSequenceClassification(BertConfig(intermediate_size=64, **SIZES))
steps("bert", bert, input_ids=ids, labels=torch.tensor([0, 1]))
llama = LlamaForCausalLM(LlamaConfig(intermediate_size=64, num_key_value_heads=2, **SIZES, **ends))
steps("llama", llama, input_ids=ids, labels=ids)
