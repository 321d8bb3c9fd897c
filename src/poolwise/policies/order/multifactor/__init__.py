"""Slurm's multifactor priority: the queue order (`order`), its `slurm.conf` keys (`rules`) and the share tree (`shares`)."""

from poolwise.policies.order.multifactor.order import Multifactor as Multifactor
