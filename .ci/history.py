"""Keep the results of all benchmarks on a branch of the repository, which holds nothing else.

``python .ci/history.py fetch`` brings what was measured so far, ``push`` adds what is there now.
Neither touches the checkout or its index, so that the branch needs no checkout of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import workspace

BRANCH = "performance-history"
RESULTS = workspace.ROOT / "asv_bench" / ".asv" / "results"


class History:
    """A branch at the origin of a repository and the folder that it is a copy of."""

    def __init__(self, root: Path, results: Path, branch: str = BRANCH) -> None:
        self.root, self.results, self.branch = root, results, branch

    def _git(self, *words: str, index: str = "") -> str:
        """Return what git prints; `index`: a file in place of the checkout's."""
        env = os.environ | {"GIT_WORK_TREE": str(self.results), "GIT_DIR": str(self.root / ".git")}
        env |= {"GIT_INDEX_FILE": index} if index else {}
        found = subprocess.check_output(("git", *words), cwd=self.results, env=env, text=True)
        return str(found).strip()

    def newest(self) -> str:
        """Fetch and return the newest commit of the branch, empty where there is none."""
        if not self._git("ls-remote", "--heads", "origin", self.branch):
            return ""
        self._git("fetch", "-q", "origin", self.branch)
        return self._git("rev-parse", "FETCH_HEAD")

    def fetch(self) -> None:
        """Write the results of the branch into the folder, over those that are there."""
        self.results.mkdir(parents=True, exist_ok=True)
        if newest := self.newest():
            with tempfile.TemporaryDirectory() as place:
                index = str(Path(place) / "index")
                self._git("read-tree", newest, index=index)
                self._git("checkout-index", "-a", "-f", index=index)

    def push(self, message: str) -> bool:
        """Add the folder to the branch as a commit; return whether anything was new."""
        newest = self.newest()
        with tempfile.TemporaryDirectory() as place:
            index = str(Path(place) / "index")
            self._git("add", "-A", ".", index=index)
            tree = self._git("write-tree", index=index)
        if newest and tree == self._git("rev-parse", f"{newest}^{{tree}}"):
            return False
        parents = ("-p", newest) if newest else ()
        person = ("-c", "user.name=benchmarks", "-c", "user.email=benchmarks@localhost")
        commit = self._git(*person, "commit-tree", tree, *parents, "-m", message)
        self._git("push", "-q", "origin", f"{commit}:refs/heads/{self.branch}")
        return True


def main() -> None:
    """Do what the only argument says."""
    history, wanted = History(workspace.ROOT, RESULTS), sys.argv[1:]
    if wanted == ["fetch"]:
        history.fetch()
    elif wanted == ["push"]:
        at = subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=workspace.ROOT, text=True)
        history.push(f"Results at {at.strip()}")
    else:
        raise SystemExit("python .ci/history.py fetch, or push")


if __name__ == "__main__":
    main()
