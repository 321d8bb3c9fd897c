"""Redis under load (Debian: redis-server): fill a server, then read random keys with Redis's own load generator."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

keys = sys.argv[1] if len(sys.argv) > 1 else "150000"
requests = sys.argv[2] if len(sys.argv) > 2 else "200000"
with tempfile.TemporaryDirectory() as folder:
    socket = Path(folder) / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", folder]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.01)
        load = ["redis-benchmark", "-s", str(socket), "-r", keys, "-d", "1024", "-c", "20", "-q"]
        subprocess.run([*load, "-t", "set", "-n", keys], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*load, "-t", "get", "-n", requests], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.terminate()
        server.wait()
print(f"{requests} keys requested")
