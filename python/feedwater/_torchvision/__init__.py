"""The objects of torchvision and Pillow that users pass: whether they are unchanged, and which ops they mean."""
