"""CTAugment's policy on the trainer's side: draws, weights, updates of all ranks."""
