"""A real cluster of three raylets on this machine, all of whose traffic stays on loopback."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from podium.cluster.connection import LOOPBACK, import_ray

HEALTH = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2_000,
    "health_check_failure_threshold": 4,
}
"""A raylet that is gone is noticed after two seconds, not Ray's usual fifteen."""
PRIORITY = {"worker_niceness": 0}
"""On a busy machine, workers with Ray's usual 15 would get no turn."""


class Raylets:
    """A head and two other raylets; the others can be killed, and ``replace_killed``."""

    def __init__(self, cpus: int = 2, memory: int = 200 << 20) -> None:
        import_ray(loopback=True)
        from ray.cluster_utils import Cluster

        self._each: dict[str, Any] = {
            "num_cpus": cpus,
            "node_ip_address": LOOPBACK,
            "object_store_memory": memory,
        }
        head = {**self._each, "include_dashboard": False, "_system_config": HEALTH | PRIORITY}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.others: list[Any] = []
        self.replace_killed()
        self.address: str = self._cluster.address

    def replace_killed(self) -> None:
        """Bring the cluster back to three raylets."""
        for node in [node for node in self.others if raylet_id(node) is None]:
            self._cluster.remove_node(node, allow_graceful=False)
            self.others.remove(node)
        while len(self.others) < 2:
            self.others.append(self._cluster.add_node(**self._each))
        self._cluster.wait_for_nodes(timeout=120)

    def kill_one(self, draw: random.Random) -> None:
        """Kill -9 one of the living raylets that are not the head's."""
        node = draw.choice([node for node in self.others if raylet_id(node) is not None])
        node.all_processes["raylet"][0].process.kill()
        node.all_processes["raylet"][0].process.wait()

    def kill_after(self, seconds: float, draw: random.Random) -> threading.Thread:
        """Kill one in a while, from a thread."""

        def work() -> None:
            time.sleep(seconds)
            self.kill_one(draw)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def shutdown(self) -> None:
        self._cluster.shutdown()


def raylet_id(node: Any) -> int | None:
    """The process of a node's raylet, if it lives."""
    process = node.all_processes["raylet"][0].process
    return process.pid if process.poll() is None else None
