"""One fit over the devices of two processes, each with half of the rows on its devices.

Here both run on this machine, with two CPU devices each, and talk over localhost. On two machines,
start `fit` on each with the address of the first. Every process makes the same calls with the same
data and gets the same model.
"""

import os
import socket
import subprocess
import sys


def fit(address: str, process: int) -> None:
    """One of the two processes."""
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # CPUs only
    jax.distributed.initialize(address, num_processes=2, process_id=process)

    import numpy as np

    import jaxrules as jr

    random = np.random.default_rng(0)
    X = random.normal(size=(301, 3))
    y = (X[:, 0] + X[:, 1] > 0.3) ^ (random.random(len(X)) < 0.05)
    start = jr.boosting.fit(X, y, max_rules=2).model
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    with jr.rows_over(mesh):
        tuned = jr.finetune(start, X, y, iterations=20)
    print(f"process {process} of {jax.process_count()}, {mesh.size} devices")
    print(f"{tuned.objective:.12f}\n{tuned.model}", flush=True)
    jax.distributed.shutdown()


def main() -> None:
    """Start both processes and show what they print."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    two_devices = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    commands = [[sys.executable, __file__, address, str(process)] for process in range(2)]
    both = [
        subprocess.Popen(command, env=two_devices, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    for one in both:
        print(one.communicate()[0])
    sys.exit(max(one.returncode for one in both))


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else fit(sys.argv[1], int(sys.argv[2]))
