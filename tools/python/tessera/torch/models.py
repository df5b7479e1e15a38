"""A plan for every iteration of a model, where a training loop is not to be changed."""

import torch

from .applying import Player


class AppliedModel:
    """A model that runs by a plan until `remove()`. `runs`: number of iterations; `last`: the Player of the last one."""

    def __init__(self, model, plan, on_change):
        self.plan, self.on_change = plan, on_change
        self.runs, self.last = 0, None
        self._is_open = False
        self._hook = model.register_forward_pre_hook(self._begin)

    def _begin(self, model, inputs):
        if not torch.is_grad_enabled():
            return
        self._end()
        self.last = Player(self.plan, self.on_change)
        self.last.when_over = self._end
        self.last.__enter__()
        self.runs += 1
        self._is_open = True

    def _end(self):
        if self._is_open:
            self._is_open = False
            self.last.__exit__(None, None, None)

    def remove(self):
        """The model runs as it did before."""
        self._end()
        self._hook.remove()


def apply(model, plan, on_change="raise"):
    """Makes `model` run by `plan`: every forward pass with gradients, until its backward pass is done.

    The plan is that of `record(step)` for a step that begins with `model(...)` and ends with its backward pass; the loss
    between them belongs to it. Without gradients (torch.no_grad) the model runs as it is. Gives an AppliedModel,
    whose `remove()` ends it. Errors and `on_change` are those of `applied`.
    """
    return AppliedModel(model, plan, on_change)
