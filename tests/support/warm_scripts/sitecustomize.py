"""Starts a script of ours warm, where its interpreter finds this module on PYTHONPATH before it runs the script.

CAS_TEST_WARM names the program (`cas`, `editledger`) and the words that start it warm: all separated by line feeds, and
a program from the next by an empty line.
"""

import os
import sys

for program in os.environ.get("CAS_TEST_WARM", "").split("\n\n"):
    name, *words = program.split("\n")
    if words and os.path.basename(sys.argv[0]) == name:  # noqa: PTH119 - pathlib takes longer to import than all of this
        os.execv(words[0], [*words, *sys.argv[1:]])  # noqa: S606 - no shell
