"""Engines that are killed at random moments of an update: the command goes on, and nothing is lost."""

import json
import os
import random
import signal
import time

import pytest

from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify

KILLS = 30
LONGEST = 3.0
"""Seconds from the start of the command to the kill; an update takes about so long."""


@pytest.mark.slow
def test_nothing_is_lost_with_an_engine(own_home, built, spark):
    moments = random.Random(7)
    source = (built / "shop/prices.py").read_text()
    for number in range(KILLS):
        code, out, err = own_home.run("engine", "start", "--json")
        assert code == 0, err
        pid = json.loads(out)["pid"]
        (built / "shop/prices.py").write_text(f"{source}\n\ndef f{number}():\n    return price_of('tea')\n")
        command = own_home.start("build", built, "--json")
        time.sleep(moments.uniform(0, LONGEST))
        os.kill(pid, signal.SIGKILL)
        out, err = command.communicate(timeout=180)
        assert (command.returncode, json.loads(out)["mode"]) == (0, "incremental"), err
        assert json.loads(own_home.run("status", built, "--json")[1])["fresh"]
        if number % 10 == 9:
            assert verify(BuildRequest(built), spark=spark).equal
