"""Trains a small vision transformer on a folder of class folders with the Trainer of transformers.

python hf.py FOLDER
"""

import argparse
import tempfile

import torch
from torchvision import datasets, transforms
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed


def collate(samples):
    pixels = torch.stack([image for image, _ in samples])
    return {"pixel_values": pixels, "labels": torch.tensor([label for _, label in samples])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--save", default="checkpoint.pt")
    args = parser.parse_args()

    set_seed(0)
    transform = transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()])
    folder = datasets.ImageFolder(args.data, transform)
    config = ViTConfig(
        image_size=64,
        patch_size=16,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        num_labels=len(folder.classes),
    )
    model = ViTForImageClassification(config)
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=8,
            dataloader_num_workers=args.workers,
            learning_rate=1e-3,
            logging_steps=50,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=folder, data_collator=collate)
        result = trainer.train()
    print(f"final training loss {result.training_loss:.6f}")
    torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
