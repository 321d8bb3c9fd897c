"""Random share trees, written as dumps of `sshare`, and multifactor orders with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from poolwise.policies.order.multifactor import Multifactor


def random_dump(g: np.random.Generator, file: Path) -> list[tuple[str, str]]:
    """Write a tree of accounts and users at any depth, with ties and perhaps usage; return (account, user) of each user."""
    accounts, users, rows = [("root", 0)], [], ["Account|User|RawShares|RawUsage", "root|||0"]
    below: dict[str, list[str]] = {"root": []}
    for k in range(int(g.integers(1, 6))):
        parent = accounts[int(g.integers(len(accounts)))]
        accounts.append((f"a{k}", parent[1] + 1))
        below[parent[0]].append(f"a{k}")
        below[f"a{k}"] = []

    def write(account: str, depth: int) -> None:
        for user in range(int(g.integers(0, 4))):
            users.append((account, f"u{user}"))
            rows.append(f"{' ' * depth} {account}|u{user}|{g.integers(0, 3)}|{g.choice([0, 0, 50])}")
        for child in below[account]:
            rows.append(f"{' ' * depth} {child}||{g.integers(0, 3)}|{g.choice([0, 0, 500])}")
            write(child, depth + 1)

    write("root", 0)
    users.append(("root", "boss"))
    rows.append("  root|boss|1|0")
    file.write_text("\n".join(rows) + "\n")
    return users


def random_multifactor(g: np.random.Generator, jobs: int, folder: Path) -> tuple[Multifactor, dict[str, np.ndarray]]:
    """Return an order with few or many factors and short periods, and the columns of jobs that it reads."""
    users = [*random_dump(g, folder / "sshare.txt"), ("none", "guest")]
    of_job = [users[k] for k in g.integers(0, len(users), jobs)]
    settings: dict[str, str | int | float] = {
        "PriorityCalcPeriod": g.choice(["0:00:20", "0:01:00", "5"]).item(),
        "PriorityDecayHalfLife": g.choice(["0", "0:10:00", "7-0"]).item(),
        "PriorityMaxAge": g.choice(["0:05:00", "7-0"]).item(),
        "PriorityWeightAge": int(g.choice([0, 100, 5000])),
        "PriorityWeightFairshare": int(g.choice([0, 1000, 10_000])),
        "PriorityWeightJobSize": int(g.choice([0, 300])),
    }
    order = Multifactor(None, str(folder / "sshare.txt"), None, settings, float(g.choice([0, 7.5, -3])))
    columns = {"account": np.array([account for account, _ in of_job]), "user": np.array([user for _, user in of_job])}
    if g.random() < 0.5:
        columns["nice"] = g.integers(-50, 300, jobs)
    if g.random() < 0.5:
        settings["PriorityWeightTRES"] = g.choice(["cpu=500,gres/gpu=900", "gres/gpu=2000.5,license/a=300"]).item()
    return order, columns
