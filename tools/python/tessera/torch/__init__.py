"""Training steps of PyTorch under a memory budget.

    graph = tessera.torch.record(step)                 # step(): forward and backward once, returns the loss
    plan = tessera.torch.plan(graph, budget="60%")     # of graph.peak_bytes, the peak of saved tensors
    with tessera.torch.applied(plan):
        loss = step()

Bytes count storages of saved tensors, each once, without parameters and inputs. Needs PyTorch 1.13 or later.
"""

try:
    import torch as _torch
    from torch.utils._python_dispatch import TorchDispatchMode as _mode  # noqa: F401, only whether it is there
except ImportError as error:
    raise ImportError("tessera.torch needs PyTorch 1.13 or later: pip install torch, or on Debian "
                      "apt-get install python3-torch") from error

from .applying import Player, applied
from .graph import Graph
from .models import AppliedModel, apply
from .planning import Infeasible, Plan, plan
from .recording import StepError, peak, record
from .replay import StepChanged

__all__ = ["AppliedModel", "Graph", "Infeasible", "Plan", "Player", "StepChanged", "StepError", "applied", "apply", "peak",
           "plan", "record"]
