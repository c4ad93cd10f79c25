"""The worker that runs fan-outs while servers are measured: `python -m benchmarks.peers.worker URL`.

It writes a line when it begins, and exits at the end of its standard input.
"""

import asyncio
import sys
import threading

from benchmarks.peers.serve import end_with_input
from benchmarks.stores import open_graph


async def work(url: str) -> None:
    """Project the log of a store until terminated."""
    graph = await open_graph(url)
    print("ready", flush=True)
    await graph.worker().run()


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    asyncio.run(work(sys.argv[1]))
