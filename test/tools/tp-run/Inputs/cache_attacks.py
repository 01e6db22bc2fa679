"""Plants what another user might where tp-run keeps what it has compiled, and fails where one of it is run or kept.

usage: cache_attacks.py FOLDER

FOLDER has what make_toy.py and make_stand_in.py make, and ranks.mlir. Files of another user need root.
"""

import os
import pathlib
import shutil
import subprocess
import sys

OTHER = 65534  # nobody
IS_ROOT = os.geteuid() == 0


class Attacks:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "attacks"
        self.home = self.root / "home"
        self.count, self.failures = 0, []
        self.cache = self.home / "cache"
        self.reset()
        _, kept = self.run()
        assert len(kept) == 1, kept
        self.name = kept[0]

    def reset(self):
        shutil.rmtree(self.root, ignore_errors=True)
        self.home.mkdir(parents=True)
        os.chmod(self.root, 0o755)
        os.chmod(self.home, 0o755)

    def run(self):
        """Runs the program; returns the result and what is kept."""
        environment = dict(os.environ, TP_CACHE_DIR=str(self.cache))
        result = subprocess.run(
            [self.folder / "bin" / "tp-run", "ranks.mlir", "--weights", "w.safetensors", "--input", "x=x.npy", "--expect", "y.npy"],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)
        kept = [path.name for path in self.cache.glob("*.tpx")] if self.cache.is_dir() else []
        return result, kept

    def attempt(self, what, plant, is_kept, note=""):
        """`plant` prepares the attack; `is_kept`: whether the cache is used all the same."""
        self.count += 1
        self.reset()
        plant()
        result, kept = self.run()
        good = (self.folder / "toy.tpx").read_bytes()
        if result.returncode != 0:
            self.failures.append(f"{what}: exit code {result.returncode}: {result.stderr}")
        elif note not in result.stderr or bool(note) != bool(result.stderr):
            self.failures.append(f"{what}: says {result.stderr!r}, expected {note!r}")
        elif is_kept and (kept != [self.name] or (self.cache / self.name).read_bytes() != good
                          or os.stat(self.cache / self.name).st_mode & 0o777 != 0o600):
            self.failures.append(f"{what}: the cache has {kept}")
        elif not is_kept and kept:
            self.failures.append(f"{what}: {kept} are kept")

    def make_cache(self, mode=0o700, path=None):
        path = path or self.cache
        path.mkdir()
        os.chmod(path, mode)

    def plant_program(self, mode=0o600, owner=None):
        """The program of somebody else, under the name that tp-run will look for. It fails, so that it isn't run unnoticed."""
        path = self.cache / self.name
        shutil.copy(self.folder / "fail.tpx", path)
        os.chmod(path, mode)
        if owner is not None:
            os.chown(path, owner, owner)


def main(folder):
    attacks = Attacks(folder)
    home, cache, name = attacks.home, attacks.cache, attacks.name

    def attack(what, is_kept, note="", needs_root=False):
        def register(plant):
            if IS_ROOT or not needs_root:
                attacks.attempt(what, plant, is_kept, note)
        return register

    for mode in (0o770, 0o707, 0o777, 0o1777):
        attack(f"directory of mode {mode:o}", False, "it can be written by others")(lambda mode=mode: attacks.make_cache(mode))
        if not mode & 0o1000:
            attack(f"parent of mode {mode:o}", False, f"'{home}' can be written by others, who could put another")(
                lambda mode=mode: os.chmod(home, mode))
    attack("parent like /tmp", True)(lambda: os.chmod(home, 0o1777))

    @attack("own link", True)
    def _():
        attacks.make_cache(path=attacks.root / "real")
        cache.symlink_to("../real")

    @attack("own link to what others can write", False, f"'{attacks.root / 'real'}' can be written by others")
    def _():
        attacks.make_cache(0o777, attacks.root / "real")
        cache.symlink_to("../real")

    @attack("link to nothing", False, "'" + str(attacks.root / "none") + "' can't be used: No such file")
    def _():
        cache.symlink_to("../none")

    @attack("link to itself", False, "one of too many links")
    def _():
        cache.symlink_to("cache")

    @attack("file as directory", False, "it is not a directory")
    def _():
        cache.write_text("")

    @attack("FIFO as directory", False, "it is not a directory")
    def _():
        os.mkfifo(cache)

    for mode in (0o620, 0o602, 0o666):
        @attack(f"program of mode {mode:o}", True)
        def _(mode=mode):
            attacks.make_cache()
            attacks.plant_program(mode)

    @attack("FIFO as program", True)
    def _():
        attacks.make_cache()
        os.mkfifo(cache / name)

    @attack("link to a program that others can write", True)
    def _():
        attacks.make_cache()
        shutil.copy(attacks.folder / "fail.tpx", attacks.root / "theirs.tpx")
        os.chmod(attacks.root / "theirs.tpx", 0o666)
        (cache / name).symlink_to(attacks.root / "theirs.tpx")

    @attack("link to a device", True)
    def _():
        attacks.make_cache()
        (cache / name).symlink_to("/dev/zero")

    @attack("another user's directory", False, "it belongs to another user", needs_root=True)
    def _():
        attacks.make_cache()
        attacks.plant_program(owner=OTHER)
        os.chown(cache, OTHER, OTHER)
        # Not by its name, which stays there: what tp-run would keep.
        os.rename(cache / name, cache / "theirs")

    @attack("another user's parent", False, f"'{home}' belongs to another user", needs_root=True)
    def _():
        os.chown(home, OTHER, OTHER)

    @attack("another user's link", False, "it belongs to another user", needs_root=True)
    def _():
        attacks.make_cache(path=attacks.root / "real")
        cache.symlink_to("../real")
        os.chown(cache, OTHER, OTHER, follow_symlinks=False)

    @attack("another user's program", True, needs_root=True)
    def _():
        attacks.make_cache()
        attacks.plant_program(owner=OTHER)

    @attack("link to another user's program", True, needs_root=True)
    def _():
        attacks.make_cache()
        shutil.copy(attacks.folder / "fail.tpx", attacks.root / "theirs.tpx")
        os.chmod(attacks.root / "theirs.tpx", 0o644)
        os.chown(attacks.root / "theirs.tpx", OTHER, OTHER)
        (cache / name).symlink_to(attacks.root / "theirs.tpx")

    shutil.rmtree(attacks.root)
    for failure in attacks.failures:
        print(failure)
    print(f"{attacks.count} attacks, {len(attacks.failures)} failures")


main(sys.argv[1])
