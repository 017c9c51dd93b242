"""A Redis Cluster of real servers on loopback: masters with a replica each, by redis-cli --cluster."""

import shutil
import subprocess

import procs
from redisproc import RedisProc
from respclient import Closed, RespError

SLOTS = 16384
NODE_TIMEOUT_MS = 1000


def find_cli():
    return shutil.which("redis-cli")


class Node(RedisProc):
    """One server of it. `id`: as all nodes know it."""

    def __init__(self, name, args=()):
        port, self.bus = procs.free_ports(2)
        super().__init__(name, tcp=True, port=port, args=[
            "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", str(self.bus),
            "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--repl-diskless-sync-delay", "0", *args])

    def start(self):
        super().start()
        self.id = self.cli("CLUSTER", "MYID")
        return self

    @property
    def at(self):
        return "127.0.0.1:%d" % self.port

    @property
    def runs(self):
        return not self.stopped and self.proc is not None and self.proc.poll() is None

    def told(self):
        """What it says of all nodes: {id: (flags, id of its master or "-", slots)}."""
        said = {}
        for line in self.cli("CLUSTER", "NODES").splitlines():
            words = line.split()
            said[words[0]] = (words[2].split(","), words[3], words[8:])
        return said

    def state(self):
        return dict(line.split(":", 1) for line in self.cli("CLUSTER", "INFO").splitlines())

    def serves(self, slot):
        """Whether it says that it has this slot."""
        flags, _, ranges = self.told()[self.id]
        if "master" not in flags:
            return False
        for text in ranges:
            first, _, last = text.partition("-")
            if not text.startswith("[") and int(first) <= slot <= int(last or first):
                return True
        return False


class Cluster:
    """Use it as a context: all servers end with it."""

    def __init__(self, masters=3, replicas=1, args=()):
        self.n_masters, self.n_replicas, self.args = masters, replicas, list(args)
        self.nodes = []

    def __enter__(self):
        try:
            for i in range(self.n_masters * (1 + self.n_replicas)):
                self.nodes.append(Node("n%d" % i, self.args))
                self.nodes[-1].start()
            self.cli("create", *[node.at for node in self.nodes], "--cluster-replicas", str(self.n_replicas))
            self.wait_whole()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        for node in self.nodes:
            node.close()

    # ---- what it is ----

    def running(self):
        return [node for node in self.nodes if node.runs]

    def node(self, node_id):
        return next(node for node in self.nodes if node.id == node_id)

    def keeper(self, slot):
        """The node that has this slot, by its own word and that of most others that run; None: they do not agree."""
        running = self.running()
        named = [node for node in running if node.serves(slot)]
        for candidate in named:
            if 2 * sum(self._names(other, candidate, slot) for other in running) > len(running):
                return candidate
        return None

    @staticmethod
    def _names(other, node, slot):
        flags, _, ranges = other.told().get(node.id, ((), "-", ()))
        spans = [text.partition("-") for text in ranges if not text.startswith("[")]
        return "master" in flags and any(int(a) <= slot <= int(b or a) for a, _, b in spans)

    def replica_of(self, master):
        """A replica of this master that runs and is in step; None: there is none."""
        for node in self.running():
            flags, leader, _ = node.told()[node.id]
            if "slave" in flags and leader == master.id and "master_link_status:up" in node.cli("INFO", "replication"):
                return node
        return None

    def wait_whole(self):
        """Until all that run say that all slots are served, know each other alike and no replica lags."""
        procs.wait_for("the Cluster", self._is_whole, 30, 0.05)

    def _is_whole(self):
        running = self.running()
        slots = set()
        try:
            for node in running:
                if node.state()["cluster_state"] != "ok" or int(node.state()["cluster_slots_ok"]) != SLOTS:
                    return False
                told = node.told()
                if any("handshake" in flags for flags, _, _ in told.values()):
                    return False
                flags, leader, _ = told[node.id]
                if "slave" in flags and "master_link_status:up" not in node.cli("INFO", "replication"):
                    return False
                slots.add(tuple(sorted((i, tuple(ranges)) for i, (_, _, ranges) in told.items() if ranges)))
        except (OSError, Closed, RespError, KeyError):
            return False
        return len(slots) == 1

    @property
    def url(self):
        return "cluster://" + ",".join(node.at for node in self.nodes[:3])

    # ---- what is done to it ----

    def forget(self):
        """Takes all data away, as no broker is there."""
        for node in self.running():
            if "master" in node.told()[node.id][0]:
                node.cli("FLUSHALL")

    def cli(self, *words):
        """redis-cli --cluster."""
        done = subprocess.run([find_cli(), "--cluster", *words, "--cluster-yes"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, "redis-cli --cluster %s:\n%s%s" % (" ".join(words), done.stdout, done.stderr)
        return done.stdout

    def fail_over(self, master):
        """CLUSTER FAILOVER, agreed upon with the master: returns the node that has its place."""
        replica = procs.wait_for("a replica of %s" % master.name, lambda: self.replica_of(master))
        replica.cli("CLUSTER", "FAILOVER")
        return self.wait_promoted(replica)

    def wait_promoted(self, replica):
        procs.wait_for("the promotion of %s" % replica.name,
                       lambda: "role:master" in replica.cli("INFO", "replication"), 20, 0.02)
        return replica

    def reshard(self, source, target, n):
        """Moves n slots, with their keys."""
        self.cli("reshard", self.running()[0].at, "--cluster-from", source.id, "--cluster-to", target.id,
                 "--cluster-slots", str(n))
        self.wait_whole()

    def add_node(self):
        """A new master without slots."""
        node = Node("n%d" % len(self.nodes), self.args)
        self.nodes.append(node)
        node.start()
        self.cli("add-node", node.at, self.running()[0].at)
        procs.wait_for("that all know %s" % node.name, lambda: all(node.id in n.told() for n in self.running()), 20, 0.05)
        self.wait_whole()
        return node

    def delete_node(self, node):
        """Of a node without slots."""
        others = [other for other in self.running() if other is not node]
        self.cli("del-node", others[0].at, node.id)
        procs.wait_for("that all forget %s" % node.name, lambda: not any(node.id in n.told() for n in others), 20, 0.05)
        self.nodes.remove(node)
        node.close()
