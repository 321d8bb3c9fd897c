"""Slurm's fair tree as its documentation states it: one account and one user after the other."""

from __future__ import annotations

import math

import numpy as np

from poolwise.policies.order.multifactor.shares import ShareTree


def fair_tree(tree: ShareTree, usage: np.ndarray) -> np.ndarray:
    """Return the factor of each user, (n,); 0 for accounts."""
    level = tree._level_fair_share(usage).tolist()
    users = sum(1 for association in tree.associations if association.user)
    factor, left, last = np.zeros(len(tree)), users, users
    children: list[list[int]] = [[] for _ in tree.associations]
    for k, association in enumerate(tree.associations):
        if association.parent >= 0:
            children[association.parent].append(k)

    def rank(siblings: list[int], tied_with_last: bool) -> None:
        nonlocal left, last
        ordered = sorted(siblings, key=lambda k: (-level[k], not tree.associations[k].user))
        before, at = math.nan, 0
        while at < len(ordered):
            first = ordered[at]
            tied = tied_with_last if at == 0 else level[first] == before
            before = level[first]
            if tree.associations[first].user:
                last = last if tied else left
                factor[first] = last / users
                left -= 1
                at += 1
            else:
                end = at
                while end < len(ordered) and level[ordered[end]] == before:
                    end += 1
                rank([child for k in ordered[at:end] for child in children[k]], tied)
                at = end

    rank(children[0], False)
    return factor
