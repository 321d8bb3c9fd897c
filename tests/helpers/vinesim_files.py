"""A small deployment with its tables and trace in VineSim's formats, and the command that simulates it."""

FILES = {
    "deployment.txt": "# two of each\n0 0 0\n0 0 1\ngpu 1 0\n2 1 1\n",
    "affinity.txt": "100000 0.6 0.6\n--\n1200000 0.01 1\n",
    "prices.txt": "300\n100\n2000\n",
    "power.txt": "100 90 90 30\n--\n250 240 240 60\n",
    "trace.txt": "".join(f"2 0 0 0 3000000 2 {job}\n" for job in range(6) for _ in range(2)),
}


def words(*more: str, without: str = "") -> list[str]:
    options = {
        "--machine": "deployment.txt",
        "--affinity": "affinity.txt",
        "--affinity-kind": "relative",
        "--placement": "high",
        "--inter-arrival": "7us",
    }
    options.pop(without, None)
    return ["simulate", "vinesim", "trace.txt", *(word for pair in options.items() for word in pair), *more]
