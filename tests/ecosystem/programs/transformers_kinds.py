"""ViT, T5 and Whisper of transformers on random weights; sampling, beams and a Trainer."""

import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
    set_seed,
)


def steps(name, model, **batch):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    model.eval()
    for _ in range(3):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, *losses)


set_seed(0)
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
vit = ViTForImageClassification(
    ViTConfig(intermediate_size=64, image_size=32, patch_size=8, num_labels=3, **small)
)
steps("vit", vit, pixel_values=torch.randn(2, 3, 32, 32), labels=torch.tensor([0, 2]))
t5 = T5ForConditionalGeneration(
    T5Config(
        vocab_size=100,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
)
ids = torch.randint(2, 100, (2, 9))
steps("t5", t5, input_ids=ids, labels=ids[:, :5].contiguous())
print("t5_beams", *t5.generate(ids, num_beams=3, max_new_tokens=5).flatten().tolist())
whisper = WhisperForConditionalGeneration(
    WhisperConfig(
        vocab_size=100,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=20,
        max_target_positions=16,
        pad_token_id=1,
        bos_token_id=2,
        eos_token_id=1,
        decoder_start_token_id=2,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
)
steps("whisper", whisper, input_features=torch.randn(2, 8, 40), labels=ids[:, :6].contiguous())
gpt = GPT2LMHeadModel(
    GPT2Config(
        n_layer=2,
        n_head=2,
        n_embd=32,
        vocab_size=100,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
).eval()
set_seed(1)
how = {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8}
print("sampled", *gpt.generate(ids[:1], max_new_tokens=8, **how)[0].tolist())
print("beams", *gpt.generate(ids[:1], max_new_tokens=8, num_beams=4)[0].tolist())
set_seed(2)
rows = [
    {"input_ids": torch.randint(0, 100, (8,)), "labels": torch.tensor(i % 2)} for i in range(16)
]
bert = BertForSequenceClassification(BertConfig(vocab_size=100, intermediate_size=64, **small))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=4,
        logging_steps=4,
        save_steps=4,
        eval_strategy="epoch",
        learning_rate=1e-3,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        seed=3,
    )
    trainer = Trainer(model=bert, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
    done = trainer.train()
    history = trainer.state.log_history
    resumed = Trainer(model=bert, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
    again = resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-4")
print("trainer", done.training_loss, *[h["eval_loss"] for h in history if "eval_loss" in h])
print("trainer_logged", *[h["loss"] for h in history if "loss" in h])
print("trainer_resumed", again.global_step, resumed.evaluate()["eval_loss"])
