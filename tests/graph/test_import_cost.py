"""Importing `graph` loads no SQL library, reads no data and connects to nothing."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys

opened, started = [], []

def note(event, arguments):
    if event == "open" and ".py" not in str(arguments[0]):
        opened.append(str(arguments[0]))
    if event in ("socket.connect", "subprocess.Popen", "os.fork"):
        started.append(event)

sys.addaudithook(note)
import graph
print(json.dumps({"loaded": list(sys.modules), "opened": opened, "started": started}))
"""


def test_importing_the_graph_loads_no_sql_library_and_does_no_io() -> None:
    """Only `graph.archive.archive` loads SQLAlchemy and Alembic."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)

    assert {"sqlalchemy", "alembic", "graph.archive.archive"}.isdisjoint(report["loaded"])
    assert (report["opened"], report["started"]) == ([], [])
