"""Objects of torchvision that users pass, or of Pillow: whether they are unchanged, and which ops they mean."""
