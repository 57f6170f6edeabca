"""How commands ended is kept by the files that they ran on, and only whole lines of the file count."""

from objstore.disk.fs.reserved_names import RUNS_NAME, STORE_NAME
from tests.support.scene import Scene


def test_half_a_line_is_no_run(scene: Scene) -> None:
    trials = scene.workspace.trials
    trials.known_runs("make").note("files", 125)
    file = scene.root / STORE_NAME / RUNS_NAME
    whole = file.read_bytes()
    for end in range(len(whole) + 1):
        file.write_bytes(whole[:end])
        assert trials.known_runs("make").status("files") == (125 if end == len(whole) else None)
