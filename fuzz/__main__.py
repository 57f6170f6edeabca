"""Run every target for some seconds: `python -m fuzz --seconds 10`.

With atheris installed, each target runs under it, guided by coverage. Without, inputs of the corpus are changed at
random from a seed that is printed: that reaches less, but needs nothing.
"""

import argparse
import importlib
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from fuzz.targets import TARGETS

CORPUS: Final = Path(__file__).parent / "corpus"
_LONGEST: Final = 1 << 16
_BYTES: Final = (0x00, 0x01, 0x7F, 0x80, 0x81, 0xC0, 0xC4, 0xCF, 0xDF, 0xFE, 0xFF)


def main() -> int:
    """Return 0 if no target failed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Feed hostile bytes to the decoders.")
    parser.add_argument("--seconds", type=float, default=10, help="for each target (10)")
    parser.add_argument("--seed", type=int, default=None, help="of the random changes (a new one each time)")
    parser.add_argument("--target", choices=sorted(TARGETS), default=None, help="only this one")
    arguments = parser.parse_args()
    wanted = sorted(TARGETS) if arguments.target is None else [arguments.target]
    if importlib.util.find_spec("atheris") is not None:
        print("engine: atheris, guided by coverage")
        return max(_run_under_atheris(name, arguments.seconds) for name in wanted)
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"engine: random changes to the corpus, seed {seed} (atheris is not installed)")
    return max(_run_at_random(name, arguments.seconds, seed) for name in wanted)


def _run_under_atheris(name: str, seconds: float) -> int:
    # libFuzzer ends its process when its time is over, so each target has its own. Inputs that it finds interesting go
    # to the first folder, and those that fail to the prefix.
    kept = tempfile.mkdtemp(prefix="editledger-fuzz-")
    with tempfile.TemporaryDirectory() as found:
        options = [f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={kept}/", "-verbosity=0"]
        program = f"from fuzz.__main__ import under_atheris; under_atheris({name!r})"
        command = [sys.executable, "-c", program, *options, found, str(CORPUS / name)]
        status = subprocess.run(command, check=False).returncode  # noqa: S603 - arguments of our own making
    print(f"{name}: {'ok' if status == 0 else f'failed with status {status}; the input is in {kept}'}")
    return min(1, abs(status))


def under_atheris(name: str) -> None:
    """Hand this process over to libFuzzer, with the options that the command line holds."""
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


def _run_at_random(name: str, seconds: float, seed: int) -> int:
    chance = random.Random(seed)  # noqa: S311 - a run that can be repeated, no secret
    corpus = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    target = TARGETS[name]
    deadline = time.monotonic() + seconds
    runs = 0
    while time.monotonic() < deadline:
        data = changed(chance, corpus)
        try:
            target(data)
        except Exception as error:  # noqa: BLE001 - whatever a target raises is what is looked for
            kept = Path(tempfile.mkdtemp(prefix="editledger-fuzz-")) / name
            kept.write_bytes(data)
            print(f"{name}: {type(error).__name__}: {error}; the input is in {kept}")
            return 1
        runs += 1
    print(f"{name}: ok, {runs} inputs")
    return 0


def changed(chance: random.Random, corpus: list[bytes]) -> bytes:
    """Return an input of the corpus after a few random changes."""
    data = bytearray(chance.choice(corpus))
    for _ in range(1 + int(chance.expovariate(0.7))):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + int(chance.expovariate(0.1)))
        match chance.randrange(7):
            case 0 if data:
                data[start % len(data)] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[start % len(data)] = chance.choice(_BYTES)
            case 2:
                del data[start:end]
            case 3:
                data[start:start] = data[start:end]
            case 4:
                data[start:start] = chance.randbytes(1 + int(chance.expovariate(0.3)))
            case 5:
                other = chance.choice(corpus)
                data[start:] = other[chance.randrange(len(other) + 1) :]
            case _:
                data[start:end] = chance.randrange(2**64).to_bytes(8, "little")
    return bytes(data[:_LONGEST])


if __name__ == "__main__":
    sys.exit(main())
