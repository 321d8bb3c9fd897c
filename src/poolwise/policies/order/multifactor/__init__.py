"""Slurm's multifactor priority: `order` is the queue order, `rules` what slurm.conf says, `shares` the tree of shares."""

from poolwise.policies.order.multifactor.order import Multifactor as Multifactor
