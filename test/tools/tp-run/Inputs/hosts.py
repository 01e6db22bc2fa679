"""Hosts on one machine: network namespaces with names and addresses of their own, on one bridge.

They share the machine's files and processes. A launcher starts processes on them by `agent`, which takes the arguments of
ssh. Needs root's capabilities and the commands of iproute2 and util-linux.

  hosts.py FOLDER

Exit code 0 if hosts can be made here.
"""

import pathlib
import stat
import subprocess
import sys

AGENT = """#!/bin/sh
# usage: agent [-x] HOST COMMAND…
[ "$1" != -x ] || shift
pid=$(cat "{folder}/$1.pid") || exit 255
shift
exec nsenter -t "$pid" -n -u -m -- sh -c "$*"
"""


class Hosts:
    """`count` hosts, named host1, host2 and so on. They exist inside a `with` statement, or until this process ends."""

    def __init__(self, count, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.names = [f"host{i + 1}" for i in range(count)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]
        self.agent = self.folder / "agent"
        self.agent.write_text(AGENT.format(folder=self.folder))
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)
        self.processes = []

    def _begin(self, setup):
        """A process in namespaces of its own, that ends with this one."""
        process = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-ec", setup + "\necho ready\nexec cat >/dev/null"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        if process.stdout.readline() != "ready\n":
            raise OSError(f"cannot make a host: {setup}")
        return process.pid

    @staticmethod
    def _inside(pid, *command):
        subprocess.run(["nsenter", "-t", str(pid), "-n", "-u", "-m", "--", *command], check=True)

    def __enter__(self):
        table = self.folder / "hosts"
        table.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address, name in zip(self.addresses, self.names)))
        self.switch = self._begin("ip link add bridge type bridge\nip link set bridge up")
        self.pids = []
        for name, address in zip(self.names, self.addresses):
            pid = self._begin(f"hostname {name}\nmount --bind '{table}' /etc/hosts\nip link set lo up")
            self.pids.append(pid)
            (self.folder / f"{name}.pid").write_text(str(pid))
            self._inside(self.switch, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
            self._inside(self.switch, "ip", "link", "set", name, "master", "bridge", "up")
            self._inside(pid, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            self._inside(pid, "ip", "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
            process.wait()

    def enter(self, name):
        """The beginning of a command that runs on a host, in the same directory."""
        return ["nsenter", "-t", str(self.pids[self.names.index(name)]), "-n", "-u", "-m", "--wd=.", "--"]

    def cut(self, name):
        """Disconnects a host from the others."""
        self._inside(self.switch, "ip", "link", "set", name, "down")

    def connect(self, name):
        self._inside(self.switch, "ip", "link", "set", name, "up")


if __name__ == "__main__":
    with Hosts(2, sys.argv[1]) as made:
        subprocess.run([made.agent, "host2", "getent hosts host1"], check=True)
