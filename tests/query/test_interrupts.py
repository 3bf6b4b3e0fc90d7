"""Ctrl-C ends a query, however long it would run, and the command says so as the shell expects it."""

import os
import subprocess
import sys

import duckdb
import pytest

from codeanatomy.query.interrupts import interruptible

ENDLESS = "SELECT sum(a.range * b.range) FROM range(30000000) AS a, range(30000000) AS b"

PROGRAM = """
import os, signal, sys, threading, time
from codeanatomy.cli.main import main
from codeanatomy.query import sql  # loaded, so that the query runs when the signal comes

def interrupt():
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
sys.argv.insert(1, "sql")
sys.exit(main())
"""


@pytest.mark.parametrize("query", [ENDLESS, "SELECT a.range FROM range(3000000000) AS a"])
def test_an_interrupted_query_exits_with_130(built_once, query):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, query, built_once, "--csv"],
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (130, 1), done.stderr
    assert done.stderr.startswith("codeanatomy: interrupted")


def test_errors_of_a_query_stay_what_they_are():
    with duckdb.connect() as connection, pytest.raises(duckdb.BinderException), interruptible(connection):
        connection.execute("SELECT nothing")
