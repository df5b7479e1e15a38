"""A plan for every iteration of a model, where a training loop is not to be changed."""

import sys

import torch

from .applying import Player


class AppliedModel:
    """A model that runs by a plan until `remove()`. `runs`: number of iterations; `last`: the Player of the last one."""

    def __init__(self, model, plan, on_change):
        self.plan, self.on_change = plan, on_change
        self.runs, self.last = 0, None
        self._is_open = False
        self._model, self._forward, self._was_own = model, model.forward, "forward" in vars(model)
        model.forward = self._run

    def _run(self, *args, **kwargs):
        if not torch.is_grad_enabled():
            return self._forward(*args, **kwargs)
        self._end()
        player = Player(self.plan, self.on_change)
        player.when_over = self._end
        player.__enter__()
        self.last, self._is_open = player, True
        self.runs += 1
        try:
            return self._forward(*args, **kwargs)
        except BaseException:
            self._end(*sys.exc_info())
            raise

    def _end(self, *error):
        if self._is_open:
            self._is_open = False
            self.last.__exit__(*(error or (None, None, None)))

    def remove(self):
        """The model runs as it did before."""
        self._end()
        if self._was_own:
            self._model.forward = self._forward
        else:
            del self._model.forward


def apply(model, plan, on_change="raise"):
    """Makes `model` run by `plan`: every forward pass with gradients, until its backward pass is done.

    The plan is that of `record(step)` for a step that begins with `model(...)` and ends with its backward pass; the loss
    between them belongs to it. Without gradients (torch.no_grad) the model runs as it is. Gives an AppliedModel,
    whose `remove()` ends it. Errors and `on_change` are those of `applied`.
    """
    return AppliedModel(model, plan, on_change)
