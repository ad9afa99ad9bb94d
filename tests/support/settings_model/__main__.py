"""Replay: python -m tests.support.settings_model SEED [STEP...]; or go on: SEED --steps 200000."""

from __future__ import annotations

import argparse
import sys

from tests.support.settings_model.replay import STEPS_A_WORLD, run, run_many

parser = argparse.ArgumentParser(prog="python -m tests.support.settings_model", description=__doc__)
parser.add_argument("seed")
parser.add_argument("step", nargs="*", type=int)
parser.add_argument("--steps", type=int, default=0)
asked = parser.parse_args()
story: list[str] = []
if asked.steps:
    done = run_many(asked.seed, asked.steps)
else:
    try:
        done = run(asked.seed, asked.step or range(STEPS_A_WORLD), story)
    finally:
        sys.stdout.write("\n".join([*story, ""]))
sys.stdout.write(f"{done} steps\n")
