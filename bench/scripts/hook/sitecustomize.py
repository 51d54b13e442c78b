"""First on PYTHONPATH of a script under test: notes which pictures it trains a network on, and its optimizer's steps.

Pictures are grey all over, and each has a grey of its own, which crops and flips leave as it is.
"""

import atexit
import json
import os

if "SEEN_FOLDER" in os.environ:
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    seen, steps = [], [0]
    flatten = torch.nn.Flatten.forward

    def note(self, values):
        """Instead of Flatten.forward, with which each network here begins."""
        if self.training and torch.is_grad_enabled():
            grey = values.detach().float().flatten(1).mean(1) * (1 if values.max() > 2 else 255)
            seen.append([round(float(one) / 4) for one in grey])
        return flatten(self, values)

    def count(*_):
        """A step of the optimizer."""
        steps[0] += 1

    def write():
        """Writes what was noted."""
        if seen:
            path = os.path.join(os.environ["SEEN_FOLDER"], f"{os.environ.get('RANK', 0)}-{os.getpid()}.json")
            with open(path, "w") as file:
                json.dump({"seen": seen, "steps": steps[0]}, file)

    torch.nn.Flatten.forward = note
    register_optimizer_step_post_hook(count)
    atexit.register(write)
